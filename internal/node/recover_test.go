package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/node/offline"
)

// TestPartitionsAreRecoveredRightAfterNodesAreRemoved stops two of the four replicas of
// each partition, removes their nodes once the leaders have stepped down, and recovers
// immediately, while followers remember the leaders.
func TestPartitionsAreRecoveredRightAfterNodesAreRemoved(t *testing.T) {
	c := newTestCluster(t, 4, "--default-replication=4")
	c.healthy(4, 0, 1, 2, 3)
	c.counter(0)
	c.replicated(0, 1, 2, 3)
	sum := c.addAll(0, 0)
	var left, lost []int
	require.Eventually(t, func() bool { // until the metadata has three voters
		left, lost = nil, nil
		for _, n := range c.seen(0) {
			i := slices.IndexFunc(c.nodes, func(m *member) bool { return m.cfg.NodeName == n.Name })
			if n.Metadata == admin.RoleVoter || n.Metadata == admin.RoleLeader {
				left = append(left, i)
			} else {
				lost = append(lost, i)
			}
		}
		return len(left) == 3
	}, waitTimeout, 20*time.Millisecond)
	left, lost = left[:2], append(lost, left[2])
	for _, i := range lost {
		c.stop(i)
	}
	// A leader that learns of the removal before its lease ends continues with the remaining
	// voters.
	require.Eventually(t, func() bool { return c.serving(left[0]) == 0 }, waitTimeout, 5*time.Millisecond)
	for _, i := range lost {
		code, body := c.do(left[0], true, "DELETE", fmt.Sprintf("/cluster/nodes/%s?force=true", c.nodes[i].cfg.NodeName), "")
		require.Equal(t, http.StatusOK, code, body)
	}
	code, body := c.do(left[0], true, "POST", "/cluster/partitions/recover", "{}")
	require.Equal(t, http.StatusOK, code, body)
	var list struct{ Partitions []admin.PartitionRecovery }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list.Partitions, 4, body)
	for _, p := range list.Partitions {
		require.True(t, p.Recovered, p.Refused)
	}
	c.addAll(left[1], sum)
}

// serving is how many partitions have a replica that leads, as a node sees it.
func (c *testCluster) serving(i int) (count int) {
	code, body := c.do(i, true, "GET", "/cluster/partitions", "")
	require.Equal(c.t, http.StatusOK, code, body)
	var list struct{ Partitions []admin.PartitionState }
	require.NoError(c.t, json.Unmarshal([]byte(body), &list))
	for _, p := range list.Partitions {
		if slices.ContainsFunc(p.Replicas, func(r admin.ReplicaState) bool { return r.Serving }) {
			count++
		}
	}
	return count
}

// ruleVersions returns the version of the rule book in the metadata, and those that the replicas
// of a node have applied.
func (c *testCluster) ruleVersions(i int) (book float64, applied []any) {
	var rules struct{ Version float64 }
	c.get(i, "/limits/rules", &rules)
	for _, row := range c.sql(i, "select applied_rule_book_version as v from partition_state") {
		applied = append(applied, row["v"])
	}
	return rules.Version, applied
}

// haveRules waits until all partitions have applied the rule book of the metadata.
func (c *testCluster) haveRules(i int) (version float64) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		book, applied := c.ruleVersions(i)
		version = book
		return len(applied) == 4 && !slices.ContainsFunc(applied, func(v any) bool { return v != book })
	}, waitTimeout, 20*time.Millisecond)
	return version
}

// TestRulesApplyAfterARecoveryThatLostTheirLastChanges recovers a node whose metadata have lost
// changes of the rules that its partitions have applied.
func TestRulesApplyAfterARecoveryThatLostTheirLastChanges(t *testing.T) {
	c := newTestCluster(t, 1, "--experimental-enable-vqueues", "--experimental-enable-protocol-v7")
	c.healthy(1, 0)
	put := func(limit int) {
		code, body := c.do(0, true, "PUT", "/limits/rules/*", fmt.Sprintf(`{"limits":{"concurrency":%d}}`, limit))
		require.Equal(t, http.StatusOK, code, body)
	}
	put(1)
	c.haveRules(0)
	c.stop(0)
	earlier := filepath.Join(t.TempDir(), "metadata")
	copyPart(t, filepath.Join(c.dataOf(0), "metadata"), earlier)
	c.start(0)
	c.healthy(1, 0)
	put(2)
	put(3)
	lost := c.haveRules(0)
	c.stop(0)
	require.NoError(t, os.RemoveAll(filepath.Join(c.dataOf(0), "metadata")))
	copyPart(t, earlier, filepath.Join(c.dataOf(0), "metadata"))
	require.NoError(t, os.Remove(filepath.Join(c.dataOf(0), "HARDSTATE"))) // which would reveal the loss
	_, err := offline.RecoverDirectory(c.dataOf(0), false, time.Now())
	require.NoError(t, err)

	c.start(0)
	c.healthy(1, 0)
	require.Greater(t, c.haveRules(0), lost)
	put(2)
	require.Greater(t, c.haveRules(0), lost+1)
}
