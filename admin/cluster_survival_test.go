package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/metadata"
)

func TestLossesSurvived(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*ClusterState)
		want   Survival
	}{
		{"three replicas", nil, Survival{1, 1}},
		{"a node is down", func(s *ClusterState) { s.Nodes[1].State = NodeDead }, Survival{0, 1}},
		{"a replica is behind", func(s *ClusterState) { s.Partitions[1].replica(1).CaughtUp = false }, Survival{0, 1}},
		{"a replica is in quarantine", func(s *ClusterState) { s.Partitions[1].replica(1).Quarantine = "damaged" }, Survival{0, 1}},
		{"a replica is missing", func(s *ClusterState) { s.Partitions[0].Replicas = s.Partitions[0].Replicas[:2] }, Survival{0, 1}},
		{"a node is drained", func(s *ClusterState) { s.Nodes[2].Draining = true }, Survival{1, 0}},
		{"the metadata have two voters", func(s *ClusterState) { s.Metadata.Voters = []ids.Node{1, 2} }, Survival{0, 1}},
		{"no quorum", func(s *ClusterState) { s.Metadata.Quorum = false }, Survival{0, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := threeNodes(t, nil)
			w.cluster.change = tc.change
			body := text(t, w.ask(t, "GET", "/cluster-health", ""))
			require.Contains(t, body, fmt.Sprintf(`"losses_survived":{"now":%d,"whole":%d}`, tc.want.Now, tc.want.Whole))
		})
	}
	for nodes, want := range []int{0, 0, 0, 1, 1, 2, 2} {
		require.Equal(t, want, metadata.LossesSurvived(nodes, 9), "%d nodes", nodes)
	}
	require.Equal(t, 1, metadata.LossesSurvived(9, 4), "an even number is no better than the one below")
}

func TestChangesThatLeaveNoLossAreRejected(t *testing.T) {
	w := threeNodes(t, nil)
	for _, tc := range []struct{ method, path, body, reason string }{
		{"PATCH", "/cluster/config", `{"replication":2}`, "replication 2 leaves a cluster that survives no node failure (now: 1): with 2 replicas, each write needs both"},
		{"PATCH", "/cluster/config", `{"replication":1}`, "each partition is on one node only"},
		{"PATCH", "/cluster/nodes/n3/drain", "", "draining node n3 leaves a cluster that survives no node failure"},
	} {
		body := requireStatus(t, http.StatusConflict, w.ask(t, tc.method, tc.path, tc.body))
		require.Contains(t, body, tc.reason)
		require.Contains(t, body, `"platform_code":"META0019"`)
	}
	cluster, _ := w.store.Cluster()
	require.Equal(t, 3, cluster.Replicas(), "nothing was changed")
	body := requireStatus(t, http.StatusConflict, w.ask(t, "PATCH", "/cluster/config", `{"replication":5}`))
	require.Contains(t, body, "replication 5 needs 5 nodes that accept replicas, and there are 3: each partition would have 3, which survives the loss of 1; start more nodes first")
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/config?force", `{"replication":4}`)), `"losses_survived":1`)
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/config?force", `{"replication":2}`)), `"losses_survived":0`)
	requireStatus(t, http.StatusOK, w.ask(t, "PATCH", "/cluster/nodes/n3/drain", "")) // there is nothing left to lose
	requireStatus(t, http.StatusBadRequest, w.ask(t, "PATCH", "/cluster/config?force=perhaps", `{"replication":2}`))
}

func TestANodeThatTheClusterNeedsIsNotRemovedByMistake(t *testing.T) {
	w := threeNodes(t, nil)
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "DELETE", "/cluster/nodes/n3", "")), "drain it first")
	for id := range uint32(2) {
		_, err := w.store.SetPartition(t.Context(), metadata.Partition{ID: id, Version: 2, Replicas: []uint32{1, 2}})
		require.NoError(t, err)
	}
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "DELETE", "/cluster/nodes/n3", "")), "META0019")
	requireStatus(t, http.StatusOK, w.ask(t, "DELETE", "/cluster/nodes/n3?force", ""))
}

func TestPartitionsAreRecovered(t *testing.T) {
	w := threeNodes(t, nil)
	body := requireStatus(t, http.StatusOK, w.ask(t, "POST", "/cluster/partitions/recover", `{"partitions":[1],"dry_run":true}`))
	require.False(t, w.cluster.waited)
	require.JSONEq(t, `{"partitions":[{"partition":1,"needed":true,"recovered":false,"from":"N1","applied":0,"last":10,"last_term":2,"discarded":[],"missing":["n2/x"]}]}`, body)
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "POST", "/cluster/partitions/recover", `{"partitions":[1]}`)), `"recovered":true`)
	require.True(t, w.cluster.waited)
	for header, wait := range map[string]bool{"wait": true, "respond-async, Wait=20": true, "handling=strict": false} {
		r := httptest.NewRequest(http.MethodPost, "/cluster/partitions/recover", nil)
		r.Header.Set("Prefer", header)
		require.Equal(t, wait, prefersWait(r), header)
	}
	require.Contains(t, requireStatus(t, http.StatusNotFound, w.ask(t, "POST", "/cluster/partitions/recover", `{"partitions":[2]}`)), "there are 0 to 1")
	w.cluster.rejection = &Rejection{Status: http.StatusServiceUnavailable, Message: "the metadata has lost its majority, too"}
	require.Contains(t, requireStatus(t, http.StatusServiceUnavailable, w.ask(t, "POST", "/cluster/partitions/recover", `{}`)), "the metadata has lost")
}
