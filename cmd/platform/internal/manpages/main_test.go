package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachCommandHasAPage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, write(dir))
	for name, want := range map[string]string{
		"platform.1": "Run, call and manage durable services", "platform-invocations-list.1": "platform invocations list", "platform-server.1": "--config-file",
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(page), `.TH "PLATFORM`)
		require.Contains(t, string(page), want)
	}
}
