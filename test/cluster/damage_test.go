package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// damageLogTables flips a bit in the first block of each table of a stopped node's log database.
func (b *testbed) damageLogTables(t *testing.T, node int) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(b.dataDir(node), "log", "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, path := range tables {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[10] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}

// TestReplicasWhoseLogsCannotBeOpenedAreRebuilt damages the first entries in the logs of a node, which are then in tables.
// The others rebuild its replicas, which can be relied on afterwards.
func TestReplicasWhoseLogsCannotBeOpenedAreRebuilt(t *testing.T) {
	b := newTestbed(t, testbedOptions{nodes: 3, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "4"}})
	ctx, counts := t.Context(), counterValues{}
	for range 3 {
		b.addToCounters(ctx, t, 0, counts)
	}
	b.Nodes[2].Kill()
	require.NoError(t, b.Nodes[2].Restart(ctx)) // writes the entries to a table
	b.awaitVoters(ctx, t, 0, 3)
	b.Nodes[2].Kill()
	b.damageLogTables(t, 2)
	require.NoError(t, b.Nodes[2].Restart(ctx))
	b.awaitVoters(ctx, t, 0, 3)
	b.Nodes[0].Kill()
	b.requireCounters(ctx, t, 2, counts)
	b.addToCounters(ctx, t, 2, counts)
	b.requireCounters(ctx, t, 1, counts)
}
