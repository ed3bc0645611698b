package backend

import (
	"cmp"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster"
	"platform/internal/cluster/membership"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// clusterFacts is what a node knows of the cluster from several sources; view combines them.
type clusterFacts struct {
	self    raft.ServerID
	layout  *metadata.Layout
	members []membership.Member
	// leader and servers are those of the metadata group.
	leader  raft.ServerID
	servers []raft.Server
	// statuses are the responses of nodes, by node ID.
	statuses cluster.Statuses
}

// view returns the cluster as shown to operators.
func (f *clusterFacts) view() *admin.ClusterState {
	known := make(map[raft.ServerID]ids.Node, len(f.layout.Nodes))
	for _, n := range f.layout.Nodes {
		known[n.ServerID()] = ids.Node(n.ID)
	}
	state := &admin.ClusterState{Metadata: f.metadata(known), Nodes: []admin.NodeState{}, Partitions: []admin.PartitionState{}}
	state.Feature = f.feature()
	reported := f.reported()
	for _, p := range f.layout.Partitions {
		state.Partitions = append(state.Partitions, partitionView(p, reported[p.ID], known, known[f.self]))
	}
	for _, n := range f.layout.Nodes {
		state.Nodes = append(state.Nodes, f.node(n, state))
	}
	slices.SortFunc(state.Nodes, func(a, b admin.NodeState) int { return cmp.Compare(a.ID, b.ID) })
	return state
}

// metadata returns the metadata group. A known leader has a majority: a leader without one steps
// down, and its followers forget it, within the timeouts of Raft.
func (f *clusterFacts) metadata(known map[raft.ServerID]ids.Node) admin.MetadataState {
	m := admin.MetadataState{Leader: known[f.leader], Quorum: f.leader != "", Voters: []ids.Node{}, Learners: []ids.Node{}}
	if f.leader == "" {
		m.Leader = f.leaderOfOthers(known)
		m.Quorum = m.Leader != 0
		m.Unreachable = m.Quorum
	}
	for _, s := range f.servers {
		switch id := known[s.ID]; {
		case id == 0: // of a node that is about to be removed or registered
		case s.Suffrage == raft.Voter:
			m.Voters = append(m.Voters, id)
		default:
			m.Learners = append(m.Learners, id)
		}
	}
	slices.Sort(m.Voters)
	slices.Sort(m.Learners)
	return m
}

// leaderOfOthers returns the leader of the metadata that other nodes follow; 0 if there is none. One
// that responds itself, and no longer leads, does not count.
func (f *clusterFacts) leaderOfOthers(known map[raft.ServerID]ids.Node) (leader ids.Node) {
	for _, st := range f.statuses {
		id := known[raft.ServerID(st.MetadataLeader)]
		if own := f.statuses[uint32(id)]; own == nil || own.MetadataLeader == st.MetadataLeader {
			leader = max(leader, id)
		}
	}
	return leader
}

// feature returns the cluster's feature level.
func (f *clusterFacts) feature() admin.FeatureState {
	plan := metadata.PlanLevel(f.layout, f.statuses.Announcements())
	state := admin.FeatureState{
		Level: uint32(plan.Level), Supported: uint32(plan.Next), Highest: uint32(plan.Highest), Held: plan.Held, Waiting: []string{},
	}
	if at := f.layout.Cluster.FeatureLevelAt; !at.IsZero() {
		state.Since = rest.Timestamp(at.UnixMilli())
	}
	state.Waiting = append(state.Waiting, plan.Waiting...)
	return state
}

// partitionView combines the reports of a partition's replicas. self is the node that combines them.
func partitionView(p metadata.Partition, reported map[ids.Node]*nodepb.ReplicaStatus, known map[raft.ServerID]ids.Node, self ids.Node) admin.PartitionState {
	state := admin.PartitionState{ID: p.ID, Placed: nodeIDs(p.Replicas), Version: p.Version, Replicas: []admin.ReplicaState{}}
	source := authority(reported)
	if source != nil {
		state.Leader, state.Term = nodeOf(known, source.Leader), source.Term
		for _, m := range source.Members {
			id := nodeOf(known, m.Id)
			if id == 0 || rebuiltSince(reported[id], m) {
				continue
			}
			r := admin.ReplicaState{Node: id, Role: roleOf(m, source.Leader), LagKnown: m.Match > 0, CaughtUp: m.CaughtUp}
			r.Serving = m.Id == source.Leader && followed(reported, source.Leader, self)
			if r.LagKnown { // otherwise the leader reports the length of its log
				r.Lag = m.Lag
			}
			state.Replicas = append(state.Replicas, r)
		}
	}
	for id, r := range reported {
		state.Replicas = withReplica(state.Replicas, id, r, id == state.Leader)
	}
	slices.SortFunc(state.Replicas, func(a, b admin.ReplicaState) int { return cmp.Compare(a.Node, b.Node) })
	return state
}

// maxSilence is how long ago a follower may have heard from its leader. Heartbeats follow each
// other within 400 ms.
const maxSilence = time.Second

// followed reports whether nodes other than self follow a leader. They relay requests to it, so
// it serves those of self even if it does not respond to self.
func followed(reported map[ids.Node]*nodepb.ReplicaStatus, leader string, self ids.Node) bool {
	for id, r := range reported {
		if id != self && r.Leader == leader && r.LeaderSilence > 0 && r.LeaderSilence < maxSilence.Milliseconds() {
			return true
		}
	}
	return false
}

// rebuiltSince reports whether a node has replaced the replica that the leader still lists as a
// member.
func rebuiltSince(r *nodepb.ReplicaStatus, m *nodepb.ReplicaMember) bool {
	return r != nil && r.ReplicaId != "" && r.ReplicaId != m.Id
}

// nodeOf returns the node of a replica, 0 if it is not among known.
func nodeOf(known map[raft.ServerID]ids.Node, replica string) ids.Node {
	node, _ := metadata.ReplicaNode(raft.ServerID(replica))
	return known[node]
}

// nodeIDs returns the nodes with these numbers; never nil.
func nodeIDs(numbers []uint32) []ids.Node {
	list := make([]ids.Node, len(numbers))
	for i, n := range numbers {
		list[i] = ids.Node(n)
	}
	return list
}

// reported returns the reported replicas by partition and node.
func (f *clusterFacts) reported() map[uint32]map[ids.Node]*nodepb.ReplicaStatus {
	reported := make(map[uint32]map[ids.Node]*nodepb.ReplicaStatus, len(f.layout.Partitions))
	for id, st := range f.statuses {
		for _, r := range st.Replicas {
			if reported[r.Partition] == nil {
				reported[r.Partition] = map[ids.Node]*nodepb.ReplicaStatus{}
			}
			reported[r.Partition][ids.Node(id)] = r
		}
	}
	return reported
}

// authority returns the most authoritative report: that of the leader of the latest term,
// otherwise one that names the latest leader; nil if there are none.
func authority(reported map[ids.Node]*nodepb.ReplicaStatus) (best *nodepb.ReplicaStatus) {
	leads := func(r *nodepb.ReplicaStatus) int {
		switch {
		case r.State == raft.Leader.String():
			return 2
		case r.Leader != "":
			return 1
		}
		return 0
	}
	for _, r := range reported {
		if best == nil || cmp.Or(cmp.Compare(leads(r), leads(best)), cmp.Compare(r.Term, best.Term), cmp.Compare(r.MembersIndex, best.MembersIndex)) > 0 {
			best = r
		}
	}
	return best
}

func roleOf(m *nodepb.ReplicaMember, leader string) admin.Role {
	switch {
	case m.Id == leader:
		return admin.RoleLeader
	case m.Voter:
		return admin.RoleVoter
	}
	return admin.RoleLearner
}

// withReplica adds a node's report of its replica.
func withReplica(all []admin.ReplicaState, node ids.Node, r *nodepb.ReplicaStatus, leads bool) []admin.ReplicaState {
	at := slices.IndexFunc(all, func(known admin.ReplicaState) bool { return known.Node == node })
	if at < 0 { // not in the configuration: not yet, or no longer
		all = append(all, admin.ReplicaState{Node: node, Role: admin.RoleNone})
		at = len(all) - 1
	}
	s := &all[at]
	s.Answers, s.Serving, s.Quarantine = true, r.Leading, r.Quarantine
	s.Applied, s.Committed, s.Last, s.Snapshot = r.Applied, r.Commit, r.Last, r.Snapshot
	if leads {
		s.LagKnown, s.CaughtUp = true, true
	}
	s.CaughtUp = s.CaughtUp && r.Quarantine == ""
	return all
}

// node returns one member.
func (f *clusterFacts) node(n metadata.Node, state *admin.ClusterState) admin.NodeState {
	id := ids.Node(n.ID)
	out := admin.NodeState{
		ID: id, Name: n.Name, State: admin.NodeUnknown, Draining: n.Draining, Self: n.ServerID() == f.self, Metadata: admin.RoleNone,
		Address: string(n.RaftAddress()), IngressAddress: n.IngressAddress, AdminAddress: n.AdminAddress, Incarnation: n.Incarnation,
		RegisteredAt: rest.Timestamp(n.RegisteredAt.UnixMilli()), FeatureLevel: uint32(n.FeatureLevel),
	}
	for _, m := range f.members {
		if m.Name == n.Name && m.Incarnation == n.Incarnation {
			out.State, out.Version, out.Address = liveness(m.State), m.Version, m.Address
			out.Stopping = m.Draining && m.State == membership.Alive // a stopped node announced it before
			out.StartedAt, out.StateSince = rest.Timestamp(m.Started.UnixMilli()), rest.Timestamp(m.Since.UnixMilli())
		}
	}
	if st := f.statuses[n.ID]; st != nil {
		out.Answers, out.Stopping, out.Version, out.StartedAt = true, st.Draining, st.Version, rest.Timestamp(st.StartedAt)
		out.Disk, out.SecretKeys = st.Disk, st.SecretKeys
		if u := st.Usage; u != nil {
			out.Usage = &admin.NodeUsage{CPU: u.Cpu, Cores: u.Cores, Memory: u.Memory, MemoryLimit: u.MemoryLimit, DiskFree: u.DiskFree, DiskTotal: u.DiskTotal}
		}
		out.FeatureLevel, out.FeatureHold = uint32(feature.Announced(st.FeatureLevel)), st.FeatureLevelHold
	}
	if out.Self {
		out.State = admin.NodeAlive
	}
	switch {
	case state.Metadata.Leader == id:
		out.Metadata = admin.RoleLeader
	case slices.Contains(state.Metadata.Voters, id):
		out.Metadata = admin.RoleVoter
	case slices.Contains(state.Metadata.Learners, id):
		out.Metadata = admin.RoleLearner
	}
	for _, p := range state.Partitions {
		if p.Leader == id {
			out.Leaders++
		}
		if slices.ContainsFunc(p.Replicas, func(r admin.ReplicaState) bool { return r.Node == id && r.Role != admin.RoleNone }) {
			out.Replicas++
		}
	}
	return out
}

func liveness(s membership.State) admin.Liveness {
	switch s {
	case membership.Alive:
		return admin.NodeAlive
	case membership.Dead:
		return admin.NodeDead
	case membership.Left:
		return admin.NodeLeft
	}
	return admin.NodeUnknown
}
