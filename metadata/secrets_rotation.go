package metadata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"slices"

	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/keyring"
	"platform/internal/subscription"
	pb "platform/proto/metadata"
)

// replaceSecrets replaces secrets by the same ones, encrypted with another key.
type replaceSecrets struct{ secrets []replacedSecret }

// replacedSecret is a stored value to replace unless it has changed.
type replacedSecret struct {
	at     keyring.Place
	before []byte // SHA-256 of the stored value
	value  string
}

func (*replaceSecrets) command() {}

// maxReplaced and maxReplacedBytes bound one replaceSecrets. A single value can be larger.
const (
	maxReplaced      = 200
	maxReplacedBytes = 256 << 10
)

// SecretsState describes how the secrets in the metadata are stored.
type SecretsState struct {
	Keys []string       // of this node, the newest first; empty: this node does not encrypt
	Used map[string]int // number of secrets by key
	// Clear is the number of secrets that are not encrypted.
	Clear int
	// Unreadable are messages about the secrets that this node cannot decrypt.
	Unreadable []string
}

// Secrets returns how the secrets in the metadata are stored.
func (s *Store) Secrets() SecretsState {
	v := s.source.current()
	state := SecretsState{Keys: v.keys.IDs(), Used: map[string]int{}, Unreadable: []string{}}
	v.eachSecret(func(at keyring.Place, stored string) {
		id, _ := keyring.KeyOf(stored)
		sealed := keyring.Sealed(stored)
		switch {
		case !sealed && s.secretField(at.Kind, at.Field):
			state.Clear++
		case sealed:
			state.Used[id]++
			if _, err := v.keys.Open(at, stored); err != nil {
				state.Unreadable = append(state.Unreadable, unreadable(at, err).Error())
			}
		}
	})
	return state
}

// SecretKeys returns the IDs of the keys of this node, the newest first.
func (s *Store) SecretKeys() []string { return s.source.current().keys.IDs() }

// SetSecretKeys replaces the keys of this node. It fails if a stored secret needs one that is
// missing now.
func (s *Store) SetSecretKeys(keys *keyring.Keyring) error {
	v := s.source.current()
	for id, count := range s.Secrets().Used {
		if v.keys.Has(id) && !keys.Has(id) {
			return errcode.New(errcode.META0020, "%d stored secrets are encrypted with the key %s, which was removed; run platform cluster secrets rotate first", count, id)
		}
	}
	s.replica.fsm.useKeys(keys)
	return nil
}

// RotateSecrets encrypts all secrets with the newest key of this node, except those that it cannot
// decrypt. It returns their number when all nodes that keep up have them. The error can have code
// META0020: this node has no key.
func (s *Store) RotateSecrets(ctx context.Context) (rotated int, err error) {
	if s.source.current().keys == nil {
		return 0, errcode.New(errcode.META0020, "this node has no key for secrets; configure security.secrets on all nodes")
	}
	for stored := s.countSecrets(); ; {
		batch := s.outdatedSecrets()
		if len(batch) == 0 {
			return rotated, nil
		}
		if rotated > stored+maxReplaced {
			return rotated, errcode.New(errcode.META0020, "another node encrypts the secrets with another key at the same time; make the first line of security.secrets.key-file the same on all nodes")
		}
		if _, err := proposeToAll[any](ctx, s, &replaceSecrets{batch}); err != nil {
			return rotated, err
		}
		rotated += len(batch)
	}
}

// countSecrets returns the number of fields that RotateSecrets may replace.
func (s *Store) countSecrets() (count int) {
	s.source.current().eachSecret(func(keyring.Place, string) { count++ })
	return count
}

// outdatedSecrets returns replacements of some secrets that are not encrypted with the newest key,
// and of routing headers that are encrypted. Those that cannot be decrypted are not among them.
func (s *Store) outdatedSecrets() (batch []replacedSecret) {
	v := s.source.current()
	size := 0
	v.eachSecret(func(at keyring.Place, stored string) {
		id, _ := keyring.KeyOf(stored)
		sealed, secret := keyring.Sealed(stored), s.secretField(at.Kind, at.Field)
		if secret && id == v.keys.Newest() || !secret && !sealed || len(batch) >= maxReplaced || size > maxReplacedBytes {
			return
		}
		value := stored
		if sealed {
			var err error
			if value, err = v.keys.Open(at, stored); err != nil {
				return
			}
		}
		if secret {
			value = v.keys.Seal(at, value)
		}
		before := sha256.Sum256([]byte(stored))
		batch = append(batch, replacedSecret{at, before[:], value})
		size += len(value)
	})
	return batch
}

// applyReplaceSecrets also removes secrets that are not encrypted from the outcomes of earlier
// requests, which would keep them otherwise.
func applyReplaceSecrets(d *draft, index uint64, cmd *replaceSecrets) error {
	for i := range cmd.secrets {
		if err := d.replaceSecret(index, &cmd.secrets[i]); err != nil {
			return err
		}
	}
	return d.scrubOutcomes()
}

func (d *draft) replaceSecret(index uint64, r *replacedSecret) error {
	switch r.at.Kind {
	case deploymentSecrets:
		if stored := d.schemas.Deployments[ids.Deployment(r.at.ID)]; stored != nil {
			if headers := r.apply(stored.AdditionalHeaders); headers != nil {
				changed := *stored
				changed.AdditionalHeaders = headers
				return d.putDeployment(index, &changed)
			}
		}
	case clusterSecrets:
		if pos, known := slices.BinarySearchFunc(d.clusters, r.at.ID, compareKafkaCluster); known {
			if properties := r.apply(d.clusters[pos].Properties); properties != nil {
				d.clusters = slices.Clone(d.clusters)
				d.clusters[pos].Properties = properties
				return d.put(tableKafkaClusters, r.at.ID, kafkaClusterToProto(&d.clusters[pos]))
			}
		}
	case subscriptionSecrets:
		if pos, known := slices.BinarySearchFunc(d.subscriptions, r.at.ID, compareSubscription); known {
			if properties := r.apply(d.subscriptions[pos].Properties); properties != nil {
				d.subscriptions = slices.Clone(d.subscriptions)
				d.subscriptions[pos].Properties = properties
				return d.put(tableSubscriptions, r.at.ID, subscriptionToProto(&d.subscriptions[pos]))
			}
		}
	case authoritySecrets:
		if d.authority != nil && d.authority.place() == r.at {
			if fields := r.apply(map[string]string{r.at.Field: d.authority.key}); fields != nil {
				return d.setAuthority(Authority{d.authority.Certificate, fields[r.at.Field]})
			}
		}
	}
	return nil
}

// apply returns the fields of a record with the new value, nil if the present one is not the
// expected one.
func (r *replacedSecret) apply(fields map[string]string) map[string]string {
	stored, known := fields[r.at.Field]
	if digest := sha256.Sum256([]byte(stored)); !known || !bytes.Equal(digest[:], r.before) {
		return nil
	}
	fields = maps.Clone(fields)
	fields[r.at.Field] = r.value
	return fields
}

// scrubOutcomes empties secrets that are not encrypted in the outcomes of earlier requests.
func (d *draft) scrubOutcomes() error {
	known := requests{}
	for _, q := range d.requests.list {
		o, err := decodeOutcome(q.result)
		if err != nil {
			return err
		}
		if scrub(&o) {
			if q.result, err = encodeOutcome(o); err != nil {
				return err
			}
			if err := d.put(tableRequests, requestKey(q.index), requestToProto(q)); err != nil {
				return err
			}
		}
		known.add(q)
	}
	d.requests = known
	return nil
}

// scrub empties the secrets in an outcome that are not encrypted, and reports whether there are
// any.
func scrub(o *outcome) (changed bool) {
	empty := func(fields map[string]string, secret func(string) bool) {
		for name, value := range fields {
			if value != "" && !keyring.Sealed(value) && secret(name) {
				fields[name], changed = "", true
			}
		}
	}
	all := func(string) bool { return true }
	switch v := o.value.(type) { // decoded, so nothing else refers to the maps
	case Registered:
		if v.Deployment != nil {
			empty(v.Deployment.AdditionalHeaders, all)
		}
	case *Deployment:
		empty(v.AdditionalHeaders, all)
	case subscription.Cluster:
		empty(v.Properties, subscription.Secret)
	case subscription.Subscription:
		empty(v.Properties, subscription.Secret)
	}
	return changed
}

func replaceSecretsToProto(cmd *replaceSecrets) *pb.ReplaceSecrets {
	out := &pb.ReplaceSecrets{}
	for _, r := range cmd.secrets {
		out.Secrets = append(out.Secrets, &pb.Secret{Kind: r.at.Kind, Id: r.at.ID, Field: r.at.Field, Before: r.before, Value: r.value})
	}
	return out
}

func replaceSecretsFromProto(m *pb.ReplaceSecrets) *replaceSecrets {
	cmd := &replaceSecrets{}
	for _, r := range m.GetSecrets() {
		cmd.secrets = append(cmd.secrets, replacedSecret{
			keyring.Place{Kind: r.GetKind(), ID: r.GetId(), Field: r.GetField()}, r.GetBefore(), r.GetValue(),
		})
	}
	return cmd
}
