package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/test/harness"
)

// firstRelease is the first released commit, which does not support feature levels.
const firstRelease = "f6954d0"

// upgrade is a cluster whose servers are replaced by older and newer ones under load.
type upgrade struct {
	*testbed
	t        *testing.T
	old      string // binary
	oldEnv   map[string]string
	oldLevel int // highest feature level that it supports
	restarts int
}

// newUpgrade starts a cluster of old servers.
func newUpgrade(t *testing.T, old string, env map[string]string, level int) *upgrade {
	u := &upgrade{t: t, old: old, oldEnv: env, oldLevel: level, testbed: prepareTestbed(t, testbedOptions{})}
	for _, n := range u.Nodes {
		n.Use(old, env)
	}
	require.NoError(t, u.Start(t.Context()))
	u.register(t)
	return u
}

// currentBinary selects the server under test in Server.Use.
const currentBinary = ""

// replace replaces the server of a node and waits until the new one is healthy.
func (u *upgrade) replace(i int, binary string, env map[string]string) {
	u.t.Helper()
	u.Nodes[i].Use(binary, env)
	require.NoError(u.t, u.testbed.restartGracefully(u.t.Context(), i))
	u.testbed.targets.MarkHealthy(i)
	u.restarts++
}

// replaceAll replaces the servers of all nodes sequentially.
func (u *upgrade) replaceAll(binary string, env map[string]string) {
	u.t.Helper()
	for i := range u.Nodes {
		u.replace(i, binary, env)
	}
}

// featureState returns the feature level of the cluster, from a node with the current
// server.
func (u *upgrade) featureState(node int) harness.FeatureState {
	u.t.Helper()
	state, err := u.Nodes[node].State(u.t.Context())
	require.NoError(u.t, err)
	return state.Feature
}

// awaitLevel waits until all nodes report the feature level.
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

// holdLevel makes the current server hold the feature level.
var holdLevel = map[string]string{"FEATURE_LEVEL_HOLD": "true"}

// upgradeAndDowngrade replaces all servers by current ones, which hold the level, and
// then by old ones.
func (u *upgrade) upgradeAndDowngrade() {
	u.t.Helper()
	u.replaceAll(currentBinary, holdLevel)
	f := u.featureState(0)
	require.Equal(u.t, u.oldLevel, f.Level)
	require.Equal(u.t, int(feature.Newest), f.Highest)
	require.True(u.t, f.Held)
	u.replaceAll(u.old, u.oldEnv)
}

// upgradeAll replaces all servers by current ones, with one downgrade in between.
func (u *upgrade) upgradeAll() {
	u.t.Helper()
	last := len(u.Nodes) - 1
	for i := range last {
		u.replace(i, currentBinary, nil)
	}
	f := u.featureState(0)
	require.Equal(u.t, u.oldLevel, f.Level)
	require.Contains(u.t, f.Waiting, fmt.Sprintf("node n%d supports feature level %d; upgrade it", last+1, u.oldLevel))
	u.writeLarge()
	u.replace(0, u.old, u.oldEnv) // a downgrade before the level rises
	u.requireLarge(0)
	u.replace(0, currentBinary, nil)
	u.replace(last, currentBinary, nil)
	u.awaitLevel(int(feature.Newest))
	u.requireLarge(last)
}

// largeKeys is the number of objects with a large value, more than there are partitions, and
// largeBytes the size of the value, which databases store apart from small ones.
const largeKeys, largeBytes = 16, 64 << 10

// largeValue returns the value of the nth object, which cannot be compressed.
func largeValue(n int) []byte {
	value := make([]byte, largeBytes)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(value)
	return value
}

// writeLarge stores large values.
func (u *upgrade) writeLarge() {
	u.t.Helper()
	for n := range largeKeys {
		r, err := u.Nodes[0].Client.SetState(u.t.Context(), "Counter", fmt.Sprint("large-", n), map[string][]byte{"large": largeValue(n)})
		require.NoError(u.t, err)
		require.Less(u.t, r.Status, 300, "%s", r.Body)
	}
	u.requireLarge(0)
}

// requireLarge requires that a node returns the large values.
func (u *upgrade) requireLarge(node int) {
	u.t.Helper()
	for n := range largeKeys {
		require.Eventually(u.t, func() bool {
			r, err := u.Nodes[node].Client.State(u.t.Context(), "Counter", fmt.Sprint("large-", n))
			return err == nil && strings.Contains(string(r.Body), base64.StdEncoding.EncodeToString(largeValue(n)))
		}, time.Minute, 50*time.Millisecond, "object %d", n)
	}
}

// requireStartFails starts an old server on a stopped node and requires that it exits
// with one of the reasons.
func (u *upgrade) requireStartFails(i int, status int, reasons ...string) {
	u.t.Helper()
	node := u.Nodes[i]
	node.Use(u.old, u.oldEnv)
	require.NoError(u.t, node.Launch())
	select {
	case <-node.Process.Exited():
	case <-time.After(2 * time.Minute):
		require.Fail(u.t, "the old server is still running", "%s", node.Process.LogTail(20))
	}
	var exit *exec.ExitError
	require.ErrorAs(u.t, node.Process.Err(), &exit)
	require.Equal(u.t, status, exit.ExitCode())
	output := node.Process.LogTail(20)
	for _, reason := range reasons {
		if strings.Contains(output, reason) {
			return
		}
	}
	require.Fail(u.t, "the old server does not report the reason", "%s", output)
}

// limited returns a function that builds the current server with a lower feature level.
func limited(level int) func() (string, error) {
	return func() (string, error) {
		return harness.BuildLinked("platform/cmd/platform-server", fmt.Sprintf("-X platform/internal/feature.limit=%d", level))
	}
}

// outdated is what a server that supports a level reports of a cluster at the newest one.
func outdated(level int) string {
	return fmt.Sprintf("this server supports feature level %d; the cluster is at %d since 20", level, feature.Newest)
}

// TestUpgrades replaces the servers of a cluster under load, starting from the first
// release and from builds with a lower feature level. No request may fail, and no server
// can be downgraded once the feature level has risen.
func TestUpgrades(t *testing.T) {
	open := map[string]string{"SECURITY__MODE": "open"} // which the first release does not know
	for _, tc := range []struct {
		name    string
		level   int // highest feature level of the old server
		build   func() (string, error)
		env     map[string]string
		status  int      // exit status of a rejected server
		refused []string // accepted reasons
		joining string   // reason with an empty data directory
	}{
		{
			name:    "lower level",
			level:   1,
			build:   limited(1),
			env:     open,
			status:  3,
			refused: []string{outdated(1)},
			joining: outdated(1),
		},
		{
			name:    "level before",
			level:   int(feature.Newest) - 1,
			build:   limited(int(feature.Newest) - 1),
			env:     open,
			status:  3,
			refused: []string{outdated(int(feature.Newest) - 1)},
			joining: outdated(int(feature.Newest) - 1),
		},
		{
			name:    "first release",
			level:   1,
			build:   func() (string, error) { return harness.BuildCommit(firstRelease, "./cmd/platform-server") },
			status:  1,
			refused: []string{"the metadata state has format 4, this server reads 1 to 3", "version 2, this server knows 1 to 1"},
			joining: outdated(1),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, err := tc.build()
			if errors.Is(err, harness.ErrNoCommit) {
				t.Skipf("first release not tested: %v", err)
			}
			require.NoError(t, err)
			u := newUpgrade(t, old, tc.env, tc.level)
			answered := 0
			for range intSetting(t, "CLUSTER_UPGRADES", 0) {
				run := u.startLoad(t, false)
				u.upgradeAndDowngrade()
				report := run.Stop(t.Context())
				require.NoError(t, report.Err())
				answered += report.OK
			}
			run := u.startLoad(t, false)
			u.upgradeAll()
			report := run.Stop(t.Context())
			require.NoError(t, report.Err())
			answered += report.OK
			t.Logf("%d restarts with another server, %d requests, 0 failed", u.restarts, answered)

			last := len(u.Nodes) - 1
			require.NoError(t, u.Nodes[last].Stop())
			u.requireStartFails(last, tc.status, tc.refused...)
			u.Nodes[last].Use(currentBinary, nil)
			require.NoError(t, u.Nodes[last].Restart(t.Context()), "the data must be unchanged")
			require.NoError(t, u.AwaitReplicated(t.Context(), recoveryTimeout))

			require.NoError(t, u.Nodes[last].Stop())
			require.NoError(t, u.Nodes[last].Wipe())
			u.requireStartFails(last, tc.status, tc.joining)
			require.NoError(t, u.Nodes[last].Wipe())
			u.Nodes[last].Use(currentBinary, nil)
			require.NoError(t, u.Nodes[last].Restart(t.Context()))
			require.NoError(t, u.AwaitReplicated(t.Context(), recoveryTimeout))
		})
	}
}
