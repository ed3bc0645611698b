package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin"
)

// TestPartitionsAreRecoveredRightAfterNodesAreRemoved stops two of the four replicas of
// each partition, removes their nodes once the leaders have stepped down, and recovers
// immediately, while followers remember the leaders.
func TestPartitionsAreRecoveredRightAfterNodesAreRemoved(t *testing.T) {
	c := newTrio(t, 4, "--default-replication=4")
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
	}, time.Minute, 20*time.Millisecond)
	left, lost = left[:2], append(lost, left[2])
	for _, i := range lost {
		c.stop(i)
	}
	// A leader that learns of the removal before its lease ends continues with the remaining
	// voters.
	require.Eventually(t, func() bool { return c.serving(left[0]) == 0 }, time.Minute, 5*time.Millisecond)
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
func (c *trio) serving(i int) (count int) {
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
