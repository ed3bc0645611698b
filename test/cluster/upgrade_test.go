package cluster

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// firstRelease is the released commit that knows nothing of feature levels.
const firstRelease = "f6954d0"

// upgrade is a cluster whose servers are replaced by others, older and newer, under
// load.
type upgrade struct {
	*bed
	t        *testing.T
	old      string // binary
	restarts int
}

// newUpgrade starts a cluster of old servers.
func newUpgrade(t *testing.T, old string) *upgrade {
	u := &upgrade{t: t, old: old, bed: prepareBed(t, bedOptions{})}
	for _, n := range u.Nodes {
		n.Use(old, nil)
	}
	require.NoError(t, u.Start(t.Context()))
	u.register(t)
	return u
}

// present is the server under test, as the binary of a node.
const present = ""

// roll replaces the server of a node, whose successor is ready when it returns.
func (u *upgrade) roll(i int, binary string, env map[string]string) {
	u.t.Helper()
	u.Nodes[i].Use(binary, env)
	require.NoError(u.t, u.bed.roll(u.t.Context(), i))
	u.bed.nodes.Well(i)
	u.restarts++
}

// rollAll replaces the servers of all nodes, one after the other.
func (u *upgrade) rollAll(binary string, env map[string]string) {
	u.t.Helper()
	for i := range u.Nodes {
		u.roll(i, binary, env)
	}
}

// level is the feature level of the cluster as a node that runs the present server
// says.
func (u *upgrade) level(node int) harness.FeatureState {
	u.t.Helper()
	state, err := u.Nodes[node].State(u.t.Context())
	require.NoError(u.t, err)
	return state.Feature
}

// awaitLevel waits until all nodes say that the cluster is at a level.
func (u *upgrade) awaitLevel(level int) {
	u.t.Helper()
	for i := range u.Nodes {
		var last harness.FeatureState
		require.Eventually(u.t, func() bool {
			state, err := u.Nodes[i].State(u.t.Context())
			last = state.Feature
			return err == nil && last.Level == level
		}, time.Minute, 50*time.Millisecond, "node %d: %+v", i+1, &last)
	}
}

// held lets the present server keep the feature level.
var held = map[string]string{"FEATURE_LEVEL_HOLD": "true"}

// forthAndBack replaces all servers by present ones, which keep the level, and by old
// ones again.
func (u *upgrade) forthAndBack() {
	u.t.Helper()
	u.rollAll(present, held)
	f := u.level(0)
	require.Equal(u.t, 1, f.Level)
	require.Equal(u.t, 2, f.Highest)
	require.True(u.t, f.Held)
	u.rollAll(u.old, nil)
}

// forward replaces all servers by present ones, and goes back once on the way.
func (u *upgrade) forward() {
	u.t.Helper()
	last := len(u.Nodes) - 1
	for i := range last {
		u.roll(i, present, nil)
	}
	f := u.level(0)
	require.Equal(u.t, 1, f.Level)
	require.Contains(u.t, f.Waiting, fmt.Sprintf("node n%d supports feature level 1; upgrade it", last+1))
	u.roll(0, u.old, nil) // a downgrade before the level rises
	u.roll(0, present, nil)
	u.roll(last, present, nil)
	u.awaitLevel(2)
}

// requireRefused starts an old server on a node whose server has stopped, and expects
// that it ends and says why.
func (u *upgrade) requireRefused(i int, status int, reasons ...string) {
	u.t.Helper()
	node := u.Nodes[i]
	node.Use(u.old, nil)
	require.NoError(u.t, node.Launch())
	select {
	case <-node.Process.Exited():
	case <-time.After(2 * time.Minute):
		require.Fail(u.t, "the old server still runs", "%s", node.Process.LogTail(20))
	}
	var exit *exec.ExitError
	require.ErrorAs(u.t, node.Process.Err(), &exit)
	require.Equal(u.t, status, exit.ExitCode())
	said := node.Process.LogTail(20)
	for _, reason := range reasons {
		if strings.Contains(said, reason) {
			return
		}
	}
	require.Fail(u.t, "the old server does not say why it ends", "%s", said)
}

// TestUpgrades replaces the servers of a cluster under load: by the first release, and
// by one that is built to support less. No request may fail, and nobody can go back once
// the feature level has risen.
func TestUpgrades(t *testing.T) {
	for _, tc := range []struct {
		name    string
		build   func() (string, error)
		status  int      // of exit, when it is refused
		refused []string // one of these is said
		joining string   // said to one with an empty directory
	}{
		{
			name: "lower level",
			build: func() (string, error) {
				return harness.BuildLinked("platform/cmd/platform-server", "-X platform/internal/feature.limit=1")
			},
			status:  3,
			refused: []string{"this server supports feature level 1; the cluster is at 2 since 20"},
			joining: "this server supports feature level 1; the cluster is at 2 since 20",
		},
		{
			name:    "first release",
			build:   func() (string, error) { return harness.BuildCommit(firstRelease, "./cmd/platform-server") },
			status:  1,
			refused: []string{"the metadata state has format 4, this server reads 1 to 3", "version 2, this server knows 1 to 1"},
			joining: "this server supports feature level 1; the cluster is at 2 since 20",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, err := tc.build()
			if errors.Is(err, harness.ErrNoCommit) {
				t.Skipf("the first release is not tested: %v", err)
			}
			require.NoError(t, err)
			u := newUpgrade(t, old)
			answered := 0
			for range number(t, "CLUSTER_UPGRADES", 0) {
				run := u.load(t, false)
				u.forthAndBack()
				report := run.Stop(t.Context())
				require.NoError(t, report.Err())
				answered += report.OK
			}
			run := u.load(t, false)
			u.forward()
			report := run.Stop(t.Context())
			require.NoError(t, report.Err())
			answered += report.OK
			t.Logf("%d restarts with another server, %d requests, 0 failed", u.restarts, answered)

			last := len(u.Nodes) - 1
			require.NoError(t, u.Nodes[last].Stop())
			u.requireRefused(last, tc.status, tc.refused...)
			u.Nodes[last].Use(present, nil)
			require.NoError(t, u.Nodes[last].Restart(t.Context()), "its data is as it was")
			require.NoError(t, u.AwaitReplicated(t.Context(), wholeIn))

			require.NoError(t, u.Nodes[last].Stop())
			require.NoError(t, u.Nodes[last].Wipe())
			u.requireRefused(last, tc.status, tc.joining)
			require.NoError(t, u.Nodes[last].Wipe())
			u.Nodes[last].Use(present, nil)
			require.NoError(t, u.Nodes[last].Restart(t.Context()))
			require.NoError(t, u.AwaitReplicated(t.Context(), wholeIn))
		})
	}
}
