package replicas

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
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

// ReplicaID is the Raft server id of this node's replica of a partition.
func (m *Manager) ReplicaID(id uint32) raft.ServerID {
	hard, err := m.Hard.Group(partition.GroupID(id))
	if err != nil {
		return m.Node.ID // in quarantine: nothing is opened under it
	}
	return metadata.ReplicaID(m.Node.ID, hard.Record().Replica)
}

// isolate takes a quarantined replica out of use, and rebuilds it from the others once
// they serve the partition without it. If they do not, or if there are none, what is
// here may be the only copy of something, so it stays.
func (m *Manager) isolate(ctx context.Context, p *partition.Partition, id uint32, layout *metadata.Layout) error {
	if p != nil {
		if err := m.closeReplica(ctx, p, p.Stop); err != nil {
			return err
		}
	}
	// Older nodes do not know the server ids of rebuilt replicas.
	if m.Store.FeatureLevel() < feature.Level2 || len(layout.Nodes) < 2 || !m.quarantine.due(id, time.Now()) {
		return nil
	}
	_, served := m.Nodes.Statuses(ctx, false).Leader(id)
	if !served {
		return nil
	}
	if err := m.rebuild(ctx, id); err != nil {
		return err
	}
	return m.openReplica(ctx, id, layout)
}

// rebuild gives up the data of a quarantined replica. It comes back under another
// server id, which the leader adds without a vote until it has caught up; nothing that
// the former replica promised is asked of it.
func (m *Manager) rebuild(ctx context.Context, id uint32) error {
	m.Log.Warn("rebuilding the quarantined replica from the others", "partition_id", id, "reason", m.quarantine.reason(id))
	if err := m.destroy(ctx, id); err != nil {
		return err // the record says that it has to be finished
	}
	m.quarantine.rebuilt(id, time.Now())
	m.Log.Info("quarantined replica removed, it is copied from the others", "partition_id", id, "replica_id", string(m.ReplicaID(id)))
	return nil
}

// replicaOn returns the Raft server ID of a node's replica. The leader knows it if that
// replica is a member and responds; otherwise the node is asked.
func (m *Manager) replicaOn(ctx context.Context, p *partition.Partition, node metadata.Node) raft.ServerID {
	if node.ServerID() == m.Node.ID {
		return p.LocalID()
	}
	return p.Status().ReplicaOn(node.ServerID(), func() (raft.ServerID, bool) {
		ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
		defer cancel()
		status, err := m.Nodes.Status(ctx, node)
		if err != nil {
			return "", false
		}
		for _, r := range status.Replicas {
			if r.Partition == p.ID() {
				return raft.ServerID(r.ReplicaId), true
			}
		}
		return "", false
	})
}
