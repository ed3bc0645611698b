package backend

import (
	"context"
	"time"

	"platform/admin"
	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/cluster/routing"
	"platform/partition"
	"platform/partition/machine"
	nodepb "platform/proto/node"
)

// Queried gives SQL access to the partitions.
type Queried struct {
	*routing.Router
	FlowControl bool // enabled by configuration
}

// Scan implements query.Partitions.
func (q Queried) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	page, err := q.Partition(id).Scan(ctx, s)
	return page, routing.Explain(err)
}

// Scoped implements query.Partitions.
func (q Queried) Scoped() bool { return q.FlowControl }

// QueriedCluster gives SQL access to the state of the cluster.
type QueriedCluster struct{ Cluster *Cluster }

// State implements query.Cluster.
func (q QueriedCluster) State(ctx context.Context) (*query.ClusterState, error) {
	facts := q.Cluster.facts(q.Cluster.Nodes.Statuses(ctx, true))
	if err := context.Cause(ctx); err != nil {
		return nil, err // nodes that were not waited for are not missing
	}
	state, reported := facts.view(), facts.reported()
	out := &query.ClusterState{At: time.Now(), Level: state.Feature.Level}
	for i := range state.Nodes {
		n := &state.Nodes[i]
		out.Nodes = append(out.Nodes, queriedNode(n, facts.statuses[uint32(n.ID)]))
	}
	count := uint32(len(state.Partitions))
	for i := range state.Partitions {
		p := &state.Partitions[i]
		first, last := machine.KeyRange(p.ID, count)
		out.Partitions = append(out.Partitions, query.Partition{
			ID: p.ID, Count: count, FirstKey: first, LastKey: last, Group: partition.GroupID(p.ID),
			Leader: p.Leader, Term: p.Term, PlacedVersion: p.Version, Placed: p.Placed,
		})
		for j := range p.Replicas {
			out.Replicas = append(out.Replicas, queriedReplica(p, &p.Replicas[j], reported[p.ID][p.Replicas[j].Node]))
		}
	}
	return out, nil
}

// queriedNode combines a node with its report; st is nil if it did not respond.
func queriedNode(n *admin.NodeState, st *nodepb.StatusResponse) query.Node {
	out := query.Node{
		ID: n.ID, Name: n.Name, Incarnation: n.Incarnation, State: string(n.State), Address: n.Address,
		Ingress: n.IngressAddress, Admin: n.AdminAddress, Draining: n.Draining, MetadataRole: string(n.Metadata),
		Leaders: n.Leaders, Replicas: n.Replicas, Version: n.Version, FeatureLevel: n.FeatureLevel, StartedAt: timeOf(n.StartedAt), Since: timeOf(n.StateSince),
		Metadata: st.GetMetadataApplied(), Storage: st.GetStorageVersion(),
	}
	if st.GetFlowControl() {
		out.Features = append(out.Features, "flow-control")
	}
	for _, s := range st.GetSettings() {
		out.Settings = append(out.Settings, query.Setting{Key: s.Key, Value: s.Value})
	}
	return out
}

func timeOf(t rest.Timestamp) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t))
}

// queriedReplica combines a replica with the report of its node; reported is nil if it did not
// respond.
func queriedReplica(p *admin.PartitionState, r *admin.ReplicaState, reported *nodepb.ReplicaStatus) query.Replica {
	out := query.Replica{
		Partition: p.ID, Node: r.Node, Group: partition.GroupID(p.ID), Role: string(r.Role), Answers: r.Answers, Serving: r.Serving,
		Term: p.Term, Applied: r.Applied, Committed: r.Committed, Last: r.Last, Snapshot: r.Snapshot, PlacedVersion: p.Version,
		Rules: reported.GetRules(), Quarantine: r.Quarantine,
	}
	for _, node := range p.Placed {
		out.Placed = out.Placed || node == r.Node
	}
	return out
}
