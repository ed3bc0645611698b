package cluster

import (
	"context"
	"encoding/json"

	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// wholeAgain is how long replicas may take to be copied.
const wholeAgain = 2 * time.Minute

// tally is what was added to counters and acknowledged.
type tally map[string]int

// add adds to counters on all partitions, through a node.
func (b *bed) add(ctx context.Context, t *testing.T, node int, counts tally) {
	t.Helper()
	for i := range 40 {
		key := fmt.Sprint("k", i)
		a, err := b.Nodes[node].Client.Call(ctx, harness.Path("Counter", key, "add"), []byte("1"))
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
		counts[key]++
	}
}

// require expects all counters to be what was acknowledged.
func (b *bed) requireTally(ctx context.Context, t *testing.T, node int, counts tally) {
	t.Helper()
	for key, want := range counts {
		a, err := b.Nodes[node].Client.Call(ctx, harness.Path("Counter", key, "add"), []byte("0"))
		require.NoError(t, err)
		require.Equal(t, 200, a.Status, "%s", a.Body)
		require.Equal(t, fmt.Sprint(want), string(a.Body), "counter %s", key)
	}
}

// awaitVoters waits until each partition has so many voters up to date, as a node sees
// it.
func (b *bed) awaitVoters(ctx context.Context, t *testing.T, node, voters int) {
	t.Helper()
	var last error
	require.Eventually(t, func() bool {
		state, err := b.Nodes[node].State(ctx)
		if err == nil {
			err = state.CheckReplicated(voters)
		}
		last = err
		return err == nil
	}, wholeAgain, 50*time.Millisecond, "%v", &last)
}

// keepDisk puts a copy of a stopped node's disk aside; the function puts it back.
func (b *bed) keepDisk(t *testing.T, node int) (restore func()) {
	t.Helper()
	aside := filepath.Join(t.TempDir(), "disk")
	data := b.Nodes[node].Data()
	require.NoError(t, exec.Command("cp", "-a", data, aside).Run())
	return func() {
		t.Helper()
		require.NoError(t, os.RemoveAll(data))
		require.NoError(t, exec.Command("cp", "-a", aside, data).Run())
	}
}

// requireRemoved starts a node and expects that it ends and says that it was removed.
func (b *bed) requireRemoved(t *testing.T, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, b.Nodes[i].Launch())
	}
	for _, i := range nodes {
		require.NoError(t, b.Nodes[i].Process.AwaitExit(time.Minute))
		var exit *exec.ExitError
		require.ErrorAs(t, b.Nodes[i].Process.Err(), &exit)
		said := b.Nodes[i].Process.LogTail(1)
		require.Equal(t, 4, exit.ExitCode(), said)
		require.Contains(t, said, "was removed from the cluster")
	}
}

// tool runs a command of this module.
func tool(t *testing.T, pkg string, env []string, args ...string) (output string, err error) {
	t.Helper()
	bin, err := harness.Build(pkg)
	require.NoError(t, err)
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cli runs the command line client against a node.
func (b *bed) cli(t *testing.T, node int, args ...string) (output string, err error) {
	t.Helper()
	n := b.Nodes[node]
	return tool(t, "platform/cmd/platform", []string{"PLATFORM_ADMIN_URL=" + n.Admin(), "PLATFORM_INGRESS_URL=" + n.Client.Base()}, args...)
}

// dataDir is the data directory of a node.
func (b *bed) dataDir(node int) string {
	return filepath.Join(b.Nodes[node].Data(), b.Nodes[node].Name())
}

// TestRecoveryFromTheOnlyNodeLeft loses two of three disks for good, and goes on from
// the third.
func TestRecoveryFromTheOnlyNodeLeft(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	b := newBed(t, bedOptions{nodes: 3})
	require.NoError(t, b.AwaitReplicated(ctx, wholeAgain))
	counts := tally{}
	b.add(ctx, t, 0, counts)
	b.awaitVoters(ctx, t, 0, 3) // so that the first node has all of it
	old := []func(){}
	for _, i := range []int{1, 2} {
		b.Nodes[i].Kill()
		old = append(old, b.keepDisk(t, i))
		require.NoError(t, b.Nodes[i].Wipe())
	}

	// Online nothing can be done: the metadata has lost its majority, too.
	require.Eventually(t, func() bool {
		out, err := b.cli(t, 0, "cluster", "partitions", "recover", "--yes")
		return err != nil && strings.Contains(out, "platform-server recover")
	}, 30*time.Second, time.Second)
	out, err := tool(t, "platform/cmd/platform-server", nil, "recover", "--data-dir", b.dataDir(0), "--yes")
	require.Error(t, err)
	require.Contains(t, out, "used by another server")
	b.Nodes[0].Kill()
	out, err = tool(t, "platform/cmd/platform-server", nil, "recover", "--data-dir", b.dataDir(0), "--dry-run")
	require.NoError(t, err, out)
	_, err = tool(t, "platform/cmd/platform-server", nil, "recover", "--data-dir", b.dataDir(0))
	require.Error(t, err, "not confirmed")
	out, err = tool(t, "platform/cmd/platform-server", nil, "recover", "--data-dir", b.dataDir(0), "--yes")
	require.NoError(t, err, out)
	t.Log(out)

	require.NoError(t, b.Nodes[0].Restart(ctx))
	b.requireTally(ctx, t, 0, counts)
	b.add(ctx, t, 0, counts)

	// What the former nodes had is refused, also when they are a majority of the former
	// cluster.
	for _, restore := range old {
		restore()
	}
	b.requireRemoved(t, 1, 2)
	b.requireRemoved(t, 1)

	for _, i := range []int{1, 2} {
		require.NoError(t, b.Nodes[i].Wipe())
		require.NoError(t, b.Nodes[i].Launch())
	}
	require.NoError(t, b.AwaitHealthy(ctx))
	require.NoError(t, b.AwaitReplicated(ctx, wholeAgain))
	b.add(ctx, t, 1, counts)
	b.Nodes[0].Kill()
	b.requireTally(ctx, t, 1, counts)
	b.requireTally(ctx, t, 2, counts)
	require.NoError(t, b.Nodes[0].Restart(ctx))
	require.NoError(t, b.AwaitReplicated(ctx, wholeAgain))
}

// TestRecoveryOfPartitionsFromTheNewestReplica loses two of the four replicas of each
// partition while the metadata keeps its majority.
func TestRecoveryOfPartitionsFromTheNewestReplica(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	b := newBed(t, bedOptions{nodes: 5, env: map[string]string{"DEFAULT_NUM_PARTITIONS": "4"}})
	out, err := b.cli(t, 0, "cluster", "config", "set", "--replication", "4", "--yes")
	require.NoError(t, err, out)
	require.Contains(t, out, "An even number of replicas survives no more losses than 3.")
	b.awaitVoters(ctx, t, 0, 4)
	counts := tally{}
	b.add(ctx, t, 0, counts)
	b.awaitVoters(ctx, t, 0, 4)
	old := []func(){}
	for _, i := range []int{3, 4} {
		b.Nodes[i].Kill()
		old = append(old, b.keepDisk(t, i))
		require.NoError(t, b.Nodes[i].Wipe())
	}
	type recovery struct {
		Partition int
		Needed    bool
		Recovered bool
		Refused   string
		Discarded []int
	}
	plan := func() (all []recovery) {
		out, err := b.cli(t, 0, "cluster", "partitions", "recover", "--dry-run", "--json")
		require.NoError(t, err, out)
		var list struct{ Partitions []recovery }
		require.NoError(t, json.Unmarshal([]byte(out), &list), out)
		return list.Partitions
	}
	// A member that does not answer may come back: it has to be removed first.
	require.Eventually(t, func() bool {
		all := plan()
		return len(all) > 0 && strings.Contains(all[0].Refused, "cluster nodes remove n4 --force")
	}, 30*time.Second, 500*time.Millisecond)
	for _, name := range []string{"n4", "n5"} {
		out, err := b.cli(t, 0, "cluster", "nodes", "remove", name, "--force", "--yes")
		require.NoError(t, err, out)
		t.Log(out)
	}
	lost := plan()
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
	b.awaitVoters(ctx, t, 0, 3) // as many as there are nodes
	b.requireTally(ctx, t, 1, counts)
	b.add(ctx, t, 2, counts)
	require.Empty(t, plan())

	for _, restore := range old {
		restore()
	}
	b.requireRemoved(t, 3, 4)
	b.requireTally(ctx, t, 1, counts)
	for _, i := range []int{3, 4} {
		require.NoError(t, b.Nodes[i].Wipe())
		require.NoError(t, b.Nodes[i].Launch())
	}
	b.awaitVoters(ctx, t, 0, 4)
	b.requireTally(ctx, t, 4, counts)
}
