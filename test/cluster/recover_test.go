package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/test/harness"
)

// replicationTimeout limits the time to replicate data to new replicas.
const replicationTimeout = 2 * time.Minute

// counterValues are the expected values of counters.
type counterValues map[string]int

// addToCounters increments counters on all partitions through a node.
func (b *testbed) addToCounters(ctx context.Context, t *testing.T, node int, counts counterValues) {
	t.Helper()
	for i := range 40 {
		key := fmt.Sprint("k", i)
		a, err := b.Nodes[node].Client.Call(ctx, harness.Path("Counter", key, "add"), []byte("1"))
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
		counts[key]++
	}
}

// requireCounters requires the expected values of all counters.
func (b *testbed) requireCounters(ctx context.Context, t *testing.T, node int, counts counterValues) {
	t.Helper()
	for key, want := range counts {
		a, err := b.Nodes[node].Client.Call(ctx, harness.Path("Counter", key, "add"), []byte("0"))
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
		require.Equal(t, fmt.Sprint(want), string(a.Body), "counter %s", key)
	}
}

// awaitVoters waits until each partition has this number of caught-up voters, in a node's
// view.
func (b *testbed) awaitVoters(ctx context.Context, t *testing.T, node, voters int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		state, err := b.Nodes[node].State(ctx)
		require.NoError(c, err)
		require.NoError(c, state.CheckReplicated(voters))
	}, replicationTimeout, 50*time.Millisecond)
}

// backupDisk copies the data of a stopped node; restore restores the copy.
func (b *testbed) backupDisk(t *testing.T, node int) (restore func()) {
	t.Helper()
	backup := filepath.Join(t.TempDir(), "disk")
	data := b.Nodes[node].Data()
	require.NoError(t, exec.Command("cp", "-a", data, backup).Run())
	return func() {
		t.Helper()
		require.NoError(t, os.RemoveAll(data))
		require.NoError(t, exec.Command("cp", "-a", backup, data).Run())
	}
}

// requireRemoved starts nodes and requires that they exit because they were removed.
func (b *testbed) requireRemoved(t *testing.T, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, b.Nodes[i].Launch())
	}
	for _, i := range nodes {
		require.NoError(t, b.Nodes[i].Process.AwaitExit(time.Minute))
		var exit *exec.ExitError
		require.ErrorAs(t, b.Nodes[i].Process.Err(), &exit)
		output := b.Nodes[i].Process.LogTail(1)
		require.Equal(t, 4, exit.ExitCode(), output)
		require.Contains(t, output, "was removed from the cluster")
	}
}

// runCommand runs a command of this module.
func runCommand(t *testing.T, pkg string, env []string, args ...string) (output string, err error) {
	t.Helper()
	bin, err := harness.Build(pkg)
	require.NoError(t, err)
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cli runs the command-line client against a node.
func (b *testbed) cli(t *testing.T, node int, args ...string) (output string, err error) {
	t.Helper()
	n := b.Nodes[node]
	return runCommand(t, "platform/cmd/platform", []string{"PLATFORM_ADMIN_URL=" + n.Admin(), "PLATFORM_INGRESS_URL=" + n.Client.Base()}, args...)
}

// dataDir returns the data directory of a node.
func (b *testbed) dataDir(node int) string {
	return filepath.Join(b.Nodes[node].Data(), b.Nodes[node].Name())
}

// TestRecoveryFromSingleSurvivor loses two of three disks and recovers from the third.
func TestRecoveryFromSingleSurvivor(t *testing.T) { recoverFromSingleSurvivor(t) }

// TestRecoveryWithoutHardState does the same after the hard-state file of the third has lost
// its first page.
func TestRecoveryWithoutHardState(t *testing.T) {
	recoverFromSingleSurvivor(t, "--without-hard-state")
}

// recoverFromSingleSurvivor recovers with flags; if there are any, without the hard-state
// file.
func recoverFromSingleSurvivor(t *testing.T, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	b := newTestbed(t, testbedOptions{nodes: 3})
	require.NoError(t, b.AwaitReplicated(ctx, replicationTimeout))
	counts := counterValues{}
	b.addToCounters(ctx, t, 0, counts)
	b.awaitVoters(ctx, t, 0, 3) // so that the first node has all data
	restores := []func(){}
	for _, i := range []int{1, 2} {
		b.Nodes[i].Kill()
		restores = append(restores, b.backupDisk(t, i))
		require.NoError(t, b.Nodes[i].Wipe())
	}

	// Online recovery is impossible, since the metadata has also lost its majority.
	require.Eventually(t, func() bool {
		out, err := b.cli(t, 0, "cluster", "partitions", "recover", "--yes")
		return err != nil && strings.Contains(out, "platform-server recover")
	}, 2*time.Minute, time.Second)
	out, err := runCommand(t, "platform/cmd/platform-server", nil, "recover", "--data-dir", b.dataDir(0), "--yes")
	require.Error(t, err)
	require.Contains(t, out, "used by another server")
	b.Nodes[0].Kill()
	recoverNode := func(args ...string) (string, error) {
		return runCommand(t, "platform/cmd/platform-server", nil, append([]string{"recover", "--data-dir", b.dataDir(0)}, args...)...)
	}
	if len(flags) > 0 {
		file, err := os.OpenFile(filepath.Join(b.dataDir(0), "HARDSTATE"), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = file.WriteAt(make([]byte, 4096), 0)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		out, err = recoverNode("--yes")
		require.Error(t, err)
		require.Contains(t, out, "--without-hard-state")
	}
	out, err = recoverNode(append(flags, "--dry-run")...)
	require.NoError(t, err, out)
	_, err = recoverNode(flags...)
	require.Error(t, err, "not confirmed")
	out, err = recoverNode(append(flags, "--yes")...)
	require.NoError(t, err, out)
	t.Log(out)

	require.NoError(t, b.Nodes[0].Restart(ctx))
	b.requireCounters(ctx, t, 0, counts)
	b.addToCounters(ctx, t, 0, counts)

	// The data of the former nodes is rejected even though they are a majority of the former
	// cluster.
	for _, restore := range restores {
		restore()
	}
	b.requireRemoved(t, 1, 2)
	b.requireRemoved(t, 1)

	for _, i := range []int{1, 2} {
		require.NoError(t, b.Nodes[i].Wipe())
		require.NoError(t, b.Nodes[i].Launch())
	}
	require.NoError(t, b.AwaitHealthy(ctx))
	require.NoError(t, b.AwaitReplicated(ctx, replicationTimeout))
	b.addToCounters(ctx, t, 1, counts)
	b.Nodes[0].Kill()
	b.requireCounters(ctx, t, 1, counts)
	b.requireCounters(ctx, t, 2, counts)
	require.NoError(t, b.Nodes[0].Restart(ctx))
	require.NoError(t, b.AwaitReplicated(ctx, replicationTimeout))
}

// TestPartitionRecoveryFromNewestReplica loses two of the four replicas of each
// partition while the metadata keeps its majority.
func TestPartitionRecoveryFromNewestReplica(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	b := newTestbed(t, testbedOptions{nodes: 5, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "4"}})
	out, err := b.cli(t, 0, "cluster", "config", "set", "--replication", "4", "--yes")
	require.NoError(t, err, out)
	require.Contains(t, out, "An even number of replicas survives no more failures than 3.")
	b.awaitVoters(ctx, t, 0, 4)
	counts := counterValues{}
	b.addToCounters(ctx, t, 0, counts)
	b.awaitVoters(ctx, t, 0, 4)
	restores := []func(){}
	for _, i := range []int{3, 4} {
		b.Nodes[i].Kill()
		restores = append(restores, b.backupDisk(t, i))
		require.NoError(t, b.Nodes[i].Wipe())
	}
	type recovery struct {
		Partition int
		Needed    bool
		Recovered bool
		Refused   string
		Discarded []ids.Node
	}
	plan := func() (recoveries []recovery) {
		out, err := b.cli(t, 0, "cluster", "partitions", "recover", "--dry-run", "--json")
		require.NoError(t, err, out)
		var list struct{ Partitions []recovery }
		require.NoError(t, json.Unmarshal([]byte(out), &list), out)
		return list.Partitions
	}
	// An unavailable member may return, so it must be removed first.
	require.Eventually(t, func() bool {
		recoveries := plan()
		return len(recoveries) > 0 && strings.Contains(recoveries[0].Refused, "cluster nodes remove n4 --force")
	}, 2*time.Minute, 500*time.Millisecond)
	for _, name := range []string{"n4", "n5"} {
		out, err := b.cli(t, 0, "cluster", "nodes", "remove", name, "--force", "--yes")
		require.NoError(t, err, out)
		t.Log(out)
	}
	var lost []recovery
	require.Eventually(t, func() bool { // followers know the leader that has stepped down for some seconds
		lost = plan()
		return !slices.ContainsFunc(lost, func(p recovery) bool { return strings.Contains(p.Refused, "once it has no leader") })
	}, time.Minute, 100*time.Millisecond)
	require.NotEmpty(t, lost)
	discarded := 0
	for _, p := range lost {
		require.True(t, p.Needed)
		require.Empty(t, p.Refused)
		discarded += len(p.Discarded)
	}
	require.Positive(t, discarded)
	out, err = b.cli(t, 0, "cluster", "partitions", "recover", "--yes")
	require.NoError(t, err, out)
	t.Log(out)
	b.awaitVoters(ctx, t, 0, 3) // one per remaining node
	b.requireCounters(ctx, t, 1, counts)
	b.addToCounters(ctx, t, 2, counts)
	require.Empty(t, plan())

	for _, restore := range restores {
		restore()
	}
	b.requireRemoved(t, 3, 4)
	b.requireCounters(ctx, t, 1, counts)
	for _, i := range []int{3, 4} {
		require.NoError(t, b.Nodes[i].Wipe())
		require.NoError(t, b.Nodes[i].Launch())
	}
	b.awaitVoters(ctx, t, 0, 4)
	b.requireCounters(ctx, t, 4, counts)
}

// TestTheOnlyNodeContinuesWithoutItsHardState loses the file HARDSTATE of the only node, and
// follows the messages.
func TestTheOnlyNodeContinuesWithoutItsHardState(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	b := newTestbed(t, testbedOptions{nodes: 1, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "4"}})
	counts := counterValues{}
	b.addToCounters(ctx, t, 0, counts)
	b.Nodes[0].Kill()
	fails := func(reason string) {
		t.Helper()
		require.NoError(t, b.Nodes[0].Launch())
		require.NoError(t, b.Nodes[0].Process.AwaitExit(time.Minute))
		require.Contains(t, b.Nodes[0].Process.LogTail(1), reason)
	}
	acceptLoss := func(group int) {
		t.Helper()
		out, err := runCommand(t, "platform/cmd/platform-server", nil, "repair", "accept-loss", "--group", fmt.Sprint(group), "--data-dir", b.dataDir(0), "--yes")
		require.NoError(t, err, out)
		require.Contains(t, out, "Lost: no known entries.")
	}
	require.NoError(t, os.Truncate(filepath.Join(b.dataDir(0), "HARDSTATE"), 4096))
	fails("remove HARDSTATE")
	require.NoError(t, os.Remove(filepath.Join(b.dataDir(0), "HARDSTATE")))
	fails("remove OWNER from log, state and metadata")
	for _, dir := range []string{"log", "state", "metadata"} {
		require.NoError(t, os.Remove(filepath.Join(b.dataDir(0), dir, "OWNER")))
	}
	fails("repair accept-loss --group 0")
	for group := range 5 {
		acceptLoss(group)
	}
	require.NoError(t, b.Nodes[0].Restart(ctx))
	b.requireCounters(ctx, t, 0, counts)
	b.addToCounters(ctx, t, 0, counts)
}
