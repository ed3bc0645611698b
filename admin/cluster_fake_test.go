package admin

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/stats"
	"platform/internal/telemetry"
	"platform/metadata"
)

// fakeCluster makes the state of the cluster of the registry; change spoils it.
type fakeCluster struct {
	store  *metadata.Store
	change func(*ClusterState)
	err    error

	activity    atomic.Uint64
	stats       []NodeStats
	events      []NodeEvents
	statsQuery  stats.Query
	waited      bool      // for leaders without a majority
	transferred [2]uint32 // partition, node
	raised      uint32    // feature level
	rejection   error
	logChange   *LogLevelsChange
	logUntil    time.Time
}

func (f *fakeCluster) State(context.Context) (*ClusterState, error) {
	if f.err != nil {
		return nil, f.err
	}
	layout, _ := f.store.Layout()
	state := &ClusterState{Feature: FeatureState{Level: 1, Supported: 1, Highest: 2, Waiting: []string{"node n3 supports feature level 1; upgrade it"}}, Metadata: MetadataState{Leader: 1, Quorum: true, Voters: []ids.Node{}, Learners: []ids.Node{}}, Nodes: []NodeState{}, Partitions: []PartitionState{}}
	for _, n := range layout.Nodes {
		state.Metadata.Voters = append(state.Metadata.Voters, ids.Node(n.ID))
		state.Nodes = append(state.Nodes, NodeState{
			ID: ids.Node(n.ID), Name: n.Name, State: NodeAlive, Answers: true, Self: n.ID == 1, Metadata: RoleVoter, Draining: n.Draining,
			Address: string(n.RaftAddress()), Incarnation: n.Incarnation, RegisteredAt: rest.TimestampOf(n.RegisteredAt),
		})
	}
	slices.Sort(state.Metadata.Voters)
	for _, p := range layout.Partitions {
		state.Partitions = append(state.Partitions, fakePartition(p))
	}
	if f.change != nil {
		f.change(state)
	}
	return state, nil
}

func fakePartition(p metadata.Partition) PartitionState {
	state := PartitionState{ID: p.ID, Term: 3, Placed: []ids.Node{}, Version: p.Version, Replicas: []ReplicaState{}}
	for i, id := range p.Replicas {
		node := ids.Node(id)
		state.Placed = append(state.Placed, node)
		r := ReplicaState{Node: node, Role: RoleVoter, Answers: true, Applied: 10, Committed: 10, Last: 10, LagKnown: true, CaughtUp: true}
		if i == 0 {
			state.Leader, r.Role, r.Serving = node, RoleLeader, true
		}
		state.Replicas = append(state.Replicas, r)
	}
	return state
}

func (f *fakeCluster) Activity(context.Context) (uint64, error) { return f.activity.Load(), nil }

func (f *fakeCluster) Events(context.Context) []NodeEvents { return f.events }

func (f *fakeCluster) Stats(_ context.Context, q stats.Query) []NodeStats {
	f.statsQuery = q
	return f.stats
}

func (f *fakeCluster) LogLevels(_ context.Context, nodes []metadata.Node, change *LogLevelsChange) []NodeLogLevels {
	f.logChange = change
	var all []NodeLogLevels
	for _, n := range nodes {
		all = append(all, NodeLogLevels{ID: ids.Node(n.ID), Name: n.Name, State: telemetry.LevelState{Filter: "debug", Configured: "info", Until: f.logUntil, Components: []string{"fabric"}}})
	}
	all[len(all)-1].State, all[len(all)-1].Reason = telemetry.LevelState{}, "it does not respond"
	return all
}

func (f *fakeCluster) Transfer(_ context.Context, partition uint32, node ids.Node) error {
	f.transferred = [2]uint32{partition, uint32(node)}
	return f.rejection
}

func (f *fakeCluster) RecoverPartitions(_ context.Context, partitions []uint32, dryRun, wait bool) ([]PartitionRecovery, error) {
	f.waited = wait
	if f.rejection != nil {
		return nil, f.rejection
	}
	list := []PartitionRecovery{}
	for _, id := range partitions {
		list = append(list, PartitionRecovery{Partition: id, Needed: true, Recovered: !dryRun, From: 1, Last: 10, LastTerm: 2, Discarded: []ids.Node{}, Missing: []string{"n2/x"}})
	}
	return list, nil
}

func (f *fakeCluster) RaiseFeatureLevel(_ context.Context, level uint32) (metadata.Cluster, error) {
	if f.rejection != nil {
		return metadata.Cluster{}, f.rejection
	}
	f.raised = level
	cluster, _ := f.store.Cluster()
	cluster.FeatureLevel = feature.Level(level)
	return cluster, nil
}

// threeNodes is a provisioned cluster of three nodes that all have all partitions.
func threeNodes(t *testing.T, change func(*Config)) *testServer {
	w := newTestServer(t, change)
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, Replication: 3})
	require.NoError(t, err)
	for _, name := range []string{"n1", "n2", "n3"} {
		_, err := w.store.RegisterNode(t.Context(), metadata.Node{Name: name, Incarnation: "i-" + name, FabricAddress: "http://" + name + ":5122/"})
		require.NoError(t, err)
	}
	for id := range uint32(2) {
		_, err := w.store.SetPartition(t.Context(), metadata.Partition{ID: id, Version: 1, Replicas: []uint32{id + 1, (id+1)%3 + 1, (id+2)%3 + 1}})
		require.NoError(t, err)
	}
	return w
}

// requireStatus returns the body of a response that has the status.
func requireStatus(t *testing.T, status int, answer *http.Response) string {
	t.Helper()
	body := text(t, answer)
	require.Equal(t, status, answer.StatusCode, body)
	return body
}
