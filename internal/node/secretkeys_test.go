package node

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/keyring"
)

// secretKey returns a key that consists of one letter, as in a key file, and its ID.
func secretKey(t *testing.T, letter string) (text, id string) {
	text = base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, keyring.KeyBytes))) + "\n"
	keys, err := keyring.Parse(text)
	require.NoError(t, err)
	return text, keys.Newest()
}

// secretsStatus is a response of /cluster/secrets.
type secretsStatus struct {
	Encrypted bool
	Keys      []struct {
		ID              string
		Newest, Missing bool
		Secrets         int
	}
	Unencrypted int
	Unreadable  []string
	Nodes       []nodeSecretKeys
	Rotated     int
}

type nodeSecretKeys struct {
	Keys    []string
	Problem string
}

func (c *testCluster) secrets(i int) (status secretsStatus) {
	c.t.Helper()
	code, body := c.do(i, true, "GET", "/cluster/secrets", "")
	require.Equal(c.t, http.StatusOK, code, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), &status))
	return status
}

// awaitSecrets waits until the status of a node satisfies a condition.
func (c *testCluster) awaitSecrets(i int, condition func(secretsStatus) bool) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return condition(c.secrets(i)) }, waitTimeout, 50*time.Millisecond)
}

// Three nodes encrypt headers of a deployment and credentials of a Kafka cluster. The key is
// replaced while handlers are called, which get the headers throughout. One node then loses the
// key and gets it back. No file contains a secret in the end.
func TestSecretsAreEncryptedOnAllNodes(t *testing.T) {
	s := startSecretsCluster(t)
	s.storeSecrets()

	l := startLoad(s.testCluster)
	s.rotateToTheSecondKey()
	s.awaitCalls(l)
	s.removeTheFirstKey()
	s.awaitCalls(l)
	require.Empty(t, l.stop())

	s.startWithoutTheSecondKey(2)
	s.nothingIsLostWithoutTheKey(2)
	s.callsWaitForTheKey(2)

	s.noFileContainsASecret()
}

// secretsCluster is a cluster of three nodes with key files. secret is in the stored secrets only.
type secretsCluster struct {
	*testCluster
	secret            string
	first, second     string // keys, as in a file
	firstID, secondID string
	files             map[string]string // key files by node
}

// startSecretsCluster starts three nodes with the first key.
func startSecretsCluster(t *testing.T) *secretsCluster {
	s := &secretsCluster{secret: "canary-51c2e0", files: map[string]string{}}
	s.first, s.firstID = secretKey(t, "a")
	s.second, s.secondID = secretKey(t, "b")
	dir := t.TempDir()
	s.testCluster = newTestClusterWith(t, 3, func(cfg *config.Config) {
		s.files[cfg.NodeName] = filepath.Join(dir, cfg.NodeName+".keys")
		cfg.Security.Secrets.KeyFile = s.files[cfg.NodeName]
		require.NoError(t, os.WriteFile(cfg.Security.Secrets.KeyFile, []byte(s.first), 0o600))
	})
	s.healthy(3, 0, 1, 2)
	return s
}

// write replaces the key file of a node.
func (s *secretsCluster) write(node, keys string) {
	path := s.files[node]
	require.NoError(s.t, os.WriteFile(path+".new", []byte(keys), 0o600))
	require.NoError(s.t, os.Rename(path+".new", path))
}

// rotate requests that all secrets are encrypted with the newest key.
func (s *secretsCluster) rotate() (code int, body string) {
	return s.do(0, true, "POST", "/cluster/secrets/rotate", "")
}

// awaitCalls waits until the load has made some calls from now on.
func (s *secretsCluster) awaitCalls(l *load) {
	s.t.Helper()
	calls := l.calls.Load()
	require.Eventually(s.t, func() bool { return l.calls.Load() > calls+50 }, waitTimeout, 10*time.Millisecond)
}

// storeSecrets registers a deployment that requires a header, and creates a Kafka cluster with a
// password.
func (s *secretsCluster) storeSecrets() {
	s.guardedCounter(1, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+s.secret {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, `,"additional_headers":{"Authorization":"Bearer `+s.secret+`"}`)
	code, body := s.do(2, true, "POST", "/kafka-clusters", `{"name":"main","properties":`+kafkaProperties(s.secret)+`}`)
	require.Equal(s.t, http.StatusCreated, code, body)
	require.NotContains(s.t, body, s.secret)
	s.replicated(0, 1, 2)
}

func kafkaProperties(password string) string {
	return `{"bootstrap.servers":"127.0.0.1:1","security.protocol":"sasl_ssl","sasl.mechanism":"plain","sasl.username":"u","sasl.password":"` + password + `"}`
}

// rotateToTheSecondKey distributes the second key node by node. The rotation is refused until all
// nodes encrypt with it.
func (s *secretsCluster) rotateToTheSecondKey() {
	t := s.t
	s.write("n1", s.second+s.first) // too early for the others
	s.awaitSecrets(0, func(st secretsStatus) bool { return st.Keys[0].ID == s.secondID })
	code, body := s.rotate()
	require.Equal(t, http.StatusConflict, code, body)
	require.Contains(t, body, "node n2 does not have the key "+s.secondID)
	require.Contains(t, body, "META0020")

	s.write("n2", s.first+s.second)
	s.write("n3", s.second+s.first)
	s.awaitSecrets(0, func(st secretsStatus) bool {
		return slices.ContainsFunc(st.Nodes, func(n nodeSecretKeys) bool {
			return strings.HasPrefix(n.Problem, "encrypts with another key, "+s.firstID)
		})
	})
	code, body = s.rotate()
	require.Equal(t, http.StatusConflict, code, body) // n2 would replace them again

	s.write("n2", s.second+s.first)
	s.awaitSecrets(0, func(st secretsStatus) bool {
		return st.Nodes[0].Problem == "" && st.Nodes[1].Problem == "" && st.Nodes[2].Problem == ""
	})
	code, body = s.rotate()
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"rotated":2`)
}

// removeTheFirstKey leaves only the second key in the files, which suffices.
func (s *secretsCluster) removeTheFirstKey() {
	for node := range s.files {
		s.write(node, s.second)
	}
	for i := range s.nodes {
		s.awaitSecrets(i, func(st secretsStatus) bool {
			return len(st.Keys) == 1 && st.Keys[0].ID == s.secondID && st.Keys[0].Secrets == 2 && st.Unencrypted == 0 && len(st.Unreadable) == 0
		})
	}
}

// startWithoutTheSecondKey restarts a node with the first key only. The key that is in use cannot
// be taken away from a running node, only from one that starts. All nodes report the problem.
func (s *secretsCluster) startWithoutTheSecondKey(node int) {
	s.write(s.nodes[node].cfg.NodeName, s.first)
	s.awaitSecrets(node, func(st secretsStatus) bool { return st.Keys[0].ID == s.secondID })
	s.stop(node)
	s.start(node)
	require.Eventually(s.t, func() bool { // everything is replicated, and only the key is missing
		for i := range s.nodes {
			var health struct{ Problems []string }
			_, body := s.do(i, true, "GET", "/cluster-health", "")
			if json.Unmarshal([]byte(body), &health) != nil || len(health.Problems) != 1 ||
				!strings.Contains(health.Problems[0], " cannot decrypt 2 stored secrets: it does not have the key "+s.secondID) {
				return false
			}
		}
		return true
	}, 120*time.Second, 100*time.Millisecond)
	status := s.secrets(node)
	require.Len(s.t, status.Unreadable, 2)
	require.Contains(s.t, status.Unreadable[0], "encrypted with the key "+s.secondID)
	require.Equal(s.t, s.firstID, status.Keys[0].ID)
	require.True(s.t, status.Keys[1].Missing)
}

// nothingIsLostWithoutTheKey requires that a node without the key rejects changes that would lose
// secrets.
func (s *secretsCluster) nothingIsLostWithoutTheKey(node int) {
	t := s.t
	_, body := s.do(node, true, "GET", "/deployments", "")
	require.Contains(t, body, "META0020")
	var list struct{ Deployments []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	code, body := s.do(node, true, "PATCH", "/deployments/"+list.Deployments[0].ID, `{"use_http_11":false}`)
	require.Equal(t, http.StatusConflict, code, body) // without the header, which it would lose
	code, body = s.do(node, true, "PATCH", "/kafka-clusters/main", `{"properties":`+kafkaProperties("new")+`}`)
	require.Equal(t, http.StatusConflict, code, body) // the other nodes do not have the key that there is
	require.Contains(t, body, "which other nodes do not have: n")
}

// callsWaitForTheKey requires that calls wait while the leader of their partition cannot read the
// headers, and complete once it can.
func (s *secretsCluster) callsWaitForTheKey(node int) {
	var waiting sync.WaitGroup
	for key := range 16 {
		waiting.Go(func() {
			code, body := s.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
			assert.Equal(s.t, http.StatusOK, code, body)
		})
	}
	failed := func() bool {
		_, body := s.do(0, true, "POST", "/query", `{"query":"SELECT count(*) AS n FROM sys_invocation WHERE last_failure LIKE '%META0020%' OR last_failure_error_code = 'META0020'"}`)
		return strings.Contains(body, `"n":`) && !strings.Contains(body, `"n":0`)
	}
	leads := func() bool {
		_, body := s.do(0, true, "GET", "/cluster/nodes/"+s.nodes[node].cfg.NodeName, "")
		return strings.Contains(body, `"leaders":`) && !strings.Contains(body, `"leaders":0`)
	}
	if leads() {
		require.Eventually(s.t, failed, 2*time.Minute, 50*time.Millisecond)
	}
	s.write(s.nodes[node].cfg.NodeName, s.second+s.first)
	s.awaitSecrets(node, func(st secretsStatus) bool { return len(st.Unreadable) == 0 })
	waiting.Wait()
}

// noFileContainsASecret stops all nodes and searches their files.
func (s *secretsCluster) noFileContainsASecret() {
	for i := range s.nodes {
		s.stop(i)
	}
	count := 0
	require.NoError(s.t, filepath.WalkDir(s.nodes[0].cfg.BaseDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		require.False(s.t, bytes.Contains(content, []byte(s.secret)), path)
		count++
		return err
	}))
	require.Greater(s.t, count, 10)
}

func TestUnusableSecretKeysAreRefusedAtStart(t *testing.T) {
	good, _ := secretKey(t, "a")
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	for _, bad := range []struct {
		secrets config.Secrets
		message string
	}{
		{config.Secrets{KeyFile: filepath.Join(dir, "none")}, "security.secrets.key-file: stat"},
		{config.Secrets{KeyFile: write("public", good, 0o644)}, "chmod 600"},
		{config.Secrets{KeyFile: write("short", "c2hvcnQ=", 0o600)}, "key 1 is not 32 bytes in base64"},
		{config.Secrets{Keys: "hunter2"}, "security.secrets.keys: key 1 is not 32 bytes"},
	} {
		cfg := &config.Config{}
		cfg.Security.Secrets = bad.secrets
		_, err := openSecretKeys(cfg, nil)
		require.ErrorContains(t, err, bad.message)
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.RT0002, code)
		require.NotContains(t, err.Error(), "hunter2")
	}
	k, err := openSecretKeys(&config.Config{}, nil)
	require.NoError(t, err)
	require.Nil(t, k.keys, "off by default")
}
