package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
)

// Launchers must not start a node again and again that can only end.
func TestLaunchersKnowTheExitStatuses(t *testing.T) {
	read := func(path string) string {
		raw, err := os.ReadFile(filepath.Join("..", "..", path))
		require.NoError(t, err)
		return string(raw)
	}
	require.Contains(t, read("deploy/platform-server.service"), fmt.Sprintf("RestartPreventExitStatus=%d %d\n", exitUnsupported, exitRemoved))
	require.Contains(t, read("deploy/platform-server.service"), "\nStartLimitIntervalSec=0\n", "systemd would give up after five failures in ten seconds")
	compose := read("deploy/docker-compose.yml")
	require.Contains(t, compose, "restart: on-failure:10\n")
	require.NotContains(t, compose, "restart: unless-stopped")
	for _, status := range []int{0, 1, exitUnsupported, exitRemoved} {
		require.Contains(t, read("docs/operate.md"), fmt.Sprintf("\n| %d | ", status))
	}
	require.Contains(t, config.Usage(), fmt.Sprintf("%d the cluster needs a newer release", exitUnsupported))
	require.Contains(t, config.Usage(), fmt.Sprintf("%d this node was removed", exitRemoved))
}
