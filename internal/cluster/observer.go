package node

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
	"platform/internal/membership"
	"platform/metadata"
	"platform/metadata/placement"
	nodepb "platform/proto/node"
)

// observer is what the controller of the cluster sees from this node.
type observer struct {
	n       *Node
	changes <-chan struct{}
	// silent is since when members are not alive as far as this node knows, by id. Only
	// the controller's goroutine uses it.
	silent map[uint32]time.Time
}

var _ metadata.Observer = (*observer)(nil)

// control runs the controller until ctx ends; it acts while this node leads the metadata.
func (n *Node) control(ctx context.Context) error {
	changes, stop := n.members.Watch()
	defer stop()
	return ignoreCanceled(n.metadata.RunController(ctx, &observer{n: n, changes: changes, silent: map[uint32]time.Time{}}))
}

// Liveness implements metadata.Observer. A node that is about to stop gets nothing new.
func (o *observer) Liveness() map[uint32]placement.Liveness {
	now := time.Now()
	alive := map[raft.ServerID]membership.Member{}
	for _, m := range o.n.members.Nodes() {
		if m.State == membership.Alive {
			alive[serverID(m.Name, m.Incarnation)] = m
		}
	}
	liveness := map[uint32]placement.Liveness{}
	for _, node := range o.n.metadata.Nodes() {
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
		} else if now.Sub(since) > o.n.cfg.NodeLostTimeout.Std() {
			liveness[node.ID] = placement.Lost
		}
	}
	return liveness
}

// Partitions implements metadata.Observer.
func (o *observer) Partitions(ctx context.Context) map[uint32]metadata.Configuration {
	leaders := map[uint32]*nodepb.ReplicaStatus{}
	for _, st := range o.n.statuses(ctx) {
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
	st, err := o.n.askStatus(ctx, string(o.n.addresses.of(node.ServerID())), false)
	if err != nil {
		return 0, err
	}
	if serverID(st.Name, st.Incarnation) != node.ServerID() {
		return 0, fmt.Errorf("%s/%s answers in its place", st.Name, st.Incarnation)
	}
	return st.MetadataApplied, nil
}

// Announcements implements metadata.Observer.
func (o *observer) Announcements(ctx context.Context) map[uint32]metadata.Announcement {
	return announcements(o.n.statuses(ctx))
}

// Changed implements metadata.Observer.
func (o *observer) Changed() <-chan struct{} { return o.changes }

// announcements are what nodes said about feature levels, by node id.
func announcements(statuses map[uint32]*nodepb.StatusResponse) map[uint32]metadata.Announcement {
	said := make(map[uint32]metadata.Announcement, len(statuses))
	for id, st := range statuses {
		said[id] = metadata.Announcement{
			Server: serverID(st.Name, st.Incarnation), Supported: feature.Announced(st.FeatureLevel), Hold: st.FeatureLevelHold,
		}
	}
	return said
}

func memberServer(m *nodepb.ReplicaMember) raft.Server {
	s := raft.Server{Suffrage: raft.Nonvoter, ID: raft.ServerID(m.Id), Address: raft.ServerAddress(m.Address)}
	if m.Voter {
		s.Suffrage = raft.Voter
	}
	return s
}

func isVoter(s raft.Server) bool { return s.Suffrage == raft.Voter }
