package admin

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/keyring"
	"platform/internal/subscription"
	"platform/metadata"
)

func secretKeys(t *testing.T, letters string) *keyring.Keyring {
	var list []string
	for _, letter := range letters {
		list = append(list, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(letter), keyring.KeyBytes))))
	}
	keys, err := keyring.Parse(strings.Join(list, ","))
	require.NoError(t, err)
	return keys
}

func TestSecretsAreRotatedOnceAllNodesHaveTheKey(t *testing.T) {
	const canary = "canary-77"
	w := newTestServer(t, nil)
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	for _, name := range []string{"n1", "n2"} {
		_, err := w.store.RegisterNode(t.Context(), metadata.Node{Name: name, Incarnation: "i-" + name, FabricAddress: "http://" + name + ":5122/", FeatureLevel: feature.Level4})
		require.NoError(t, err)
	}
	w.offers["http://a/"] = func() (*metadata.Deployment, error) {
		return &metadata.Deployment{MinProtocol: 5, MaxProtocol: 5, Services: []*metadata.Service{{Name: "Greeter"}}}, nil
	}
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://a","additional_headers":{"Authorization":"`+canary+`"}}`))
	body := requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/secrets", ""))
	require.Contains(t, body, `"encrypted":false,"keys":[],"unencrypted":1,"unreadable":[]`)
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/cluster/secrets/rotate", "")), "this node has no key")

	keys := secretKeys(t, "a")
	require.NoError(t, w.store.SetSecretKeys(keys))
	nodes := map[uint32][]string{1: keys.IDs()}
	w.cluster.change = func(s *ClusterState) {
		for i := range s.Nodes {
			s.Nodes[i].SecretKeys, s.Nodes[i].Answers = nodes[uint32(s.Nodes[i].ID)], nodes[uint32(s.Nodes[i].ID)] != nil
		}
	}
	for _, tc := range []struct {
		keys   []string
		reason string
	}{
		{nil, "node n2 does not respond"},
		{[]string{"0000"}, "node n2 does not have the key " + keys.Newest()},
		{[]string{"0000", keys.Newest()}, "node n2 encrypts with another key, 0000; make the first line of security.secrets.key-file the same on all nodes"},
	} {
		nodes[2] = tc.keys
		body := requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/cluster/secrets/rotate", ""))
		require.Contains(t, body, "no secret was encrypted: "+tc.reason)
		require.Contains(t, body, `"platform_code":"META0020"`)
	}
	require.Equal(t, 1, w.store.Secrets().Clear)
	requireStatus(t, http.StatusBadRequest, w.ask(t, "POST", "/cluster/secrets/rotate?force=perhaps", ""))
	nodes[2] = keys.IDs()
	body = requireStatus(t, http.StatusOK, w.ask(t, "POST", "/cluster/secrets/rotate", ""))
	require.Contains(t, body, `"keys":[{"id":"`+keys.Newest()+`","newest":true,"missing":false,"secrets":1}],"unencrypted":0`)
	require.Contains(t, body, `"rotated":1`)
	nodes[2] = nil
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "POST", "/cluster/secrets/rotate?force", "")), `"rotated":0`)

	body = requireStatus(t, http.StatusOK, w.ask(t, "GET", "/deployments", ""))
	require.Contains(t, body, `"authorization":"***"`)
	require.NotContains(t, body, canary)
	require.NotContains(t, body, "aes-256-gcm")
}

// Secrets are stored only if all nodes can decrypt them, and the health tells which cannot.
func TestNodesWithoutTheKeyAreReported(t *testing.T) {
	w := newTestServer(t, nil)
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	keys := secretKeys(t, "a")
	require.NoError(t, w.store.SetSecretKeys(keys))
	asked := 0
	w.offers["http://a/"] = func() (*metadata.Deployment, error) {
		asked++
		return &metadata.Deployment{MinProtocol: 5, MaxProtocol: 5, Services: []*metadata.Service{{Name: "Greeter"}}}, nil
	}
	var second []string
	w.cluster.change = func(s *ClusterState) {
		s.Feature.Level = uint32(feature.Level4)
		s.Nodes = []NodeState{
			{ID: 1, Name: "n1", State: NodeAlive, Answers: true, SecretKeys: keys.IDs()},
			{ID: 2, Name: "n2", State: NodeAlive, Answers: true, SecretKeys: second},
		}
	}
	const registration = `{"uri":"http://a","additional_headers":{"Authorization":"x"}}`
	body := requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/deployments", registration))
	require.Contains(t, body, "the headers of the deployment would be encrypted with the key "+keys.Newest()+" of this node, which other nodes do not have: n2;")
	require.Zero(t, asked, "the endpoint does not get the headers")
	body = requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/kafka-clusters", `{"name":"main","properties":{"bootstrap.servers":"b:9092","sasl.password":"x"}}`))
	require.Contains(t, body, `the credentials would be encrypted`)
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/kafka-clusters", `{"name":"open","properties":{"bootstrap.servers":"b:9092"}}`))
	body = requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/kafka-clusters/open", `{"properties":{"bootstrap.servers":"b:9092","sasl.password":"x"}}`))
	require.Contains(t, body, `the credentials would be encrypted`)
	sub := storedSubscription(t, w)
	body = requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/subscriptions/"+sub, `{"options":{"sasl.password":"x"}}`))
	require.Contains(t, body, `the credentials would be encrypted`)
	second = keys.IDs()
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", registration))

	require.NotContains(t, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster-health", "")), "cannot decrypt")
	second = nil
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster-health", "")),
		"node n2 (N2) cannot decrypt 1 stored secret: it does not have the key "+keys.Newest())
	id := string(w.store.Schemas().Services["Greeter"].Deployment)
	requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/deployments/"+id, `{"additional_headers":{"Authorization":"y"}}`))
}

// storedSubscription stores a subscription to the cluster open, and returns its ID.
func storedSubscription(t *testing.T, w *testServer) string {
	t.Helper()
	sub, err := w.store.CreateSubscription(t.Context(), subscription.Subscription{
		ID: w.store.NewSubscriptionID(), Source: subscription.Source{Cluster: "open", Topics: []string{"t"}}, Sink: subscription.Sink{Service: "S", Handler: "h"},
		Options: subscription.Options{AllHeaders: true, MaxInFlight: 1}, Start: subscription.Start{Kind: subscription.StartLatest},
	})
	require.NoError(t, err)
	return sub.ID
}

// An update that does not name the headers keeps them, and only the server encrypts.
func TestAnUpdateKeepsEncryptedHeaders(t *testing.T) {
	w := newTestServer(t, nil)
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	d := func() (*metadata.Deployment, error) {
		return &metadata.Deployment{MinProtocol: 5, MaxProtocol: 5, Services: []*metadata.Service{{Name: "Greeter"}}}, nil
	}
	w.offers["http://a/"], w.offers["http://b/"] = d, d
	require.NoError(t, w.store.SetSecretKeys(secretKeys(t, "a")))
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://a","additional_headers":{"Authorization":"x"}}`))
	id := string(w.store.Schemas().Services["Greeter"].Deployment)
	_, err = w.store.UpdateDeployment(t.Context(), metadata.Update{Deployment: &metadata.Deployment{
		ID: w.store.Schemas().Services["Greeter"].Deployment, URI: "http://a/", MinProtocol: 5, MaxProtocol: 5,
		AdditionalHeaders: map[string]string{"authorization": "\x00aes-256-gcm:0123456789abcdef:AAAA"}, Services: []*metadata.Service{{Name: "Greeter"}},
	}})
	require.ErrorContains(t, err, "set its value", "a value that only looks encrypted is rejected")
	asked := len(w.asked)
	require.NoError(t, w.store.SetSecretKeys(secretKeys(t, "ba")))
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/deployments/"+id, `{"uri":"http://b"}`))
	require.Equal(t, "x", w.asked[asked].AdditionalHeaders["authorization"])
}
