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
	require.Eventually(c.t, func() bool { return condition(c.secrets(i)) }, 60*time.Second, 50*time.Millisecond)
}

// Three nodes encrypt headers of a deployment and credentials of a Kafka cluster. The key is
// replaced while handlers are called, which get the headers throughout. One node then loses the
// key and gets it back. No file contains a secret in the end.
func TestSecretsAreEncryptedOnAllNodes(t *testing.T) {
	const canary = "canary-51c2e0"
	first, firstID := secretKey(t, "a")
	second, secondID := secretKey(t, "b")
	files := map[string]string{}
	dir := t.TempDir()
	write := func(node, keys string) {
		path := files[node]
		require.NoError(t, os.WriteFile(path+".new", []byte(keys), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	c := newTestClusterWith(t, 3, func(cfg *config.Config) {
		files[cfg.NodeName] = filepath.Join(dir, cfg.NodeName+".keys")
		cfg.Security.Secrets.KeyFile = files[cfg.NodeName]
		write(cfg.NodeName, first)
	})
	c.healthy(3, 0, 1, 2)
	c.guardedCounter(1, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+canary {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, `,"additional_headers":{"Authorization":"Bearer `+canary+`"}`)
	code, body := c.do(2, true, "POST", "/kafka-clusters", `{"name":"main","properties":{"bootstrap.servers":"127.0.0.1:1","security.protocol":"sasl_ssl",
		"sasl.mechanism":"plain","sasl.username":"u","sasl.password":"`+canary+`"}}`)
	require.Equal(t, http.StatusCreated, code, body)
	require.NotContains(t, body, canary)
	c.replicated(0, 1, 2)

	l := startLoad(c)
	write("n1", second+first) // too early for the others
	c.awaitSecrets(0, func(s secretsStatus) bool { return s.Keys[0].ID == secondID })
	code, body = c.do(0, true, "POST", "/cluster/secrets/rotate", "")
	require.Equal(t, http.StatusConflict, code, body)
	require.Contains(t, body, "node n2 does not have the key "+secondID)
	require.Contains(t, body, "META0020")
	write("n2", first+second)
	write("n3", second+first)
	c.awaitSecrets(0, func(s secretsStatus) bool {
		return slices.ContainsFunc(s.Nodes, func(n nodeSecretKeys) bool {
			return strings.HasPrefix(n.Problem, "encrypts with another key, "+firstID)
		})
	})
	code, body = c.do(0, true, "POST", "/cluster/secrets/rotate", "")
	require.Equal(t, http.StatusConflict, code, body) // n2 would replace them again
	write("n2", second+first)
	c.awaitSecrets(0, func(s secretsStatus) bool {
		return s.Nodes[0].Problem == "" && s.Nodes[1].Problem == "" && s.Nodes[2].Problem == ""
	})
	code, body = c.do(0, true, "POST", "/cluster/secrets/rotate", "")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"rotated":2`)
	calls := l.calls.Load()
	require.Eventually(t, func() bool { return l.calls.Load() > calls+50 }, 60*time.Second, 10*time.Millisecond)
	for _, node := range []string{"n1", "n2", "n3"} {
		write(node, second)
	}
	for i := range c.nodes {
		c.awaitSecrets(i, func(s secretsStatus) bool {
			return len(s.Keys) == 1 && s.Keys[0].ID == secondID && s.Keys[0].Secrets == 2 && s.Unencrypted == 0 && len(s.Unreadable) == 0
		})
	}
	calls = l.calls.Load()
	require.Eventually(t, func() bool { return l.calls.Load() > calls+50 }, 60*time.Second, 10*time.Millisecond)
	require.Empty(t, l.stop())

	// The key that is in use cannot be taken away from a running node, only from one that starts.
	write("n3", first)
	c.awaitSecrets(2, func(s secretsStatus) bool { return s.Keys[0].ID == secondID })
	c.stop(2)
	c.start(2)
	require.Eventually(t, func() bool { // everything is replicated, and only the key is missing
		for i := range c.nodes {
			var health struct{ Problems []string }
			_, body := c.do(i, true, "GET", "/cluster-health", "")
			if json.Unmarshal([]byte(body), &health) != nil || len(health.Problems) != 1 ||
				!strings.Contains(health.Problems[0], " cannot decrypt 2 stored secrets: it does not have the key "+secondID) {
				return false
			}
		}
		return true
	}, 120*time.Second, 100*time.Millisecond)
	status := c.secrets(2)
	require.Len(t, status.Unreadable, 2)
	require.Contains(t, status.Unreadable[0], "encrypted with the key "+secondID)
	require.Equal(t, firstID, status.Keys[0].ID)
	require.True(t, status.Keys[1].Missing)
	_, body = c.do(2, true, "GET", "/deployments", "")
	require.Contains(t, body, "META0020")
	var list struct{ Deployments []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	code, body = c.do(2, true, "PATCH", "/deployments/"+list.Deployments[0].ID, `{"use_http_11":false}`)
	require.Equal(t, http.StatusConflict, code, body) // without the header, which it would lose
	code, body = c.do(2, true, "PATCH", "/kafka-clusters/main", `{"properties":{"bootstrap.servers":"127.0.0.1:1","security.protocol":"sasl_ssl",
		"sasl.mechanism":"plain","sasl.username":"u","sasl.password":"new"}}`)
	require.Equal(t, http.StatusConflict, code, body) // the other nodes do not have the key that there is
	require.Contains(t, body, "which other nodes do not have: n")
	// Calls wait while the leader of their partition cannot read the headers.
	var waiting sync.WaitGroup
	for key := range 16 {
		waiting.Go(func() {
			code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
			assert.Equal(t, http.StatusOK, code, body)
		})
	}
	failed := func() bool {
		_, body := c.do(0, true, "POST", "/query", `{"query":"SELECT count(*) AS n FROM sys_invocation WHERE last_failure LIKE '%META0020%' OR last_failure_error_code = 'META0020'"}`)
		return strings.Contains(body, `"n":`) && !strings.Contains(body, `"n":0`)
	}
	leads := func() bool {
		_, body := c.do(0, true, "GET", "/cluster/nodes/n3", "")
		return strings.Contains(body, `"leaders":`) && !strings.Contains(body, `"leaders":0`)
	}
	if leads() {
		require.Eventually(t, failed, 60*time.Second, 50*time.Millisecond)
	}
	write("n3", second+first)
	c.awaitSecrets(2, func(s secretsStatus) bool { return len(s.Unreadable) == 0 })
	waiting.Wait()

	for i := range c.nodes {
		c.stop(i)
	}
	count := 0
	require.NoError(t, filepath.WalkDir(c.nodes[0].cfg.BaseDir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		require.False(t, bytes.Contains(content, []byte(canary)), path)
		count++
		return err
	}))
	require.Greater(t, count, 10)
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
