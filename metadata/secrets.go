package metadata

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"platform/internal/errcode"
	"platform/internal/keyring"
	"platform/internal/subscription"
)

// Kinds of records with secrets. They are part of what is encrypted: values do not change.
const (
	deploymentSecrets   = "deployment"
	clusterSecrets      = "Kafka cluster"
	subscriptionSecrets = "subscription"
	authoritySecrets    = "authority"
)

// errDeploymentsChanged means that the secrets of a registration were encrypted for a deployment
// that the registration no longer concerns.
var errDeploymentsChanged = errors.New("the deployments were changed by another request")

// secretField reports whether a field of a record of some kind contains a secret. Values of
// routing headers distinguish deployments when an entry is applied, which is done without keys.
func (s *Store) secretField(kind, field string) bool {
	switch kind {
	case deploymentSecrets:
		return !s.routing[strings.ToLower(field)]
	case authoritySecrets:
		return true
	}
	return subscription.Secret(field)
}

// seal encrypts the secrets among the fields of a record if this node has keys. stored are the
// fields of the present record: encrypted ones, which this node cannot read, are kept. The error
// has code META0020.
func (s *Store) seal(kind, id string, fields, stored map[string]string) (map[string]string, error) {
	v := s.source.current()
	out := maps.Clone(fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at, value := keyring.Place{Kind: kind, ID: id, Field: name}, fields[name]
		switch {
		case keyring.Sealed(value) && value != stored[name]:
			_, err := v.keys.Open(at, value)
			return nil, unreadable(at, errors.Join(err, errors.New("set its value")))
		case keyring.Sealed(value) || !s.secretField(kind, name):
		case v.keys != nil:
			out[name] = v.keys.Seal(at, value)
		case v.encrypted():
			return nil, errcode.New(errcode.META0020, "%s cannot be stored: secrets of this cluster are encrypted, and this node has no key (security.secrets)", at)
		}
	}
	return out, nil
}

// withoutSealed returns fields with a placeholder for each encrypted value, which can be kept but
// not validated.
func withoutSealed(fields map[string]string) map[string]string {
	out := maps.Clone(fields)
	for name, value := range out {
		if keyring.Sealed(value) {
			out[name] = subscription.Redacted
		}
	}
	return out
}

// unreadable is the error for a secret that cannot be decrypted.
func unreadable(at keyring.Place, err error) error {
	return errcode.New(errcode.META0020, "%s cannot be decrypted: %s", at, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// unseal decrypts the encrypted fields of a record. Those that cannot be decrypted stay, and err
// is about the first one. The result is nil if no field is encrypted.
func unseal(keys *keyring.Keyring, kind, id string, fields map[string]string) (out map[string]string, err error) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !keyring.Sealed(fields[name]) {
			continue
		}
		if out == nil {
			out = maps.Clone(fields)
		}
		at := keyring.Place{Kind: kind, ID: id, Field: name}
		if value, problem := keys.Open(at, fields[name]); problem == nil {
			out[name] = value
		} else if err == nil {
			err = unreadable(at, problem)
		}
	}
	return out, err
}

// eachSecret calls use with the fields of all records that can contain secrets.
func (s *state) eachSecret(use func(at keyring.Place, stored string)) {
	fields := func(kind, id string, fields map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			use(keyring.Place{Kind: kind, ID: id, Field: name}, fields[name])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.schemas.Deployments)) {
		fields(deploymentSecrets, string(id), s.schemas.Deployments[id].AdditionalHeaders)
	}
	for i := range s.clusters {
		fields(clusterSecrets, s.clusters[i].Name, s.clusters[i].Properties)
	}
	for i := range s.subscriptions {
		fields(subscriptionSecrets, s.subscriptions[i].ID, s.subscriptions[i].Properties)
	}
	if s.authority != nil {
		use(s.authority.place(), s.authority.key)
	}
}

// encrypted reports whether there are encrypted secrets.
func (s *state) encrypted() (found bool) {
	s.eachSecret(func(_ keyring.Place, stored string) { found = found || keyring.Sealed(stored) })
	return found
}

// sealRegistration encrypts the headers of a registration for the deployment that it will create
// or replace.
func (s *Store) sealRegistration(r Registration) (Registration, error) {
	if len(r.Deployment.AdditionalHeaders) == 0 {
		return r, nil
	}
	d := *r.Deployment
	if v := s.source.current(); v.keys != nil {
		plan, err := v.schemas.Plan(r, time.Time{})
		switch {
		case err != nil:
			return r, err
		case plan.Change == Replaced:
			d.ID = plan.Deployment.ID
		}
	}
	var err error
	d.AdditionalHeaders, err = s.seal(deploymentSecrets, string(d.ID), d.AdditionalHeaders, nil)
	r.Deployment = &d
	return r, err
}

// sealedFor reports whether a deployment has secrets that are encrypted for its ID.
func (d *Deployment) sealedFor() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(d.AdditionalHeaders)), keyring.Sealed)
}
