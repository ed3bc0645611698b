package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
)

func TestClusterHealthOfThreeNodes(t *testing.T) {
	w := threeNodes(t, nil)
	goldenJSON(t, "cluster_health_three", requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster-health", "")))
	goldenJSON(t, "cluster_node", requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/nodes/n2", "")))
	goldenJSON(t, "cluster_partition", requireStatus(t, http.StatusOK, w.ask(t, "GET", "/v4/cluster/partitions/1", "")))
	require.Contains(t, text(t, w.ask(t, "GET", "/cluster/nodes", "")), `{"nodes":[{"id":"N1",`)
	require.Contains(t, text(t, w.ask(t, "GET", "/cluster/partitions", "")), `{"partitions":[{"id":0,"leader":"N1",`)
}

// Paths, parameters and bodies accept the name and both forms of the id of a node.
func TestNodesAreFoundByNameAndID(t *testing.T) {
	w := threeNodes(t, nil)
	for _, node := range []string{"n3", "3", "N3"} {
		require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/nodes/"+node, "")), `"name":"n3"`)
		requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/partitions/1/transfer?to="+node, ""))
		require.Equal(t, [2]uint32{1, 3}, w.cluster.transferred)
		require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/log-levels?node="+node, "")), `"id":"N3"`)
		require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "PUT", "/cluster/log-levels", `{"log_filter":"debug","nodes":["`+node+`"]}`)), `"id":"N3"`)
	}
	for _, node := range []string{"N4", "N0", "N", "N3:1", "NN3"} {
		requireStatus(t, http.StatusNotFound, w.ask(t, "GET", "/cluster/nodes/"+node, ""))
	}
}

func TestClusterHealthReportsProblems(t *testing.T) {
	for _, tc := range []struct {
		name           string
		change         func(*ClusterState)
		health         Health
		status, strict int
		problem        string
	}{
		{"all is well", nil, Healthy, 200, 200, ""},
		{"a node is down", func(s *ClusterState) { s.Nodes[1].State, s.Nodes[1].Answers = NodeDead, false }, Degraded, 200, 200, "node n2 (N2) is down"},
		{"a node left", func(s *ClusterState) { s.Nodes[1].State = NodeLeft }, Degraded, 200, 200, "node n2 (N2) is down"},
		{"a node never came", func(s *ClusterState) { s.Nodes[2].State = NodeUnknown }, Degraded, 200, 200, "node n3 (N3) has not sent anything yet"},
		{"a node is stopping", func(s *ClusterState) { s.Nodes[2].Stopping = true }, Degraded, 200, 200, "node n3 (N3) is stopping"},
		{
			"a disk is full", func(s *ClusterState) {
				s.Nodes[1].Disk = "is full (1 MiB free): its replicas are closed until space is freed"
			},
			Degraded, 200, 200, "the disk of node n2 (N2) is full (1 MiB free): its replicas are closed until space is freed",
		},
		{"a node is silent", func(s *ClusterState) { s.Nodes[2].Answers = false }, Degraded, 200, 200, "node n3 (N3) does not respond"},
		{
			"a replica is behind", func(s *ClusterState) {
				r := s.Partitions[1].replica(1)
				r.Lag, r.CaughtUp = 5000, false
			}, Degraded, 200, 200, "partition 1: the replica on node n1 (N1) is 5000 entries behind",
		},
		{
			"a replica does not respond to its leader", func(s *ClusterState) { s.Partitions[0].replica(2).CaughtUp = false },
			Degraded, 200, 200, "partition 0: the replica on node n2 (N2) does not respond to the leader, node n1 (N1)",
		},
		{"a replica has no vote", func(s *ClusterState) { s.Partitions[1].replica(1).Role = RoleLearner }, Degraded, 200, 200, "the replica on node n1 (N1) has no vote yet"},
		{"a replica is coming", func(s *ClusterState) { s.Partitions[0].Replicas = s.Partitions[0].Replicas[:2] }, Degraded, 200, 200, "partition 0 is getting a replica on node n3 (N3)"},
		{"a node with a replica was removed", func(s *ClusterState) { s.Nodes = s.Nodes[:2] }, Degraded, 200, 200, "partition 0: node N3, which had a replica, was removed"},
		{
			"most nodes with replicas were removed", func(s *ClusterState) {
				s.Nodes, s.Partitions[0].Leader, s.Partitions[0].Replicas = s.Nodes[:1], 0, s.Partitions[0].Replicas[:1]
			},
			Unavailable, 200, 503, "partition 0 has no leader: 2 of its 3 replicas were on nodes that were removed; 'platform cluster partitions recover' continues from the remaining ones",
		},
		{"a replica is going", func(s *ClusterState) { s.Partitions[0].Placed = s.Partitions[0].Placed[:2] }, Degraded, 200, 200, "partition 0 is leaving node n3 (N3)"},
		{"no leader", func(s *ClusterState) { s.Partitions[1].Leader = 0 }, Unavailable, 200, 503, "partition 1 has no leader"},
		{"a leader that is not ready", func(s *ClusterState) { s.Partitions[0].replica(1).Serving = false }, Unavailable, 200, 503, "partition 0 has a new leader, node n1 (N1), which is not ready yet"},
		{
			"a leader that only others reach", func(s *ClusterState) {
				s.Nodes[0].Answers, s.Partitions[0].replica(1).Answers = false, false
			},
			Degraded, 200, 200, "node n1 (N1) does not respond to this node; others relay requests to it: repair the network between the two",
		},
		{
			"a leader of the metadata that only others reach", func(s *ClusterState) { s.Metadata.Unreachable = true },
			Degraded, 200, 200, "this node does not reach node n1 (N1), which leads the metadata: change deployments and nodes at another one",
		},
		{"a leader that is silent", func(s *ClusterState) {
			s.Partitions[0].replica(1).Answers, s.Partitions[0].replica(1).Serving = false, false
		}, Unavailable, 200, 503, "partition 0 is led by node n1 (N1), which does not respond"},
		{"a node has no vote on the metadata", func(s *ClusterState) {
			s.Metadata.Voters, s.Metadata.Learners = []ids.Node{1, 2}, []ids.Node{3}
		}, Degraded, 200, 200, "2 nodes vote on the metadata, and 3 should; the others are catching up"},
		{"no quorum", func(s *ClusterState) { s.Metadata.Quorum = false }, Unavailable, 503, 503, "the metadata has no leader that most of its voters follow"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := threeNodes(t, nil)
			w.cluster.change = tc.change
			var got struct {
				Status   Health
				Problems []string
				Message  string
			}
			require.NoError(t, json.Unmarshal([]byte(requireStatus(t, tc.status, w.ask(t, "GET", "/cluster-health", ""))), &got))
			require.Equal(t, tc.health, got.Status)
			require.Equal(t, tc.status != 200, got.Message != "")
			requireStatus(t, tc.strict, w.ask(t, "GET", "/cluster-health?strict", ""))
			if tc.problem == "" {
				require.Empty(t, got.Problems)
				return
			}
			require.Contains(t, strings.Join(got.Problems, "\n"), tc.problem)
		})
	}
}

func TestTooFewReplicas(t *testing.T) {
	w := threeNodes(t, nil)
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/config?force", `{"replication":5}`))
	require.Contains(t, text(t, w.ask(t, "GET", "/cluster-health", "")), "each partition should have 5 replicas, but only 3 nodes accept replicas")
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/config?force", `{"replication":2}`))
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/n2/drain", ""))
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/n3/drain", ""))
	require.Contains(t, text(t, w.ask(t, "GET", "/cluster-health", "")), "each partition should have 2 replicas, but only 1 node accepts replicas")
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/n2/undrain", ""))
	_, err := w.store.SetPartition(t.Context(), metadata.Partition{ID: 0, Version: 2, Replicas: []uint32{1}})
	require.NoError(t, err)
	require.Contains(t, text(t, w.ask(t, "GET", "/cluster-health", "")), `"problems":["1 partition has yet to get another replica"]`)
}

// Draining removes a node from the placement immediately, but it remains a voter until other nodes have its replicas.
func TestANodeThatStillVotesIsNotRemoved(t *testing.T) {
	w := threeNodes(t, nil)
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/n3/drain?force", ""))
	for id := range uint32(2) {
		_, err := w.store.SetPartition(t.Context(), metadata.Partition{ID: id, Version: 2, Replicas: []uint32{1, 2}})
		require.NoError(t, err)
	}
	w.cluster.change = func(s *ClusterState) {
		s.Partitions[1].Replicas = append(s.Partitions[1].Replicas, ReplicaState{Node: 3, Role: RoleVoter})
	}
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "DELETE", "/cluster/nodes/n3", "")), "node n3 still votes on partition 1; wait until")
	w.cluster.change = func(s *ClusterState) { // those that could tell do not respond
		s.Partitions[1].Leader, s.Partitions[1].Replicas = 0, []ReplicaState{{Node: 2, Role: RoleNone, Answers: true, Quarantine: "damaged"}}
	}
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "DELETE", "/cluster/nodes/n3", "")), "no replica of partition 1 reports whether node n3 still votes on it")
	w.cluster.change = nil
	requireStatus(t, http.StatusOK, w.ask(t, "DELETE", "/cluster/nodes/n3", ""))
}

func TestNodeIsDrainedAndRemoved(t *testing.T) {
	w := threeNodes(t, nil)
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/n3/drain?force", "")), `"draining":true`)
	rejected := requireStatus(t, http.StatusConflict, w.ask(t, "DELETE", "/cluster/nodes/3", ""))
	require.Contains(t, rejected, "node n3 has 2; drain it first ('platform cluster nodes drain n3') and wait until it has no replicas, or use force")
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/3/undrain", "")), `"draining":false`)
	require.Empty(t, requireStatus(t, http.StatusOK, w.ask(t, "DELETE", "/cluster/nodes/n3?force", "")))
	require.Len(t, w.store.Nodes(), 2)

	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/N1/drain", ""))
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/cluster/nodes/2/drain", "")), "node n2 is the only one that accepts replicas")
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/1/drain", "")) // again is fine
}

func TestPartitionIsTransferred(t *testing.T) {
	w := threeNodes(t, nil)
	body := requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/partitions/1/transfer?to=n3", ""))
	require.Contains(t, body, `{"id":1,`)
	require.Equal(t, [2]uint32{1, 3}, w.cluster.transferred)

	w.cluster.rejection = &Rejection{Status: http.StatusConflict, Message: "node n3 has no replica"}
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/cluster/partitions/1/transfer?to=3", "")), "no replica")
	w.cluster.rejection = ErrUnavailable
	requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "PATCH", "/cluster/partitions/1/transfer?to=3", ""))
}

func TestClusterRejections(t *testing.T) {
	w := threeNodes(t, nil)
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		message                  string
	}{
		{"unknown node", "GET", "/cluster/nodes/n9", "", 404, "The requested node 'n9' does not exist; the cluster has n1 (N1), n2 (N2), n3 (N3)"},
		{"unknown id", "PATCH", "/cluster/nodes/9/drain", "", 404, "'9' does not exist"},
		{"remove unknown", "DELETE", "/cluster/nodes/9", "", 404, "'9' does not exist"},
		{"remove perhaps", "DELETE", "/cluster/nodes/1?force=perhaps", "", 400, "'force' is invalid"},
		{"undrain unknown", "PATCH", "/cluster/nodes/x/undrain", "", 404, "'x' does not exist"},
		{"partition in words", "GET", "/cluster/partitions/one", "", 400, `'partition' is invalid. Reason: "one" is not a number`},
		{"no such partition", "GET", "/cluster/partitions/2", "", 404, "The requested partition 2 does not exist; there are 0 to 1"},
		{"transfer to nobody", "PATCH", "/cluster/partitions/1/transfer", "", 400, "'to' is missing"},
		{"transfer to a stranger", "PATCH", "/cluster/partitions/1/transfer?to=n9", "", 404, "'n9' does not exist"},
		{"transfer of no partition", "PATCH", "/cluster/partitions/7/transfer?to=n1", "", 404, "partition 7 does not exist"},
		{"no change", "PATCH", "/cluster/config", `{}`, 400, "nothing to change"},
		{"level in words", "PATCH", "/cluster/config", `{"feature_level":"new"}`, 422, "'feature_level' must be"},
		{"other partitions", "PATCH", "/cluster/config", `{"num_partitions":3,"replication":1}`, 409, "the cluster has 2 partitions, which cannot be changed"},
		{"no replicas", "PATCH", "/cluster/config", `{"replication":0}`, 400, "replication is 1 to 9, not 0"},
		{"replicas in words", "PATCH", "/cluster/config", `{"replication":"many"}`, 422, "'replication' must be an integer, not a string"},
		{"provisioned otherwise", "POST", "/cluster/provision", `{"num_partitions":4}`, 409, "the cluster has 2 partitions"},
		{"provisioned with less", "POST", "/cluster/provision", `{"replication":1}`, 409, "with replication 3; change it with PATCH"},
		{"another cluster", "POST", "/cluster/provision", `{"cluster_name":"x"}`, 409, `this node belongs to the cluster "localcluster"`},
		{"strictly perhaps", "GET", "/cluster-health?strict=perhaps", "", 400, "'strict' is invalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := w.ask(t, tc.method, tc.path, tc.body)
			requireError(t, answer, requireStatus(t, tc.status, answer), "", tc.message)
		})
	}
	require.Len(t, w.store.Nodes(), 3)
}

func TestRejectionsDoNotRevealTheCluster(t *testing.T) {
	w := threeNodes(t, nil)
	w.cluster.err = errPlain
	for _, path := range []string{"/cluster-health", "/cluster/nodes", "/cluster/partitions", "/cluster/nodes/n1", "/cluster/partitions/0"} {
		requireStatus(t, http.StatusInternalServerError, w.ask(t, "GET", path, ""))
	}
	require.Contains(t, w.logged.String(), "state of the cluster: disk on fire")
}

func TestProvision(t *testing.T) {
	w := newTestServer(t, nil)
	for _, path := range []string{"/cluster/config", "/cluster/partitions/0"} {
		require.Contains(t, requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "GET", path, "")), "not been provisioned")
	}
	requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "PATCH", "/cluster/config", `{"replication":1}`))
	requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "POST", "/cluster/provision", `{}`))
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "mine", Partitions: 4, Replication: 1})
	require.NoError(t, err)
	body := requireStatus(t, http.StatusOK, w.ask(t, "POST", "/cluster/provision", `{"num_partitions":4,"replication":1}`))
	require.Contains(t, body, `"num_partitions":4,"replication":1`)
	require.Equal(t, body, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/config", "")))
}

func TestHealthFollowsReadiness(t *testing.T) {
	var reason error
	w := newTestServer(t, func(c *Config) { c.Ready = func() error { return reason } })
	require.Empty(t, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/health", "")))
	reason = errors.New("the node is stopping")
	answer := w.ask(t, "GET", "/health", "")
	requireError(t, answer, requireStatus(t, http.StatusServiceUnavailable, answer), "", "the node is stopping")
}

func TestTheFeatureLevelIsRaisedManually(t *testing.T) {
	w := threeNodes(t, nil)
	body := requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/config", `{"feature_level":2}`))
	require.Contains(t, body, `"feature_level":2`)
	require.EqualValues(t, 2, w.cluster.raised)
	w.cluster.raised = 0
	requireStatus(t, http.StatusBadRequest, w.ask(t, "PATCH", "/cluster/config", `{"feature_level":2,"replication":10}`))
	requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/cluster/config", `{"feature_level":2,"replication":1}`))
	require.Zero(t, w.cluster.raised, "it could not be lowered again")
	w.cluster.rejection = &Rejection{Status: http.StatusConflict, Message: "node n3 supports feature level 1; upgrade it"}
	body = requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/cluster/config?force=true", `{"feature_level":2,"replication":2}`))
	require.Contains(t, body, "node n3 supports feature level 1")
	cluster, _ := w.store.Cluster()
	require.Equal(t, 3, cluster.Replicas(), "all or nothing")
}

// fixedReplication is a registry whose replication cannot be changed.
type fixedReplication struct {
	Registry
	err error
}

func (r *fixedReplication) SetReplication(context.Context, int) (metadata.Cluster, error) {
	return metadata.Cluster{}, r.err
}

func TestTheFeatureLevelIsRaisedAndTheReplicationNotChanged(t *testing.T) {
	w := threeNodes(t, nil)
	fixed := &fixedReplication{w.Server.registry, fmt.Errorf("%w: %w", metadata.ErrUnavailable, context.DeadlineExceeded)}
	w.Server.registry = fixed
	body := requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "PATCH", "/cluster/config?force=true", `{"feature_level":2,"replication":2}`))
	require.EqualValues(t, 2, w.cluster.raised)
	require.NotContains(t, body, "nothing was changed")
	require.Contains(t, body, "the cluster is at feature level 2, which cannot be lowered, but the replication was not set: the metadata has no leader at the moment")
	fixed.err = metadata.ErrUnknownOutcome
	body = requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "PATCH", "/cluster/config?force=true", `{"feature_level":2,"replication":2}`))
	require.Contains(t, body, "it is unknown whether the replication was set")
	body = requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "PATCH", "/cluster/config?force=true", `{"replication":2}`))
	require.Contains(t, body, "the outcome of the change is unknown")
}

func TestRemovalWithoutALeaderOfTheMetadata(t *testing.T) {
	err := removalError(metadata.Node{Name: "n2"}, fmt.Errorf("%w: %w", metadata.ErrUnavailable, context.DeadlineExceeded))
	rejection, ok := errors.AsType[*rest.Error](err)
	require.True(t, ok)
	require.Equal(t, http.StatusServiceUnavailable, rejection.Status)
	require.Contains(t, rejection.Message, "nothing was changed")
	require.Contains(t, rejection.Message, "`platform-server recover`")
}
