package node

import (
	"context"
	"time"

	"platform/admin"
	"platform/admin/query"
	"platform/flowcontrol"
	"platform/partition"
	"platform/partition/machine"
)

// newQueryEngine returns what answers SQL on this node.
func (n *Node) newQueryEngine() *query.Engine {
	c := &n.cfg.Admin.QueryEngine
	return query.NewEngine(query.Config{
		Partitions: queried{n.router, n.cfg.FlowControl()},
		Registry:   n.metadata.Schemas,
		Rules: func() *flowcontrol.Book {
			book, _ := n.metadata.Rules()
			return book
		},
		Cluster: queriedCluster{n},
		Timeout: c.Timeout.Std(), MaxRows: c.MaxRows, MaxBytes: int(c.MaxBytes),
		Concurrent: c.Concurrency, MemoryLimit: int64(c.MemorySize),
	})
}

// queried is the partitions as queries read them.
type queried struct {
	*router
	scoped bool
}

// Count implements query.Partitions.
func (q queried) Count() uint32 { return uint32(q.directory.Partitions()) }

// Scan implements query.Partitions.
func (q queried) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	return q.directory.Partition(id).Scan(ctx, s)
}

// Scoped implements query.Partitions.
func (q queried) Scoped() bool { return q.scoped }

// queriedCluster is the cluster as queries read it.
type queriedCluster struct{ n *Node }

// State implements query.Cluster.
func (q queriedCluster) State(ctx context.Context) (*query.ClusterState, error) {
	state, err := clusterAdmin(q).State(ctx)
	if err != nil {
		return nil, err
	}
	book, _ := q.n.metadata.Rules()
	out := &query.ClusterState{At: time.Now(), Rules: uint64(book.Version)}
	for i := range state.Nodes {
		out.Nodes = append(out.Nodes, queriedNode(&state.Nodes[i]))
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
			out.Replicas = append(out.Replicas, queriedReplica(p, &p.Replicas[j]))
		}
	}
	return out, nil
}

func queriedNode(n *admin.NodeState) query.Node {
	return query.Node{
		ID: n.ID, Name: n.Name, Incarnation: n.Incarnation, State: string(n.State), Address: n.Address,
		Ingress: n.IngressAddress, Admin: n.AdminAddress, Draining: n.Draining, MetadataRole: string(n.Metadata),
		Leaders: n.Leaders, Replicas: n.Replicas, Version: n.Version, StartedAt: timeOf(n.StartedAt), Since: timeOf(n.StateSince),
	}
}

func timeOf(t admin.Timestamp) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t))
}

func queriedReplica(p *admin.PartitionState, r *admin.ReplicaState) query.Replica {
	out := query.Replica{
		Partition: p.ID, Node: r.Node, Group: partition.GroupID(p.ID), Role: string(r.Role), Answers: r.Answers, Serving: r.Serving,
		Term: p.Term, Applied: r.Applied, Committed: r.Committed, Last: r.Last, Snapshot: r.Snapshot, PlacedVersion: p.Version,
	}
	for _, node := range p.Placed {
		out.Placed = out.Placed || node == r.Node
	}
	return out
}

// Settings implements query.Cluster.
func (q queriedCluster) Settings(context.Context) ([]query.Setting, error) {
	var all []query.Setting
	for _, s := range q.n.cfg.Settings() {
		all = append(all, query.Setting{Node: q.n.cfg.NodeName, Key: s.Key, Value: s.Value})
	}
	return all, nil
}
