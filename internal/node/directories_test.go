package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// parts are the parts of a data directory that an operator may lose, restore from an older copy or
// exchange.
var parts = []string{"log", "state", "metadata", "IDENTITY"}

// subsets are all combinations of parts but none.
func subsets() (all [][]string) {
	for bits := 1; bits < 1<<len(parts); bits++ {
		var some []string
		for i, part := range parts {
			if bits&(1<<i) != 0 {
				some = append(some, part)
			}
		}
		all = append(all, some)
	}
	return all
}

// ways are the replacements of a part, given the data directory, an older copy of it and the
// directory of another node.
var ways = map[string]func(t *testing.T, part, dir, older, other string){
	"lost": func(t *testing.T, part, dir, _, _ string) {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, part)))
	},
	"stale": func(t *testing.T, part, dir, older, _ string) { replacePart(t, part, dir, older) },
	"foreign": func(t *testing.T, part, dir, _, other string) {
		replacePart(t, part, dir, other)
	},
}

func replacePart(t *testing.T, part, dir, from string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, part)))
	copyPart(t, filepath.Join(from, part), filepath.Join(dir, part))
}

// copyPart copies a file or a directory.
func copyPart(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	require.NoError(t, err)
	if info.IsDir() {
		require.NoError(t, os.CopyFS(to, os.DirFS(from)))
		return
	}
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o600))
}

// longForm reports whether NODE_DIRECTORIES requests all combinations.
func longForm() bool { return os.Getenv("NODE_DIRECTORIES") != "" }

// dataOf is the data directory of a node.
func (c *testCluster) dataOf(i int) string {
	return filepath.Join(c.nodes[i].cfg.BaseDir, c.nodes[i].cfg.NodeName)
}

// tryStart starts a node and returns the error with which it ends, or nil once it is
// part of the cluster.
func (c *testCluster) tryStart(i int) error {
	c.t.Helper()
	c.start(i)
	deadline := time.After(waitTimeout)
	for {
		select {
		case err := <-c.nodes[i].done:
			c.nodes[i].cancel()
			c.nodes[i].cancel = nil
			require.Error(c.t, err)
			return err
		case <-deadline:
			require.FailNow(c.t, "the node neither starts nor says why not")
		case <-time.After(20 * time.Millisecond):
		}
		if code, _ := c.do(i, true, "GET", "/cluster-health", ""); code == http.StatusOK {
			return nil
		}
	}
}

// addAll adds 1 to some keys and returns how often that was done to each.
func (c *testCluster) addAll(i, sum int) int {
	c.t.Helper()
	for key := range 8 {
		code, body := c.do(i, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
		require.Equal(c.t, http.StatusOK, code, body)
		require.Equal(c.t, fmt.Sprint(sum+1), body, "key %d", key)
	}
	return sum + 1
}

// clearly reports that a refusal says what is wrong and what to do.
func clearly(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	require.True(t, slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) }), "which part: %s", text)
	require.Contains(t, text, "RT0009")
	require.True(t, strings.Contains(text, "restore") || strings.Contains(text, "put") || strings.Contains(text, "move"), "what to do: %s", text)
}

// TestDirectoriesOfOneOfThreeNodes loses, restores and exchanges all combinations of
// what one node of three has on its disk, and then takes another node down. Either the
// node refuses to start, or nothing that was acknowledged is missing.
func TestDirectoriesOfOneOfThreeNodes(t *testing.T) {
	c := newTestCluster(t, 3, "--default-replication=3")
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	sum := c.addAll(0, 0)
	older := t.TempDir()
	c.stop(0)
	copyPart(t, c.dataOf(0), filepath.Join(older, "n1"))
	c.start(0)
	c.counter(1) // so that the metadata has more than the copy
	sum = c.addAll(1, sum)
	c.replicated(0, 1, 2)

	rebuilt := 0
	for _, way := range []string{"lost", "stale", "foreign"} {
		for _, some := range subsets() {
			if !longForm() && !slices.Contains([]string{"lost log", "lost log state", "lost log metadata", "stale log", "stale metadata", "foreign log"}, way+" "+strings.Join(some, " ")) {
				continue
			}
			sum = c.addAll(1, sum)
			c.stop(0)
			spare := filepath.Join(t.TempDir(), "n1")
			copyPart(t, c.dataOf(0), spare)
			sum = c.addAll(1, sum)
			for _, part := range some {
				ways[way](t, part, c.dataOf(0), filepath.Join(older, "n1"), c.dataOf(1))
			}
			if err := c.tryStart(0); err != nil {
				t.Logf("%s %v: refused: %v", way, some, err)
				clearly(t, err)
				require.NoError(t, os.RemoveAll(c.dataOf(0)))
				copyPart(t, spare, c.dataOf(0))
				c.start(0)
				c.replicated(0, 1, 2)
				continue
			}
			t.Logf("%s %v: started", way, some)
			rebuilt++
			c.replicated(0, 1, 2)
			c.stop(1)
			sum = c.addAll(0, sum)
			c.start(1)
			c.replicated(0, 1, 2)
		}
	}
	require.Positive(t, rebuilt, "no combination was repaired")
}

// TestDirectoriesOfTheOnlyNode does the same to the only node: lost data cannot be recovered, but
// the node reports it instead of starting without it.
func TestDirectoriesOfTheOnlyNode(t *testing.T) {
	c := newTestCluster(t, 1)
	c.healthy(1, 0)
	c.counter(0)
	sum := c.addAll(0, 0)
	older := t.TempDir()
	c.stop(0)
	copyPart(t, c.dataOf(0), filepath.Join(older, "n1"))
	c.start(0)
	c.healthy(1, 0)
	c.counter(0)
	sum = c.addAll(0, sum)
	c.stop(0)
	spare := filepath.Join(t.TempDir(), "n1")
	copyPart(t, c.dataOf(0), spare)
	other := newTestCluster(t, 1)
	other.healthy(1, 0)
	other.counter(0)
	other.addAll(0, 0)
	other.stop(0)

	for _, way := range []string{"lost", "stale", "foreign"} {
		for _, some := range subsets() {
			if !longForm() && !slices.Contains([]string{"log", "state", "log state metadata", "IDENTITY"}, strings.Join(some, " ")) {
				continue
			}
			require.NoError(t, os.RemoveAll(c.dataOf(0)))
			copyPart(t, spare, c.dataOf(0))
			for _, part := range some {
				ways[way](t, part, c.dataOf(0), filepath.Join(older, "n1"), other.dataOf(0))
			}
			if err := c.tryStart(0); err != nil {
				t.Logf("%s %v: refused: %v", way, some, err)
				clearly(t, err)
				continue
			}
			if why := c.quarantined(0); why != "" {
				t.Logf("%s %v: quarantined: %s", way, some, why)
				require.Contains(t, why, "restore", "what to do")
				c.saysQuarantined(0, 1)
			} else {
				t.Logf("%s %v: started", way, some)
				code, body := c.do(0, false, "POST", "/platform/call/Counter/k0/add", "0")
				require.Equal(t, http.StatusOK, code, body)
				require.Equal(t, fmt.Sprint(sum), body, "%s %v: what was acknowledged is gone", way, some)
			}
			c.stop(0)
		}
	}
}

// saysQuarantined requires that callers immediately get the reason why their partition is not
// served.
func (c *testCluster) saysQuarantined(i, replicas int) {
	c.t.Helper()
	begin := time.Now()
	code, body := c.do(i, false, "POST", "/platform/call/Counter/k0/add", "0")
	require.Equal(c.t, http.StatusServiceUnavailable, code, body)
	require.Regexp(c.t, fmt.Sprintf(`is quarantined on \d of its %d replicas`, replicas), body) // a node may not respond in time
	require.Contains(c.t, body, "[RT0009]")
	require.Less(c.t, time.Since(begin), 10*time.Second, "callers do not wait for an election that cannot succeed")
}

// TestCallersOfAPartitionThatIsQuarantinedEverywhere loses the logs of all nodes.
func TestCallersOfAPartitionThatIsQuarantinedEverywhere(t *testing.T) {
	c := newTestCluster(t, 3, "--default-replication=3")
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	c.addAll(0, 0)
	for i := range c.nodes {
		c.stop(i)
	}
	for i := range c.nodes {
		require.NoError(t, os.RemoveAll(filepath.Join(c.dataOf(i), "log")))
		c.start(i)
	}
	require.Eventually(t, func() bool { // the nodes open their replicas one after the other
		_, health := c.do(1, true, "GET", "/cluster-health", "")
		return strings.Count(health, `"quarantine":`) >= 3*4
	}, waitTimeout, 20*time.Millisecond)
	c.saysQuarantined(1, 3)
	_, health := c.do(1, true, "GET", "/cluster-health", "")
	require.Regexp(t, `partition \d+: the replica on node .* is quarantined`, health)
}

// quarantined is why a replica of a node is not served, "" if all are.
func (c *testCluster) quarantined(i int) string {
	c.t.Helper()
	var health struct {
		Partitions []struct {
			Replicas []struct {
				Quarantine string `json:"quarantine"`
			} `json:"replicas"`
		} `json:"partitions"`
	}
	code, body := c.do(i, true, "GET", "/cluster-health", "")
	require.Equal(c.t, http.StatusOK, code, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), &health))
	for _, p := range health.Partitions {
		for _, r := range p.Replicas {
			if r.Quarantine != "" {
				return r.Quarantine
			}
		}
	}
	return ""
}

// TestLostLogsAndATruncatedHardState loses the logs of the node that created the cluster, and
// the records that would reveal it: its replicas would look like new ones.
func TestLostLogsAndATruncatedHardState(t *testing.T) {
	c := newTestCluster(t, 3, "--default-replication=3")
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	sum := c.addAll(0, 0)
	c.stop(0)
	spare := filepath.Join(t.TempDir(), "n1")
	copyPart(t, c.dataOf(0), spare)
	for _, lost := range [][]string{{"log"}, {"log", "state"}, {"log", "state", "metadata"}} {
		for _, size := range []int64{0, 4096} {
			for _, part := range lost {
				require.NoError(t, os.RemoveAll(filepath.Join(c.dataOf(0), part)))
			}
			require.NoError(t, os.Truncate(filepath.Join(c.dataOf(0), "HARDSTATE"), size))
			err := c.tryStart(0)
			require.Error(t, err, "%v lost, HARDSTATE has %d bytes", lost, size)
			require.ErrorContains(t, err, "RT0009")
			require.NoError(t, os.RemoveAll(c.dataOf(0)))
			copyPart(t, spare, c.dataOf(0))
		}
	}
	c.start(0)
	c.replicated(0, 1, 2)
	c.stop(1)
	c.addAll(0, sum)
}
