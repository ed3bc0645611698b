package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReload(t *testing.T) {
	file := writeFile(t, "bind-port = 5\n")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	r := load(t, []string{"--cluster-name", "flag"}, "PLATFORM_CONFIG="+file, "PLATFORM_LOG_FILTER=error").Reloader()
	reload := func() (*Config, []Change) {
		t.Helper()
		require.True(t, r.Changed())
		cfg, changes, err := r.Reload()
		require.NoError(t, err)
		require.False(t, r.Changed())
		return cfg, changes
	}
	_, changes := reload() // it may have changed since it was loaded
	require.Empty(t, changes)

	write(`
		bind-port = 6
		cluster-name = "file"
		log-filter = "debug"
		max-journal-retention = "1h"
		[default-retry-policy]
		max-attempts = 3
		[worker.invoker]
		abort-timeout = "1m"`)
	cfg, changes := reload()
	require.Equal(t, []Change{
		{Key: "bind-port", Pending: true},
		{Key: "max-journal-retention", From: "not set", To: "1h"},
		{Key: "default-retry-policy.max-attempts", From: "70", To: "3"},
		{Key: "worker.invoker.abort-timeout", From: "10m", To: "1m"},
	}, changes, "the other sources take precedence")
	require.Equal(t, time.Minute, cfg.Worker.Invoker.AbortTimeout.Std())
	require.Equal(t, "flag", cfg.ClusterName)

	write("bind-port = 5\nabort-timeout = 1\n")
	require.True(t, r.Changed())
	_, _, err := r.Reload()
	require.ErrorContains(t, err, "abort-timeout: unknown key")
	require.False(t, r.Changed(), "the error is reported once")
	_, changes = func() (*Config, []Change) { write("bind-port = 5\n"); return reload() }()
	require.Equal(t, []Change{
		{Key: "bind-port"},
		{Key: "max-journal-retention", From: "1h", To: "not set"},
		{Key: "default-retry-policy.max-attempts", From: "3", To: "70"},
		{Key: "worker.invoker.abort-timeout", From: "1m", To: "10m"},
	}, changes, "the server runs with this port")

	require.NoError(t, os.Remove(file))
	require.True(t, r.Changed())
	_, _, err = r.Reload()
	require.ErrorContains(t, err, "cannot be read")
	require.False(t, r.Changed())
	write("")
	require.True(t, r.Changed(), "it is empty, but exists")
	require.False(t, load(t, nil).Reloader().Changed(), "there is no file")
}

// Values that apply while the server runs are logged.
func TestLiveKeysExistAndAreNoSecrets(t *testing.T) {
	byPath := index(keys(Default()))
	for _, path := range live {
		require.Contains(t, byPath, path)
		for _, hidden := range secret {
			require.False(t, path == hidden || strings.HasPrefix(hidden, path+"."), path)
		}
	}
}
