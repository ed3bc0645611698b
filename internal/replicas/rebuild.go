package node

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

const (
	// rebuildPause is how long a replica that was rebuilt and quarantined again waits
	// for the next rebuild; it doubles up to rebuildPauseMax.
	rebuildPause    = 30 * time.Second
	rebuildPauseMax = time.Hour
	// replicaTimeout bounds how long a node is asked for the id of its replica.
	replicaTimeout = 300 * time.Millisecond
)

// replicaID is the Raft server id of this node's replica of a partition.
func (n *Node) replicaID(id uint32) raft.ServerID {
	hard, err := n.hard.Group(partition.GroupID(id))
	if err != nil {
		return n.replica().ID // in quarantine: nothing is opened under it
	}
	return metadata.ReplicaID(n.replica().ID, hard.Record().Replica)
}

// isolate takes a quarantined replica out of use, and rebuilds it from the others once
// they serve the partition without it. If they do not, or if there are none, what is
// here may be the only copy of something, so it stays.
func (n *Node) isolate(ctx context.Context, p *partition.Partition, id uint32, layout *metadata.Layout) error {
	if p != nil {
		if err := n.closeReplica(ctx, p, p.Stop); err != nil {
			return err
		}
	}
	// Older nodes do not know the server ids of rebuilt replicas.
	if n.featureLevel() < feature.Level2 || len(layout.Nodes) < 2 || !n.quarantine.due(id, time.Now()) {
		return nil
	}
	_, served := leaderOf(n.statuses(ctx), id)
	if !served {
		return nil
	}
	if err := n.rebuild(ctx, id); err != nil {
		return err
	}
	return n.openReplica(ctx, id, layout)
}

// rebuild gives up the data of a quarantined replica. It comes back under another
// server id, which the leader adds without a vote until it has caught up; nothing that
// the former replica promised is asked of it.
func (n *Node) rebuild(ctx context.Context, id uint32) error {
	hard, err := n.hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	n.log.Warn("rebuilding the quarantined replica from the others", "partition_id", id, "reason", n.quarantine.reason(id))
	if err := hard.BeginRebuild(); err != nil {
		return err
	}
	if err := n.destroy(ctx, id); err != nil {
		return err // the record says that it has to be finished
	}
	n.quarantine.rebuilt(id, time.Now())
	n.log.Info("quarantined replica removed, it is copied from the others", "partition_id", id, "replica_id", string(n.replicaID(id)))
	return nil
}

// replicaOn is the server id of a node's replica, as the members of the partition have
// it. A replica that was rebuilt has another one, which only its node knows; that is
// asked if the known one is missing or does not answer.
func (n *Node) replicaOn(ctx context.Context, p *partition.Partition, node metadata.Node) raft.ServerID {
	if node.ServerID() == n.replica().ID {
		return p.LocalID()
	}
	st := p.Status()
	known, number, found := newestReplica(st.Members, node)
	for _, f := range st.Followers {
		if found && f.ID == known && f.Live {
			return known
		}
	}
	ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
	defer cancel()
	answer, err := n.askStatus(ctx, string(n.addresses.of(node.ServerID())), false)
	if err != nil || serverID(answer.Name, answer.Incarnation) != node.ServerID() {
		return known
	}
	for _, r := range answer.Replicas {
		on, rebuilt := metadata.ReplicaNode(raft.ServerID(r.ReplicaId))
		if r.Partition == p.ID() && on == node.ServerID() && (!found || rebuilt > number) {
			return raft.ServerID(r.ReplicaId)
		}
	}
	return known
}

// newestReplica is the member on a node; without one, found is false and the id that
// of the node's first replica.
func newestReplica(members raftgroup.Configuration, node metadata.Node) (id raft.ServerID, number uint32, found bool) {
	id = node.ServerID()
	for _, s := range members.Servers {
		on, n := metadata.ReplicaNode(s.ID)
		if on == node.ServerID() && (!found || n > number) {
			id, number, found = s.ID, n, true
		}
	}
	return id, number, found
}
