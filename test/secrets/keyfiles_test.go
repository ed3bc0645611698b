package secrets

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/test/harness"
)

// keyFile is a kind of file with a secret.
type keyFile struct {
	setting string // as in messages
	env     map[string]string
	path    string // of the file
	open    bool   // is accepted with a warning in the mode open
}

// keyFiles returns a valid file of each kind, which only its owner can read.
func keyFiles(t *testing.T, cluster, node string) []keyFile {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	ca := certs.NewDirectory(filepath.Join(dir, "ca"))
	require.NoError(t, ca.Init(cluster, time.Hour))
	issued, err := ca.Node(node, time.Hour)
	require.NoError(t, err)
	in := func(name string) string { return filepath.Join(issued, name) }
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	secret := write("oidc.secret", "secret")
	nodeTLS := map[string]string{
		"SECURITY__NODE_TLS__MODE": "require", "SECURITY__NODE_TLS__CERT_FILE": in("node.crt"), "SECURITY__NODE_TLS__KEY_FILE": in("node.key"),
		"SECURITY__NODE_TLS__CA_FILE": in("ca.crt"), "SECURITY__NODE_TLS__PACKET_KEY_FILE": in("gossip.key"),
	}
	gossip := write("cluster.key", key)
	identity := write("identity.pem", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n")
	secrets, admin := write("secrets.key", key+"\n"), write("admin.token", strings.Repeat("x", 40))
	return []keyFile{
		{"networking.gossip-key-file", map[string]string{"NETWORKING__GOSSIP_KEY_FILE": gossip}, gossip, true},
		{"worker.invoker.request-identity-private-key-pem-file", map[string]string{"WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE": identity}, identity, true},
		{"ingress.tls", map[string]string{"INGRESS__TLS__CERT_FILE": in("node.crt"), "INGRESS__TLS__KEY_FILE": in("node.key")}, in("node.key"), false},
		{"admin.tls", map[string]string{"ADMIN__TLS__CERT_FILE": in("node.crt"), "ADMIN__TLS__KEY_FILE": in("node.key")}, in("node.key"), false},
		{"security.node-tls", nodeTLS, in("node.key"), false},
		{"packet-key-file", nodeTLS, in("gossip.key"), false},
		{"security.secrets.key-file", map[string]string{"SECURITY__SECRETS__KEY_FILE": secrets}, secrets, false},
		{"security.admin-token-file", map[string]string{"SECURITY__ADMIN_TOKEN_FILE": admin}, admin, false},
		{"security.oidc.client-secret", map[string]string{
			"SECURITY__OIDC__ISSUER": "http://127.0.0.1:1", "SECURITY__OIDC__EXTERNAL_URL": "http://127.0.0.1:9070", "SECURITY__OIDC__CLIENT_ID": "c",
			"SECURITY__OIDC__ROLES_CLAIM": "groups", "SECURITY__OIDC__ROLES": `{"a":"viewer"}`, "SECURITY__OIDC__CLIENT_SECRET": "file:" + secret,
		}, secret, false},
	}
}

// A server does not start with a key that every user of the machine can read, and says what to do.
// That the group of the file can read it is no error: Kubernetes mounts secrets like that.
func TestKeyFilesThatEveryUserCanReadAreRefused(t *testing.T) {
	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	start := func(t *testing.T, env map[string]string) (*harness.Server, func() string) {
		dir := t.TempDir()
		s, err := harness.NewServer(target, harness.ServerOptions{Dir: dir, Env: env})
		require.NoError(t, err)
		require.NoError(t, s.Launch())
		t.Cleanup(s.Process.Kill)
		return s, func() string {
			text, err := os.ReadFile(filepath.Join(dir, "server.log"))
			require.NoError(t, err)
			return string(text)
		}
	}
	ready := func(log func() string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log(), "server ready") }, time.Minute, 10*time.Millisecond, log)
	}
	all, accepted := map[string]string{}, map[string]string{"SECURITY__MODE": "open"}
	for _, k := range keyFiles(t, "localcluster", "n1") {
		require.NoError(t, os.Chmod(k.path, 0o604))
		s, log := start(t, k.env)
		require.NoError(t, s.Process.AwaitExit(time.Minute), log())
		require.Error(t, s.Process.Err())
		require.Contains(t, log(), k.setting)
		require.Contains(t, log(), "every user of this machine has access to "+k.path+" (mode 0604); run chmod 600 "+k.path)
		maps.Copy(all, k.env)
		if k.open {
			maps.Copy(accepted, k.env)
			continue
		}
		require.NoError(t, os.Chmod(k.path, 0o640))
	}
	_, log := start(t, accepted)
	ready(log)
	for _, name := range []string{"NETWORKING__GOSSIP_KEY_FILE", "WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE"} {
		require.Contains(t, log(), "every user of this machine has access to "+accepted[name])
		require.NoError(t, os.Chmod(accepted[name], 0o640))
	}
	_, log = start(t, all)
	ready(log)
	require.NotContains(t, log(), "every user of this machine")
}
