package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/cluster/membership"
	"platform/metadata"
	"platform/metadata/placement"
	nodepb "platform/proto/node"
)

// observer is this node's view of the cluster, for the controller, during one leadership.
type observer struct {
	store   *metadata.Store
	members *membership.Members
	nodes   *Nodes
	lost    time.Duration // node-lost-timeout
	changes <-chan struct{}
	// silent is since when members are not alive according to this node, by ID. Only the
	// controller's goroutine uses it.
	silent map[uint32]time.Time
}

var _ metadata.Observer = (*observer)(nil)

// RunController runs the controller of the cluster until ctx ends; it is active while this
// node leads the metadata. A node that is silent for the duration lost counts as lost.
func RunController(ctx context.Context, store *metadata.Store, members *membership.Members, nodes *Nodes, lost time.Duration) error {
	changes, stop := members.Watch()
	defer stop()
	return store.RunController(ctx, func() metadata.Observer {
		return &observer{store: store, members: members, nodes: nodes, lost: lost, changes: changes, silent: map[uint32]time.Time{}}
	})
}

// Liveness implements metadata.Observer. A node that is about to stop is suspect, so it gets
// no new replicas.
func (o *observer) Liveness() map[uint32]placement.Liveness {
	now := time.Now()
	alive := map[raft.ServerID]membership.Member{}
	for _, m := range o.members.Nodes() {
		if m.State == membership.Alive {
			alive[ServerID(m.Name, m.Incarnation)] = m
		}
	}
	liveness := map[uint32]placement.Liveness{}
	for _, node := range o.store.Nodes() {
		m, there := alive[node.ServerID()]
		if there {
			delete(o.silent, node.ID)
			if !m.Draining {
				liveness[node.ID] = placement.Alive
			}
			continue
		}
		since, known := o.silent[node.ID]
		if !known {
			o.silent[node.ID] = now
		} else if now.Sub(since) > o.lost {
			liveness[node.ID] = placement.Lost
		}
	}
	return liveness
}

// Partitions implements metadata.Observer.
func (o *observer) Partitions(ctx context.Context) map[uint32]metadata.Configuration {
	leaders := map[uint32]*nodepb.ReplicaStatus{}
	for _, st := range o.nodes.Statuses(ctx, false) {
		for _, r := range st.Replicas {
			if known := leaders[r.Partition]; r.Leading && (known == nil || r.Term > known.Term) {
				leaders[r.Partition] = r
			}
		}
	}
	configurations := make(map[uint32]metadata.Configuration, len(leaders))
	for id, r := range leaders {
		leader, _ := metadata.ReplicaNode(raft.ServerID(r.Leader))
		c := metadata.Configuration{Leader: leader}
		for _, m := range r.Members {
			s := memberServer(m)
			s.ID, _ = metadata.ReplicaNode(s.ID)
			c.Servers = append(c.Servers, s)
		}
		configurations[id] = c
	}
	return configurations
}

// Applied implements metadata.Observer.
func (o *observer) Applied(ctx context.Context, node metadata.Node) (uint64, error) {
	st, err := o.nodes.Status(ctx, node)
	if err != nil {
		return 0, err
	}
	return st.MetadataApplied, nil
}

// Announcements implements metadata.Observer.
func (o *observer) Announcements(ctx context.Context) map[uint32]metadata.Announcement {
	return o.nodes.Statuses(ctx, false).Announcements()
}

// Changed implements metadata.Observer.
func (o *observer) Changed() <-chan struct{} { return o.changes }

func memberServer(m *nodepb.ReplicaMember) raft.Server {
	s := raft.Server{Suffrage: raft.Nonvoter, ID: raft.ServerID(m.Id), Address: raft.ServerAddress(m.Address)}
	if m.Voter {
		s.Suffrage = raft.Voter
	}
	return s
}
