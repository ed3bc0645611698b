package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/config"
	"platform/internal/ids"
	"platform/internal/raftgroup/hardstate"
)

// nodeSeen is a node in responses of the admin API.
type nodeSeen struct {
	ID       ids.Node
	Name     string
	Replicas int
	Metadata admin.Role `json:"metadata_role"`
}

func (c *testCluster) seen(i int) (nodes []nodeSeen) {
	code, body := c.do(i, true, "GET", "/cluster/nodes", "")
	require.Equal(c.t, http.StatusOK, code, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), &struct{ Nodes *[]nodeSeen }{&nodes}))
	return nodes
}

func TestOperatorsMoveLeadersAndRemoveNodes(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.replicated(0, 1, 2)

	for _, to := range []string{"n1", "n2", "n3"} {
		code, body := c.do(0, true, "PATCH", "/cluster/partitions/2/transfer?to="+to, "")
		require.Equal(t, http.StatusOK, code, body)
		var partition struct{ Leader ids.Node }
		require.NoError(t, json.Unmarshal([]byte(body), &partition))
		at := slices.IndexFunc(c.seen(1), func(n nodeSeen) bool { return n.Name == to })
		require.Equal(t, c.seen(1)[at].ID, partition.Leader)
	}

	code, body := c.do(1, true, "DELETE", "/cluster/nodes/n3", "")
	require.Equal(t, http.StatusConflict, code, body)
	code, body = c.do(1, true, "PATCH", "/cluster/nodes/n3/drain", "")
	require.Equal(t, http.StatusConflict, code, body)
	code, body = c.do(1, true, "PATCH", "/cluster/nodes/n3/drain?force=true", "")
	require.Equal(t, http.StatusOK, code, body)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(c.seen(0), func(n nodeSeen) bool { return n.Name == "n3" && n.Replicas == 0 })
	}, waitTimeout, 50*time.Millisecond, "the replicas stay")
	code, body = c.do(0, true, "PATCH", "/cluster/partitions/2/transfer?to=n3", "")
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, body, "node n3 has no replica of partition 2")
	c.stop(2)
	code, body = c.do(1, true, "DELETE", "/cluster/nodes/n3", "")
	require.Equal(t, http.StatusOK, code, body)
	c.healthy(2, 0, 1)
}

// TestAReplicaThatReturnsIsANewMember moves the replicas of a node away and back: the removed ones
// have lost their votes, so the new ones must not count as the same replicas.
func TestAReplicaThatReturnsIsANewMember(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.replicated(0, 1, 2)
	c.counter(0)
	sum := c.addAll(0, 0)
	for _, step := range []struct {
		request  string
		replicas int
	}{{"drain?force=true", 0}, {"undrain", c.seen(0)[2].Replicas}} {
		code, body := c.do(0, true, "PATCH", "/cluster/nodes/n3/"+step.request, "")
		require.Equal(t, http.StatusOK, code, body)
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(c.seen(0), func(n nodeSeen) bool { return n.Name == "n3" && n.Replicas == step.replicas })
		}, waitTimeout, 50*time.Millisecond, step.request)
		// A replica that returns before the node has removed it is the same one.
		require.Eventually(t, func() bool {
			groups, err := partitionsOf(c.dataOf(2))
			for _, record := range groups {
				if record.Replica == 0 {
					return false
				}
			}
			return err == nil && len(groups) == 4
		}, waitTimeout, 50*time.Millisecond, "the replicas are removed")
	}
	c.replicated(0, 1, 2)
	c.addAll(2, sum)
	c.stop(2)
	groups, err := partitionsOf(c.dataOf(2))
	require.NoError(t, err)
	require.Len(t, groups, 4)
	for group, record := range groups {
		require.EqualValues(t, 1, record.Replica, "group %d", group)
		require.False(t, record.Removing)
	}
}

// partitionsOf reads the hard-state records of the partitions of a node.
func partitionsOf(data string) (map[uint32]hardstate.Record, error) {
	hard, err := hardstate.Read(filepath.Join(data, "HARDSTATE"))
	if err != nil {
		return nil, err
	}
	delete(hard.Groups, 0) // the metadata group, which does not move
	return hard.Groups, nil
}

func TestHealthAndMetricsOfANode(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	c := newTestClusterWith(t, 3, func(cfg *config.Config) { // with the metrics that only certificates have
		cfg.Security.NodeTLS = nodeFiles(t, ca, dir, cfg.NodeName)
		cfg.Security.NodeTLS.Mode = config.TLSAllow
	})
	c.healthy(3, 0, 1, 2)
	c.replicated(0, 1, 2)
	c.counter(0)
	for key := range 8 {
		code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
		require.Equal(t, http.StatusOK, code, body)
	}
	requireMetrics(t, c.awaitSamples(0))

	all := "" // partitions that n1 does not lead are measured by others
	for i := range c.nodes {
		_, metrics := c.onNodePort(i, "/metrics")
		all += metrics
	}
	require.Contains(t, all, `platform_invocations_completed_total{`)
	documented(t, all)

	c.requireUnavailableAlone()
}

// onNodePort requests a path at the node port of a node.
func (c *testCluster) onNodePort(i int, path string) (int, string) {
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", c.nodes[i].cfg.BindPort, path))
	require.NoError(c.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(body)
}

// awaitSamples waits until a node is ready, all partitions have a leader and it considers three nodes
// alive, and returns its metrics without the labels of node and cluster, which all have.
func (c *testCluster) awaitSamples(i int) map[string]string {
	// A partition has no leader for a moment when the others get their share of the leaderships.
	require.Eventually(c.t, func() bool {
		code, _ := c.onNodePort(i, "/health")
		return code == http.StatusOK
	}, waitTimeout, 20*time.Millisecond, "the node is not ready")
	samples := map[string]string{}
	require.Eventually(c.t, func() bool {
		code, body := c.onNodePort(i, "/metrics")
		require.Equal(c.t, http.StatusOK, code)
		for line := range strings.Lines(body) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok {
				require.Contains(c.t, name, `cluster_name="localcluster"`)
				require.Contains(c.t, name, fmt.Sprintf("node_name=%q", c.nodes[i].cfg.NodeName))
				family, rest, _ := strings.Cut(name, "{")
				for label := range strings.SplitSeq(rest, ",") {
					if !strings.Contains(label, "_name=") {
						family += "," + label
					}
				}
				samples[family] = value
			}
		}
		return samples["platform_num_partitions_without_leader"] == "0" && samples[`platform_failure_detector_nodes_total,state="alive"`] == "3"
	}, waitTimeout, 20*time.Millisecond, "a partition stays without leader")
	return samples
}

// requireMetrics checks the metrics of the first of three nodes, which has received eight calls.
func requireMetrics(t *testing.T, samples map[string]string) {
	for name, want := range map[string]string{
		"platform_num_partitions":                                        "4",
		`platform_failure_detector_nodes_total,state="alive"`:            "3",
		"platform_node_ready":                                            "1",
		"platform_metadata_has_leader":                                   "1",
		`platform_ingress_requests_total,request="call",result="ok"`:     "8",
		`platform_ingress_request_duration_seconds_count,request="call"`: "8",
	} {
		require.Equal(t, want, samples[name], name)
	}
	for _, positive := range []string{
		`platform_raft_leader_changes_total,group="metadata"`,
		`platform_raft_log_fsync_duration_seconds_count,group="metadata"`, `platform_raft_requests_total,group="partition",request="heartbeat"`,
		`platform_node_requests_total,request="packet",service="gossip"`,
		`platform_node_requests_total,request="status",service="cluster"`,
	} {
		require.Contains(t, samples, positive)
		require.NotEqual(t, "0", samples[positive], positive)
	}
	for _, present := range []string{ // 0 if this node leads all partitions, or none, and the others reached it
		`platform_routing_requests_total,to="local"`,
		`platform_raft_commit_duration_seconds_count,group="metadata"`,
		`platform_raft_log_fsync_duration_seconds_count,group="partition"`,
		`platform_node_requests_total,request="call",service="partitions"`,
		`platform_node_requests_total,request="stream",service="gossip"`,
	} {
		require.Contains(t, samples, present)
	}
}

// requireUnavailableAlone stops all nodes but the first. Without the others there is no quorum and
// the node is not ready, but it responds.
func (c *testCluster) requireUnavailableAlone() {
	c.stop(1)
	c.stop(2)
	require.Eventually(c.t, func() bool {
		code, _ := c.do(0, true, "GET", "/health", "")
		ingress, _ := c.do(0, false, "GET", "/restate/health", "")
		return code == http.StatusServiceUnavailable && ingress == http.StatusServiceUnavailable
	}, waitTimeout, 50*time.Millisecond)
	require.Eventually(c.t, func() bool { // the leader of the metadata steps down on its own
		code, body := c.do(0, true, "GET", "/cluster-health", "")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `"status":"unavailable"`) && strings.Contains(body, "the metadata has no leader")
	}, waitTimeout, 50*time.Millisecond)
}

// documented compares the metrics of a node with the table for operators.
func documented(t *testing.T, metrics string) {
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`platform_") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			rows[strings.Trim(name, " `")] = true
		}
	}
	families := map[string]bool{ // exist with TLS, once there are subscriptions, or after a count in the background
		"platform_invocations": true, "platform_limit_usage": true, "platform_limit_waiting_invocations": true,
		"platform_certificate_expiry_timestamp_seconds": true, "platform_node_tls_plain_total": true, "platform_node_tls_refused_total": true,
		"platform_subscription_records_total": true, "platform_subscription_lag_records": true,
		"platform_subscription_lag_seconds": true, "platform_subscription_topic_partitions": true, "platform_subscription_state": true,
		"platform_subscription_dead_letters": true,
	}
	for line := range strings.Lines(metrics) {
		if name, isFamily := strings.CutPrefix(line, "# TYPE platform_"); isFamily {
			name, _, _ = strings.Cut(name, " ")
			families["platform_"+name] = true
		}
	}
	require.Equal(t, families, rows, "docs/metrics.md has a row for each metric, and for no other")
}
