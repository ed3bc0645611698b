package backend

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/cluster"
	"platform/internal/cluster/membership"
	"platform/internal/ids"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// threeFacts are three nodes with two partitions on all of them; node 1 leads both.
func threeFacts() *clusterFacts {
	names := []string{"n1", "n2", "n3"}
	f := &clusterFacts{self: "n1/i1", leader: "n2/i2", layout: &metadata.Layout{}, statuses: cluster.Statuses{}}
	for i, name := range names {
		n := metadata.Node{Name: name, ID: uint32(i + 1), Incarnation: "i" + name[1:], FabricAddress: "http://" + name + ":5122/", RegisteredAt: time.UnixMilli(1)}
		f.layout.Nodes = append(f.layout.Nodes, n)
		f.servers = append(f.servers, raft.Server{ID: n.ServerID(), Suffrage: raft.Voter})
		f.members = append(f.members, membership.Member{
			Name: name, Incarnation: n.Incarnation, State: membership.Alive, Address: name + ":5122", Meta: membership.Meta{Version: "1"},
		})
		st := &nodepb.StatusResponse{Version: "1", StartedAt: 5}
		for p := range uint32(2) {
			st.Replicas = append(st.Replicas, threeReplica(p, i == 0))
		}
		f.statuses[n.ID] = st
	}
	for p := range uint32(2) {
		f.layout.Partitions = append(f.layout.Partitions, metadata.Partition{ID: p, Version: 1, Replicas: []uint32{1, 2, 3}})
	}
	return f
}

func threeReplica(partition uint32, leads bool) *nodepb.ReplicaStatus {
	r := &nodepb.ReplicaStatus{Partition: partition, State: "Follower", Leader: "n1/i1", Term: 4, Applied: 9, Commit: 9, Last: 9}
	for _, id := range []string{"n1/i1", "n2/i2", "n3/i3"} {
		m := &nodepb.ReplicaMember{Id: id, Voter: true}
		if leads {
			m.Match, m.Live, m.CaughtUp = 9, true, true
		}
		r.Members = append(r.Members, m)
	}
	if leads {
		r.State, r.Leading = "Leader", true
	}
	return r
}

func TestOnlyRunningNodesAreStopping(t *testing.T) {
	f := threeFacts()
	for i, state := range []membership.State{membership.Alive, membership.Left, membership.Dead} {
		f.members[i].State, f.members[i].Draining = state, true
		delete(f.statuses, uint32(i+1))
	}
	v := f.view()
	require.Equal(t, []bool{true, false, false}, []bool{v.Nodes[0].Stopping, v.Nodes[1].Stopping, v.Nodes[2].Stopping})
}

func TestClusterViewOfThreeNodes(t *testing.T) {
	v := threeFacts().view()
	require.Equal(t, admin.MetadataState{Leader: 2, Quorum: true, Voters: []ids.Node{1, 2, 3}, Learners: []ids.Node{}}, v.Metadata)
	require.Len(t, v.Nodes, 3)
	require.Equal(t, []any{ids.Node(1), admin.NodeAlive, true, true, 2, 2, admin.RoleVoter},
		[]any{v.Nodes[0].ID, v.Nodes[0].State, v.Nodes[0].Self, v.Nodes[0].Answers, v.Nodes[0].Leaders, v.Nodes[0].Replicas, v.Nodes[0].Metadata})
	require.Equal(t, admin.RoleLeader, v.Nodes[1].Metadata)
	require.Equal(t, []ids.Node{1, 2, 3}, v.Partitions[1].Placed)
	require.Equal(t, ids.Node(1), v.Partitions[1].Leader)
	require.Equal(t, admin.ReplicaState{
		Node: 1, Role: admin.RoleLeader, Serving: true, Answers: true, Applied: 9, Committed: 9, Last: 9, LagKnown: true, CaughtUp: true,
	}, v.Partitions[1].Replicas[0])
	require.Equal(t, admin.RoleVoter, v.Partitions[1].Replicas[2].Role)
}

func TestClusterViewWithoutTheLeadersNode(t *testing.T) {
	f := threeFacts()
	delete(f.statuses, 1)
	f.self, f.members[0].State = "n2/i2", membership.Dead
	v := f.view()
	require.Equal(t, ids.Node(1), v.Partitions[0].Leader, "the others still believe in it")
	require.False(t, v.Partitions[0].Replicas[0].Answers)
	require.Equal(t, admin.NodeDead, v.Nodes[0].State)
	require.False(t, v.Nodes[0].Answers)
	require.Equal(t, 2, v.Nodes[0].Replicas, "it is in the configuration")

	for _, st := range f.statuses { // they no longer respond
		for _, r := range st.Replicas {
			r.Leader, r.State = "", "Candidate"
		}
	}
	require.Zero(t, f.view().Partitions[0].Leader)
	f.statuses = nil
	require.Empty(t, f.view().Partitions[0].Replicas)
}

// Node 2 cannot reach node 1, which leads all partitions and the metadata; node 3 can.
func TestClusterViewOfALeaderThatOnlyOthersReach(t *testing.T) {
	f := threeFacts()
	delete(f.statuses, 1)
	f.self, f.leader = "n2/i2", ""
	for _, r := range f.statuses[2].Replicas {
		r.Leader, r.LeaderSilence = "", 60_000
	}
	f.statuses[2].MetadataLeader, f.statuses[3].MetadataLeader = "", "n1/i1"
	serving := func(silence int64) bool {
		for _, r := range f.statuses[3].Replicas {
			r.LeaderSilence = silence
		}
		p := f.view().Partitions[1]
		require.Equal(t, ids.Node(1), p.Leader)
		require.False(t, p.Replicas[0].Answers)
		return p.Replicas[0].Serving
	}
	require.True(t, serving(200))
	require.False(t, serving(0), "unknown")
	require.False(t, serving(1500), "the leader may have failed")
	m := f.view().Metadata
	require.Equal(t, []any{ids.Node(1), true, true}, []any{m.Leader, m.Quorum, m.Unreachable})

	// If only this node hears from the leader, no other one can relay requests to it.
	f.statuses[2].Replicas, f.statuses[3].Replicas = f.statuses[3].Replicas, f.statuses[2].Replicas
	require.False(t, f.view().Partitions[1].Replicas[0].Serving)
	f.statuses[3].MetadataLeader = ""
	m = f.view().Metadata
	require.Equal(t, []any{ids.Node(0), false, false}, []any{m.Leader, m.Quorum, m.Unreachable})
}

// Followers forget a leader of the metadata that has stepped down within the timeouts of Raft, so its own response counts.
func TestClusterViewOfALeaderThatHasSteppedDown(t *testing.T) {
	f := threeFacts()
	f.leader, f.statuses[2].MetadataLeader, f.statuses[3].MetadataLeader = "", "n1/i1", "n1/i1"
	require.False(t, f.view().Metadata.Quorum, "this node")
	f.self = "n2/i2"
	f.statuses[2].MetadataLeader = ""
	require.False(t, f.view().Metadata.Quorum, "another one")
	f.statuses[1].MetadataLeader = "n1/i1"
	require.True(t, f.view().Metadata.Quorum)
}

func TestClusterViewUsesTheNewestLeader(t *testing.T) {
	f := threeFacts()
	deposed := f.statuses[1].Replicas[0] // does not know it yet
	successor := threeReplica(0, true)
	successor.Leader, successor.Term = "n3/i3", deposed.Term+1
	f.statuses[3].Replicas[0] = successor
	require.Equal(t, ids.Node(3), f.view().Partitions[0].Leader)
	require.Equal(t, uint64(5), f.view().Partitions[0].Term)
}

func TestClusterViewOfAMove(t *testing.T) {
	f := threeFacts()
	leader := f.statuses[1].Replicas[0]
	leader.Members = leader.Members[:2]
	leader.Members[1].Voter, leader.Members[1].CaughtUp, leader.Members[1].Lag = false, false, 7
	v := f.view()
	replicas := v.Partitions[0].Replicas
	require.Equal(t, []any{admin.RoleLearner, uint64(7), false}, []any{replicas[1].Role, replicas[1].Lag, replicas[1].CaughtUp})
	require.Equal(t, admin.RoleNone, replicas[2].Role, "it has a replica that is in no configuration")
	require.Equal(t, 1, v.Nodes[2].Replicas)
}

// TestClusterViewOfAReplicaThatHasNotResponded has a leader that took over while a node was down. It
// cannot tell how far the log there is, and reports its whole log as the lag.
func TestClusterViewOfAReplicaThatHasNotResponded(t *testing.T) {
	f := threeFacts()
	f.statuses[1].Replicas[0].Members[2] = &nodepb.ReplicaMember{Id: "n3/i3", Voter: true, Lag: 9}
	delete(f.statuses, 3)
	r := f.view().Partitions[0].Replicas[2]
	require.Equal(t, admin.ReplicaState{Node: 3, Role: admin.RoleVoter}, r)
}

// TestClusterViewOfAQuarantinedReplica restarts a node so quickly that the leader has not noticed.
func TestClusterViewOfAQuarantinedReplica(t *testing.T) {
	f := threeFacts()
	f.statuses[3].Replicas[0] = &nodepb.ReplicaStatus{Partition: 0, Quarantine: "damaged log"}
	v := f.view()
	require.Equal(t, admin.ReplicaState{
		Node: 3, Role: admin.RoleVoter, Answers: true, LagKnown: true, Quarantine: "damaged log",
	}, v.Partitions[0].Replicas[2])
	require.True(t, v.Partitions[1].Replicas[2].CaughtUp)
}

func TestClusterViewOfUnknownServers(t *testing.T) {
	f := threeFacts()
	f.servers = append(f.servers, raft.Server{ID: "n2/lost"}, raft.Server{ID: "n3/i3x", Suffrage: raft.Nonvoter})
	f.leader = ""
	f.statuses[1].Replicas[0].Members = append(f.statuses[1].Replicas[0].Members, &nodepb.ReplicaMember{Id: "n2/lost", Voter: true})
	f.members = f.members[:1]
	v := f.view()
	require.False(t, v.Metadata.Quorum)
	require.Equal(t, []ids.Node{1, 2, 3}, v.Metadata.Voters)
	require.Len(t, v.Partitions[0].Replicas, 3)
	require.Equal(t, admin.NodeUnknown, v.Nodes[2].State)
}
