package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/units"
)

// loadFile loads a configuration from a file with that text.
func loadFile(t *testing.T, text string, environ ...string) (*Loaded, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "restate.toml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return Load([]string{"--config-file", name}, environ)
}

func TestKeysWithReplacementsAreAccepted(t *testing.T) {
	for _, r := range replacements {
		path, value := r.path, "5"
		if prefix, ok := strings.CutSuffix(path, "*"); ok {
			path = prefix + "x"
		}
		if r.only != "" {
			value = "'" + strings.Fields(r.only)[0] + "'"
		}
		loaded, err := loadFile(t, path+" = "+value+"\n")
		require.NoError(t, err, path)
		warning := strings.Join(loaded.Warnings, "\n")
		require.Contains(t, warning, r.path+" (", path)
		require.Contains(t, warning, "has no effect; here: "+r.meaning, path)
	}
}

func TestKeysOfOtherServers(t *testing.T) {
	loaded, err := loadFile(t, `
roles = ["worker"]
experimental-enable-kafka-scope = false
experimental-enable-unique-random-seeds = true
[worker]
cleanup-interval = "1h"
[worker.invoker]
disable_eager_state = true
request-identity-private-key-pem-file = "key.pem"
[ingress]
kafka-clusters = []
[log-server]
rocksdb-block-size = "64.0 KiB"
rocksdb-memory-ratio = 0.5
[metadata-client]
type = "replicated"
`, "PLATFORM_GOSSIP_NUM_PEERS=3", "PLATFORM_BIFROST__DEFAULT_PROVIDER=replicated")
	require.NoError(t, err)
	require.Equal(t, units.ByteSize(0), loaded.Config.Worker.Invoker.EagerStateSizeLimit)
	require.Equal(t, "key.pem", loaded.Config.Worker.Invoker.RequestIdentityPrivateKeyPEMFile)
	warnings := strings.Join(loaded.Warnings, "\n")
	require.Equal(t, 1, strings.Count(warnings, "log-server ("), "one warning for a section")
	for _, part := range []string{"roles (", "worker.cleanup-interval (", "gossip-* (environment variable PLATFORM_GOSSIP_NUM_PEERS)", "bifrost (environment variable"} {
		require.Contains(t, warnings, part)
	}

	for text, want := range map[string]string{
		"[metadata-client]\ntype = 'etcd'":                    "metadata-client.type: only replicated is accepted",
		"listen-mode = 'unix'":                                "listen-mode: only tcp or all is accepted",
		"experimental-enable-kafka-scope = true":              "experimental-enable-kafka-scope: only false is accepted",
		"[ingress]\nlisten-mode = 'unix'":                     "ingress.listen-mode: only tcp or all is accepted",
		"[worker.invoker]\ndisable-eager-state = 'perhaps'":   "expected true or false",
		"[worker]\ncleanup-intervall = '1h'":                  "unknown key",
		"bifrosts = 1":                                        "unknown key",
		"[tls]\nmode = 'require'":                             "tls: unknown key",
		"request-identity-private-key-pem-file = 'misplaced'": "did you mean worker.invoker.request-identity-private-key-pem-file?",
	} {
		_, err := loadFile(t, text)
		require.ErrorContains(t, err, "RT0002", text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestFormerNamesOfAdvertisedAddresses(t *testing.T) {
	loaded, err := loadFile(t, `
[ingress]
advertised-ingress-endpoint = "https://calls.example.com/"
[admin]
advertised-admin-endpoint = "https://operators.example.com/"
`)
	require.NoError(t, err)
	require.Equal(t, "https://calls.example.com/", loaded.Config.Ingress.AdvertisedAddress)
	require.Equal(t, "https://operators.example.com/", loaded.Config.Admin.AdvertisedAddress)
	require.Contains(t, strings.Join(loaded.Warnings, "\n"), "is accepted; write ingress.advertised-address")
	_, err = loadFile(t, "[ingress]\nadvertised-ingress-endpoint = 'nowhere'\n")
	require.ErrorContains(t, err, "RT0002")
}

// TestReplacementsAreDocumented compares the table of docs/comparison.md with the code.
func TestReplacementsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/comparison.md")
	require.NoError(t, err)
	known := index(keys(Default()))
	for _, r := range replacements {
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | %s", r.path, r.meaning))
		_, exists := known[r.path]
		require.False(t, exists, "%s is a key here", r.path)
	}
}
