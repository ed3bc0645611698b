package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type clusterEvent struct {
	Kind, Node, Detail string
	Partition          *int
}

type clusterEvents struct {
	Events []clusterEvent
	Nodes  []eventSource
}

// eventSource is a node that events were requested of; Reason is why it did not respond.
type eventSource struct{ Name, Reason string }

func TestChangesOfAClusterAreEvents(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	// seen waits until a node reports an event.
	seen := func(i int, kind, node string) {
		t.Helper()
		var last clusterEvents
		require.Eventually(t, func() bool {
			last = clusterEvents{}
			code, body := c.do(i, true, "GET", "/cluster/events?limit=1000", "")
			if code != http.StatusOK || json.Unmarshal([]byte(body), &last) != nil {
				return false
			}
			for _, e := range last.Events {
				if e.Kind == kind && (node == "" || e.Node == node) {
					return true
				}
			}
			return false
		}, waitTimeout, 100*time.Millisecond, "%s %s: %+v", kind, node, &last)
	}
	for n := range 3 {
		seen(n, "node_started", fmt.Sprintf("n%d", n+1))
	}
	seen(0, "metadata_leader", "")
	for p := range 4 {
		require.Eventually(t, func() bool {
			var list clusterEvents
			c.read(fmt.Sprintf("/cluster/events?partition=%d", p), &list)
			return slices.ContainsFunc(list.Events, func(e clusterEvent) bool {
				return e.Kind == "leader_elected" && *e.Partition == p && e.Detail != ""
			})
		}, waitTimeout, 100*time.Millisecond)
	}
	code, body := c.do(0, true, "PATCH", "/cluster/nodes/n3/drain?force=true", "")
	require.Equal(t, http.StatusOK, code, body)
	seen(0, "node_draining", "n3")
	code, body = c.do(0, true, "PATCH", "/cluster/nodes/n3/undrain", "")
	require.Equal(t, http.StatusOK, code, body)
	seen(0, "node_undrained", "n3")

	c.stop(2)
	seen(0, "node_stopped", "n3")
	seen(1, "node_stopped", "n3")
	var list clusterEvents
	require.Eventually(t, func() bool { // the others may take longer to respond than the first one waits
		list = clusterEvents{}
		c.read("/cluster/events?node=n3", &list)
		return !slices.ContainsFunc(list.Nodes, func(n eventSource) bool { return (n.Name == "n3") != (n.Reason != "") })
	}, waitTimeout, 100*time.Millisecond, "%+v", &list)
	stopped := 0
	for _, e := range list.Events {
		require.Equal(t, "n3", e.Node)
		if e.Kind == "node_stopped" {
			stopped++
		}
	}
	require.Equal(t, 1, stopped, "two nodes have observed it")
}

func TestNodesReportTheirUsage(t *testing.T) {
	c := newTestCluster(t, 1)
	c.healthy(1, 0)
	var nodes struct {
		Nodes []struct {
			Usage struct {
				Cores  int   `json:"cores"`
				Memory int64 `json:"memory_bytes"`
				Limit  int64 `json:"memory_limit_bytes"`
				Free   int64 `json:"disk_free_bytes"`
				Total  int64 `json:"disk_total_bytes"`
			}
		}
	}
	c.read("/cluster/nodes", &nodes)
	u := nodes.Nodes[0].Usage
	require.Positive(t, u.Cores)
	require.Greater(t, u.Memory, int64(10<<20))
	require.Greater(t, u.Limit, u.Memory)
	require.Positive(t, u.Free)
	require.Greater(t, u.Total, u.Free)
}
