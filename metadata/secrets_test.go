package metadata

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/keyring"
	"platform/internal/subscription"
)

// canary is part of every secret of the tests.
const canary = "canary-7d1f"

// testKeys returns a keyring whose keys consist of one letter each, the newest first.
func testKeys(t require.TestingT, letters string) *keyring.Keyring {
	var list []string
	for _, letter := range letters {
		list = append(list, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(letter), keyring.KeyBytes))))
	}
	keys, err := keyring.Parse(strings.Join(list, ","))
	require.NoError(t, err)
	return keys
}

func (m *memStore) useKeys(keys *keyring.Keyring) {
	next, wake := m.view.withKeys(keys)
	m.view = next
	wake()
}

func withHeaders(headers map[string]string) Registration {
	d := fullDeployment()
	d.ID, d.AdditionalHeaders = "", headers
	return Registration{Deployment: d}
}

// putSecrets stores a secret of each kind.
func putSecrets(t *testing.T, m *memStore) (*Deployment, subscription.Cluster, subscription.Subscription) {
	registered, err := m.RegisterDeployment(t.Context(), withHeaders(map[string]string{"authorization": "Bearer " + canary}))
	require.NoError(t, err)
	cluster, err := m.CreateKafkaCluster(t.Context(), subscription.Cluster{Name: "main", Properties: map[string]string{
		"bootstrap.servers": "b:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "plain", "sasl.username": "u", "sasl.password": canary,
	}})
	require.NoError(t, err)
	sub := newSubscription(m)
	sub.Properties = map[string]string{"client.id": "c", "sasl.password": canary + "-own"}
	sub, err = m.CreateSubscription(t.Context(), sub)
	require.NoError(t, err)
	return registered.Deployment, cluster, sub
}

// requireReadable checks that readers get the secrets of putSecrets.
func requireReadable(t *testing.T, m *memStore, d *Deployment, sub subscription.Subscription) {
	t.Helper()
	latest, _, err := m.Schemas().Latest("Greeter")
	require.NoError(t, err)
	require.Equal(t, d.ID, latest.ID)
	require.Equal(t, map[string]string{"authorization": "Bearer " + canary}, latest.AdditionalHeaders)
	cluster, known := m.KafkaCluster("main")
	require.True(t, known)
	require.NoError(t, cluster.Unreadable)
	require.Equal(t, canary, cluster.Properties["sasl.password"])
	stored, known := m.Subscription(sub.ID)
	require.True(t, known)
	client, err := subscription.ClientOf(&cluster, &stored)
	require.NoError(t, err)
	require.Equal(t, canary+"-own", client.SASL.Password)
}

// requireSealed checks that nothing that is stored contains a secret.
func requireSealed(t *testing.T, m *memStore) {
	t.Helper()
	m.view.eachSecret(func(at keyring.Place, stored string) { require.NotContains(t, stored, canary, at) })
	for _, q := range m.view.requests.list {
		require.False(t, bytes.Contains(q.result, []byte(canary)), "an outcome")
	}
}

func TestSecretsAreEncryptedBeforeTheyEnterTheLog(t *testing.T) {
	m := atLevel4(t)
	m.useKeys(testKeys(t, "a"))
	d, cluster, sub := putSecrets(t, m)
	require.Equal(t, "Bearer "+canary, d.AdditionalHeaders["authorization"], "the caller gets what it has stored")
	require.Equal(t, canary, cluster.Properties["sasl.password"])
	require.Equal(t, canary+"-own", sub.Properties["sasl.password"])
	requireReadable(t, m, d, sub)

	// The other changes of these records.
	updated, err := m.UpdateDeployment(t.Context(), Update{Deployment: d})
	require.NoError(t, err)
	require.Equal(t, d.AdditionalHeaders, updated.AdditionalHeaders)
	_, err = m.ModifyService(t.Context(), "Greeter", Options{Public: ptr(true)})
	require.NoError(t, err)
	_, err = m.ModifyService(t.Context(), "Greeter", Options{IngressAuth: ptr(IngressToken)})
	require.NoError(t, err)
	_, err = m.ChangeKafkaCluster(t.Context(), "main", func(p map[string]string) (map[string]string, error) { return p, nil })
	require.NoError(t, err)
	_, err = m.ResolveSubscription(t.Context(), sub.ID, 1, fullSubscription().Offsets)
	require.NoError(t, err)
	replaced, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{
		URI: d.URI, AdditionalHeaders: d.AdditionalHeaders, Services: d.Services, MinProtocol: 5, MaxProtocol: 6,
	}, Force: true})
	require.NoError(t, err)
	require.Equal(t, d.ID, replaced.Deployment.ID)
	unchanged, err := m.RegisterDeployment(t.Context(), withHeaders(map[string]string{"authorization": canary + "-other"}))
	require.NoError(t, err)
	require.Equal(t, Unchanged, unchanged.Change)

	requireReadable(t, m, d, sub)
	requireSealed(t, m)
	for _, entry := range m.entries {
		require.False(t, bytes.Contains(entry, []byte(canary)))
	}
	require.Equal(t, SecretsState{Keys: testKeys(t, "a").IDs(), Used: map[string]int{testKeys(t, "a").Newest(): 3}, Unreadable: []string{}}, m.Secrets())
}

func TestSecretsOfAMissingKeyAreNotUsed(t *testing.T) {
	m := atLevel4(t)
	m.useKeys(testKeys(t, "a"))
	d, _, sub := putSecrets(t, m)
	for name, keys := range map[string]*keyring.Keyring{"none": nil, "another": testKeys(t, "b")} {
		m.useKeys(keys)
		_, _, err := m.Schemas().Latest("Greeter")
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0020, code, name)
		require.EqualError(t, err, "[META0020] authorization of deployment "+string(d.ID)+" cannot be decrypted: it is encrypted with the key "+
			testKeys(t, "a").Newest()+", which this node does not have (security.secrets)")
		_, _, err = m.Schemas().Pinned(d.ID, "Greeter")
		require.Error(t, err)
		_, _, err = m.Schemas().Resolve("Greeter", "greet")
		require.NoError(t, err, "calls are accepted, and wait")
		cluster, _ := m.KafkaCluster("main")
		require.Error(t, cluster.Unreadable)
		require.Equal(t, "u", cluster.Properties["sasl.username"])
		stored, _ := m.Subscription(sub.ID)
		_, err = subscription.ClientOf(&cluster, &stored)
		code, _ = errcode.Of(err)
		require.Equal(t, errcode.META0020, code)
		require.Len(t, m.Secrets().Unreadable, 3)

		// A subscription can be paused, and everything else of the cluster can be changed.
		_, err = m.ChangeSubscription(t.Context(), sub.ID, func(s subscription.Subscription) (subscription.Subscription, error) { return s, nil })
		require.NoError(t, err)
		_, err = m.ChangeKafkaCluster(t.Context(), "main", func(p map[string]string) (map[string]string, error) { return p, nil })
		require.NoError(t, err)
		// Copied from elsewhere, an encrypted secret is rejected.
		_, err = m.ChangeKafkaCluster(t.Context(), "main", func(map[string]string) (map[string]string, error) {
			return map[string]string{"bootstrap.servers": "b:9092", "sasl.password": stored.Properties["sasl.password"]}, nil
		})
		require.ErrorContains(t, err, "set its value", name)
		_, err = m.RegisterDeployment(t.Context(), Registration{Force: true, Deployment: &Deployment{
			URI: "http://other/", AdditionalHeaders: m.Schemas().Deployments[d.ID].AdditionalHeaders, Services: d.Services,
		}})
		require.ErrorContains(t, err, "set its value", name)
	}
	m.useKeys(testKeys(t, "ba"))
	requireReadable(t, m, d, sub)
}

func TestANodeWithoutKeyDoesNotStoreSecretsInClear(t *testing.T) {
	m := atLevel4(t)
	m.useKeys(testKeys(t, "a"))
	putSecrets(t, m)
	m.useKeys(nil)
	count := len(m.entries)
	other := withHeaders(map[string]string{"authorization": canary})
	other.Deployment.URI = "http://other/"
	_, err := m.RegisterDeployment(t.Context(), other)
	require.ErrorContains(t, err, "this node has no key")
	_, err = m.CreateKafkaCluster(t.Context(), subscription.Cluster{Name: "b", Properties: map[string]string{
		"bootstrap.servers": "b:9092", "security.protocol": "sasl_ssl", "sasl.mechanism": "plain", "sasl.username": "u", "sasl.password": "p",
	}})
	require.ErrorContains(t, err, "this node has no key")
	require.Len(t, m.entries, count)
	_, err = m.RotateSecrets(t.Context())
	require.ErrorContains(t, err, "this node has no key")

	// The lost secret can be set again with another key.
	m.useKeys(testKeys(t, "b"))
	again := withHeaders(map[string]string{"authorization": canary + "-new"})
	again.Force = true
	_, err = m.RegisterDeployment(t.Context(), again)
	require.NoError(t, err)
	latest, _, err := m.Schemas().Latest("Greeter")
	require.NoError(t, err)
	require.Equal(t, canary+"-new", latest.AdditionalHeaders["authorization"])
}

func TestRotationEncryptsEverythingWithTheNewestKey(t *testing.T) {
	m := atLevel4(t)
	d, cluster, sub := putSecrets(t, m)
	require.Equal(t, 3, m.Secrets().Clear)
	requireReadable(t, m, d, sub)
	schemas, _ := m.Watch()
	revision := schemas.Services["Greeter"].Revision

	for _, letters := range []string{"a", "ba", "cb"} {
		keys := testKeys(t, letters)
		m.useKeys(keys)
		_, changed := m.Watch()
		rotated, err := m.RotateSecrets(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, rotated)
		<-changed
		requireReadable(t, m, d, sub)
		requireSealed(t, m)
		require.Equal(t, SecretsState{Keys: keys.IDs(), Used: map[string]int{keys.Newest(): 3}, Unreadable: []string{}}, m.Secrets())
		again, err := m.RotateSecrets(t.Context())
		require.NoError(t, err)
		require.Zero(t, again)
	}
	m.useKeys(testKeys(t, "c")) // the old keys are not needed
	requireReadable(t, m, d, sub)
	now, _ := m.KafkaCluster("main")
	require.Equal(t, cluster.Version, now.Version, "its readers need not restart")
	require.Equal(t, revision, m.Schemas().Services["Greeter"].Revision)
}

func TestRotationKeepsWhatWasChangedMeanwhile(t *testing.T) {
	m := atLevel4(t)
	putSecrets(t, m)
	m.useKeys(testKeys(t, "a"))
	batch := m.outdatedSecrets()
	require.Len(t, batch, 3)
	_, err := m.ChangeKafkaCluster(t.Context(), "main", func(p map[string]string) (map[string]string, error) {
		p = map[string]string{"bootstrap.servers": p["bootstrap.servers"], "security.protocol": "sasl_ssl", "sasl.mechanism": "plain", "sasl.username": "u", "sasl.password": canary + "-changed"}
		return p, nil
	})
	require.NoError(t, err)
	require.NoError(t, m.DeleteDeployment(t.Context(), m.Schemas().Services["Greeter"].Deployment))
	_, err = propose[any](t.Context(), &m.Store, &replaceSecrets{append(batch, replacedSecret{at: keyring.Place{Kind: "unknown"}})})
	require.NoError(t, err)
	cluster, _ := m.KafkaCluster("main")
	require.Equal(t, canary+"-changed", cluster.Properties["sasl.password"])
	require.Empty(t, m.Schemas().Deployments)
}

func TestRotationInSeveralBatches(t *testing.T) {
	m := atLevel4(t)
	headers := map[string]string{}
	for i := range maxReplaced + 7 {
		headers["x-"+strings.Repeat("a", i+1)] = canary
	}
	_, err := m.RegisterDeployment(t.Context(), withHeaders(headers))
	require.NoError(t, err)
	m.useKeys(testKeys(t, "a"))
	rotated, err := m.RotateSecrets(t.Context())
	require.NoError(t, err)
	require.Equal(t, maxReplaced+7, rotated)
	requireSealed(t, m)
}

func TestEncryptedSecretsCannotBeMoved(t *testing.T) {
	m := atLevel4(t)
	m.useKeys(testKeys(t, "a"))
	_, err := m.RegisterDeployment(t.Context(), withHeaders(map[string]string{"authorization": canary, "x-key": canary + "-2"}))
	require.NoError(t, err)
	id := m.Schemas().Services["Greeter"].Deployment
	stored := m.view.state.schemas.Deployments[id].AdditionalHeaders
	swapped := *m.view.state.schemas.Deployments[id]
	swapped.AdditionalHeaders = map[string]string{"authorization": stored["x-key"], "x-key": stored["authorization"]}
	d := newDraft(m.view.state)
	require.NoError(t, d.putDeployment(m.index, &swapped))
	m.view, _ = m.view.next(d)
	_, _, err = m.Schemas().Latest("Greeter")
	require.ErrorContains(t, err, "damaged, or belongs to another place")
	require.Len(t, m.Secrets().Unreadable, 2)
	rotated, err := m.RotateSecrets(t.Context())
	require.NoError(t, err)
	require.Zero(t, rotated, "rotation does not make them valid")
	require.Len(t, m.Secrets().Unreadable, 2)
}

func TestRegistrationThatRacesWithAnotherIsEncryptedAnew(t *testing.T) {
	m := atLevel4(t)
	m.useKeys(testKeys(t, "a"))
	prepared, err := m.prepare(withHeaders(map[string]string{"authorization": canary}))
	require.NoError(t, err)
	sealedFirst, err := m.sealRegistration(prepared)
	require.NoError(t, err)
	_, err = m.RegisterDeployment(t.Context(), withHeaders(map[string]string{"authorization": canary + "-first"}))
	require.NoError(t, err)

	sealedFirst.Force = true
	_, err = propose[Registered](t.Context(), &m.Store, &registerDeployment{sealedFirst})
	require.ErrorIs(t, err, errDeploymentsChanged)
	again := withHeaders(map[string]string{"authorization": canary})
	again.Force = true
	replaced, err := m.RegisterDeployment(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, Replaced, replaced.Change)
	_, _, err = m.Schemas().Latest("Greeter")
	require.NoError(t, err)
}

func TestRoutingHeadersAreNotEncrypted(t *testing.T) {
	m := atLevel4(t)
	m.useKeys(testKeys(t, "a"))
	register := func(route string) Registered {
		r := withHeaders(map[string]string{"X-Route": route, "authorization": canary})
		r.RoutingHeaders = []string{"X-Route"}
		registered, err := m.RegisterDeployment(t.Context(), r)
		require.NoError(t, err)
		return registered
	}
	m.routing = map[string]bool{}
	require.Equal(t, Created, register("eu").Change)
	m.routing = map[string]bool{"x-route": true} // it was not configured before
	rotated, err := m.RotateSecrets(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, rotated)
	require.Equal(t, Unchanged, register("eu").Change)
	require.Equal(t, Created, register("us").Change)
	require.Equal(t, Unchanged, register("us").Change)
	require.Zero(t, m.Secrets().Clear)
}

func TestEncryptedSecretsNeedLevel4(t *testing.T) {
	m := newMemStore()
	_, err := m.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level3})
	require.NoError(t, err)
	m.useKeys(testKeys(t, "a"))
	_, err = m.RegisterDeployment(t.Context(), withHeaders(map[string]string{"authorization": canary}))
	var rejected *feature.Error
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, feature.Level4, rejected.Needs)
	registered, err := m.RegisterDeployment(t.Context(), withHeaders(nil))
	require.NoError(t, err, "without headers there is nothing to encrypt")
	registered.Deployment.AdditionalHeaders = map[string]string{"authorization": canary}
	_, err = m.UpdateDeployment(t.Context(), Update{Deployment: registered.Deployment})
	require.ErrorAs(t, err, &rejected)

	m.useKeys(nil)
	_, err = m.UpdateDeployment(t.Context(), Update{Deployment: registered.Deployment})
	require.NoError(t, err, "as before")
	m.useKeys(testKeys(t, "a"))
	_, err = m.RotateSecrets(t.Context())
	require.ErrorAs(t, err, &rejected)
}

// The files of a replica, with its log, state and snapshots, contain no secret. The keys are
// changed while it runs, but one that is in use cannot be removed.
func TestFilesContainNoSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metadata")
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	stopped := false
	defer func() {
		if !stopped {
			require.NoError(t, stop())
		}
	}()
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	require.NoError(t, s.SetSecretKeys(testKeys(t, "a")))
	for i := range 30 {
		r := withHeaders(map[string]string{"authorization": canary})
		r.Force = i%2 == 0
		_, err = s.RegisterDeployment(t.Context(), r)
		require.NoError(t, err)
	}
	require.ErrorContains(t, s.SetSecretKeys(testKeys(t, "b")), "1 stored secrets are encrypted with the key "+testKeys(t, "a").Newest())
	require.NoError(t, s.SetSecretKeys(testKeys(t, "ba")))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // registrations continue while the keys rotate
		for ctx.Err() == nil {
			r := withHeaders(map[string]string{"authorization": canary})
			r.Force = true
			if _, err := s.RegisterDeployment(ctx, r); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 5 {
		_, err = s.RotateSecrets(t.Context())
		require.NoError(t, err)
	}
	cancel()
	require.NoError(t, <-done)
	_, err = s.RotateSecrets(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.SetSecretKeys(testKeys(t, "b")))
	latest, _, err := s.Schemas().Latest("Greeter")
	require.NoError(t, err)
	require.Equal(t, canary, latest.AdditionalHeaders["authorization"])

	require.NoError(t, stop())
	stopped = true
	require.Zero(t, filesWith(t, dir, canary))
	require.NotZero(t, filesWith(t, dir, testKeys(t, "b").Newest()), "the search finds what is there")
}

// filesWith counts the files of a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (count int) {
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			count++
		}
		return errors.Join(err)
	})
	require.NoError(t, err)
	return count
}
