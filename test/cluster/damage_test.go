package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore/logstoretest"
)

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
	logstoretest.DamageTables(t, filepath.Join(b.dataDir(2), "log"))
	require.NoError(t, b.Nodes[2].Restart(ctx))
	b.awaitVoters(ctx, t, 0, 3)
	b.Nodes[0].Kill()
	b.requireCounters(ctx, t, 2, counts)
	b.addToCounters(ctx, t, 2, counts)
	b.requireCounters(ctx, t, 1, counts)
}
