package config

import (
	"errors"
	"fmt"
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
	changed := func() bool {
		r.Changed() // it may still be being written
		return r.Changed()
	}
	reload := func() (*Config, []Change) {
		t.Helper()
		require.True(t, changed())
		cfg, changes, err := r.Reload()
		require.NoError(t, err)
		require.False(t, changed())
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
	require.True(t, changed())
	_, _, err := r.Reload()
	require.ErrorContains(t, err, "abort-timeout: unknown key")
	require.False(t, changed(), "the error is reported once")
	_, changes = func() (*Config, []Change) { write("bind-port = 5\n"); return reload() }()
	require.Equal(t, []Change{
		{Key: "bind-port"},
		{Key: "max-journal-retention", From: "1h", To: "not set"},
		{Key: "default-retry-policy.max-attempts", From: "3", To: "70"},
		{Key: "worker.invoker.abort-timeout", From: "1m", To: "10m"},
	}, changes, "the server runs with this port")

	require.NoError(t, os.Remove(file))
	require.True(t, changed())
	_, _, err = r.Reload()
	require.ErrorContains(t, err, "cannot be read")
	require.False(t, changed())
	write("")
	require.True(t, changed(), "it is empty, but exists")
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

// Files are not always replaced in one step. A part of one is often valid, but lacks settings.
func TestFilesThatAreBeingWrittenAreNotReloaded(t *testing.T) {
	file := writeFile(t, "bind-port = 5\n")
	r := load(t, []string{"--config-file", file}).Reloader()
	for _, text := range []string{"", "bind-port", "bind-port = 6\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.False(t, r.Changed(), text)
	}
	require.True(t, r.Changed())
}

// A pipe is empty when it is read again, and reading it may block.
func TestPipesAreReadOnce(t *testing.T) {
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	_, err = in.WriteString("default-journal-retention = \"30d\"\n")
	require.NoError(t, errors.Join(err, in.Close()))
	loaded := load(t, []string{"--config-file", fmt.Sprintf("/dev/fd/%d", out.Fd())})
	require.Equal(t, 30*24*time.Hour, loaded.Config.DefaultJournalRetention.Std())
	r := loaded.Reloader()
	for range 3 {
		require.False(t, r.Changed())
	}
	_, _, err = r.Reload()
	require.ErrorContains(t, err, "no regular file")
}
