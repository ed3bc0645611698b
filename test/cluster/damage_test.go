package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore/logstoretest"
	"platform/test/harness"
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

// TestTwoReplicasWithDamagedRowsAreRebuilt damages the inputs of the same invocations on two nodes, which find them when the
// replicas are compared, at the same index of the log. The partition is served all the time, the two replicas are rebuilt
// one after the other, and nothing is lost.
func TestTwoReplicasWithDamagedRowsAreRebuilt(t *testing.T) {
	b := newTestbed(t, testbedOptions{nodes: 3, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "1", "WORKER__DIGEST_INTERVAL": "300"}})
	ctx, counts := t.Context(), counterValues{}
	text := `"` + strings.Repeat("large ", 2<<10) + `"` // is in a blob file
	for i := range 20 {
		a, err := b.Nodes[0].Client.Call(ctx, harness.Path("Ledger", fmt.Sprint(i), "add"), []byte(text))
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
	}
	b.awaitVoters(ctx, t, 0, 3)
	for _, i := range []int{1, 2} {
		require.NoError(t, b.Nodes[i].Stop()) // writes the inputs to files
		damageBlobs(t, filepath.Join(b.dataDir(i), "state"))
	}
	for _, i := range []int{1, 2} {
		require.NoError(t, b.Nodes[i].Launch())
	}
	require.NoError(t, b.AwaitHealthy(ctx))
	b.awaitVoters(ctx, t, 0, 3) // so that both take part in the next comparison
	rebuilt := func(i int) bool {
		return strings.Contains(b.Nodes[i].Process.LogTail(1000), "quarantined replica removed")
	}
	limit, cancel := context.WithTimeout(ctx, replicationTimeout)
	defer cancel()
	for !rebuilt(1) || !rebuilt(2) {
		b.addToCounters(limit, t, 0, counts)
		harness.Sleep(limit, 100*time.Millisecond)
	}
	b.awaitVoters(ctx, t, 0, 3)
	b.Nodes[0].Kill()
	b.requireCounters(ctx, t, 1, counts)
	for i := range 20 {
		a, err := b.Nodes[2].Client.Call(ctx, harness.Path("Ledger", fmt.Sprint(i), "entries"), nil)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(a.Body), strings.Trim(text, `"`)))
	}
}

// damageBlobs flips a bit in a value of each blob file of a closed Pebble database.
func damageBlobs(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[len(data)/4] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}

// TestTheOnlyNodeContinuesWithDamagedEntries damages the first entries in the log of one partition on the only node, and
// follows the messages. The other partitions lose nothing. This one continues from its tables, and loses what the command has
// reported.
func TestTheOnlyNodeContinuesWithDamagedEntries(t *testing.T) {
	b := newTestbed(t, testbedOptions{nodes: 1, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "4"}})
	ctx, counts := t.Context(), counterValues{}
	b.addToCounters(ctx, t, 0, counts)
	require.NoError(t, b.Nodes[0].Stop()) // writes the tables
	require.NoError(t, b.Nodes[0].Restart(ctx))
	b.addToCounters(ctx, t, 0, counts)
	b.Nodes[0].Kill()
	require.NoError(t, b.Nodes[0].Restart(ctx)) // writes the entries since then to a table of the log
	b.Nodes[0].Kill()
	logstoretest.DamageTables(t, filepath.Join(b.dataDir(0), "log"))
	require.NoError(t, b.Nodes[0].Restart(ctx))

	var state harness.ClusterState
	require.Eventually(t, func() bool {
		var err error
		state, err = b.Nodes[0].State(ctx)
		return err == nil && len(state.Problems) > 0 && strings.Contains(strings.Join(state.Problems, " "), "accept-loss")
	}, time.Minute, 50*time.Millisecond)
	problems := strings.Join(state.Problems, " ")
	require.Contains(t, problems, "is damaged")
	require.Contains(t, problems, "platform-server repair accept-loss --group 1 --data-dir "+b.dataDir(0))
	require.NotContains(t, problems, "--group 2")
	require.NoError(t, b.Nodes[0].Stop())

	repair := func(args ...string) string {
		t.Helper()
		out, err := runCommand(t, "platform/cmd/platform-server", nil, append(args, "--data-dir", b.dataDir(0))...)
		require.NoError(t, err, out)
		return out
	}
	require.Contains(t, repair("inspect"), "is damaged")
	out := repair("repair", "accept-loss", "--group", "1", "--yes")
	require.Contains(t, out, "Kept: everything up to entry ")
	complete := strings.Contains(out, "Lost: no known entries") // the tables have them
	require.NotContains(t, repair("inspect"), "is damaged")
	require.NoError(t, b.Nodes[0].Restart(ctx))
	lost := 0
	for key, want := range counts {
		a, err := b.Nodes[0].Client.Call(ctx, harness.Path("Counter", key, "add"), []byte("0"))
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
		if string(a.Body) == fmt.Sprint(want-1) {
			counts[key]--
			lost++
		}
	}
	require.Equal(t, complete, lost == 0, out)
	require.Less(t, lost, len(counts)/2)
	b.addToCounters(ctx, t, 0, counts)
	b.Nodes[0].Kill()
	require.NoError(t, b.Nodes[0].Restart(ctx))
	b.requireCounters(ctx, t, 0, counts)
}

// TestTwoReplicasWhoseLogsCannotBeOpenedAreRecovered damages the first entries in the logs of two of three nodes. A partition
// then has no majority, until an operator follows the status. The remaining replica has everything, so that nothing is lost.
func TestTwoReplicasWhoseLogsCannotBeOpenedAreRecovered(t *testing.T) {
	b := newTestbed(t, testbedOptions{nodes: 3, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "2"}})
	ctx, counts := t.Context(), counterValues{}
	b.addToCounters(ctx, t, 0, counts)
	for _, i := range []int{1, 2} {
		b.Nodes[i].Kill()
		require.NoError(t, b.Nodes[i].Restart(ctx)) // writes the entries to a table
		b.awaitVoters(ctx, t, 0, 3)
	}
	for _, i := range []int{1, 2} {
		b.Nodes[i].Kill()
		logstoretest.DamageTables(t, filepath.Join(b.dataDir(i), "log"))
	}
	for _, i := range []int{1, 2} {
		require.NoError(t, b.Nodes[i].Launch())
	}
	require.Eventually(t, func() bool {
		out, err := b.cli(t, 0, "cluster", "status")
		return err != nil && strings.Contains(out, "1 partition has lost the majority") && strings.Contains(out, "`platform cluster partitions recover`") &&
			strings.Contains(out, "try `--dry-run` first")
	}, replicationTimeout, 500*time.Millisecond)
	out, err := b.cli(t, 0, "cluster", "partitions", "recover", "--dry-run")
	require.NoError(t, err, out)
	require.Contains(t, out, "can be recovered")
	out, err = b.cli(t, 0, "cluster", "partitions", "recover", "--yes")
	require.NoError(t, err, out)
	require.Contains(t, out, "`platform cluster status --wait 5m`")
	out, err = b.cli(t, 0, "cluster", "status", "--wait", "5m")
	require.NoError(t, err, out)
	b.awaitVoters(ctx, t, 0, 3)
	b.Nodes[0].Kill()
	b.requireCounters(ctx, t, 1, counts)
	b.addToCounters(ctx, t, 2, counts)
}
