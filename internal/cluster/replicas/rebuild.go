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
	// rebuildPause is the delay before a replica that was rebuilt and quarantined again is
	// rebuilt once more; it doubles up to rebuildPauseMax.
	rebuildPause    = 30 * time.Second
	rebuildPauseMax = time.Hour
	// quarantineGrace is how long a replica in quarantine is closed before its data is removed: longer
	// than the heartbeat timeout. Until then the leader may count on it for a change of the
	// members, after which the group could depend on a replica that never returns.
	quarantineGrace = 3 * time.Second
	// replicaTimeout bounds a request for the ID of a node's replica.
	replicaTimeout = 300 * time.Millisecond
)

// ReplicaID returns the Raft server ID of this node's replica of a partition.
func (rc *Reconciler) ReplicaID(id uint32) raft.ServerID {
	hard, err := rc.cfg.Hard.Group(partition.GroupID(id))
	if err != nil {
		return rc.cfg.Node.ID // in quarantine: never opened with this ID
	}
	return metadata.ReplicaID(rc.cfg.Node.ID, hard.Record().Replica)
}

// isolate closes a quarantined replica, and rebuilds it from the others once they serve the
// partition without it. Otherwise the data is kept, since it may be the only copy.
func (rc *Reconciler) isolate(ctx context.Context, p *partition.Partition, id uint32, layout *metadata.Layout) error {
	if p != nil {
		if err := rc.closeReplica(ctx, p, p.Stop); err != nil {
			return err
		}
	}
	// Older nodes do not know the server IDs of rebuilt replicas.
	if rc.cfg.Store.FeatureLevel() < feature.Level2 || len(layout.Nodes) < 2 || !rc.quarantine.due(id, time.Now()) {
		return nil
	}
	_, served := rc.cfg.Nodes.Statuses(ctx, false).Leader(id)
	if !served {
		return nil
	}
	if err := rc.rebuild(ctx, id); err != nil {
		rc.quarantine.postpone(id, time.Now())
		return err
	}
	return rc.openReplica(ctx, id, layout)
}

// rebuild removes the data of a quarantined replica. The new replica has another server ID,
// which the leader adds without a vote until it has caught up; it is not bound by the
// promises of the former one.
func (rc *Reconciler) rebuild(ctx context.Context, id uint32) error {
	rc.cfg.Log.Warn("rebuilding quarantined replica", "partition_id", id, "reason", rc.quarantine.reason(id))
	if err := rc.destroy(ctx, id); err != nil {
		return err // the record makes the next start finish it
	}
	rc.quarantine.rebuilt(id, time.Now())
	rc.cfg.Log.Info("quarantined replica removed, will be copied from the leader", "partition_id", id, "replica_id", string(rc.ReplicaID(id)))
	return nil
}

// replicaOn returns the Raft server ID of a node's replica: from the members, if that
// replica responds, otherwise by a request to the node.
func (rc *Reconciler) replicaOn(ctx context.Context, p *partition.Partition, node metadata.Node) raft.ServerID {
	if node.ServerID() == rc.cfg.Node.ID {
		return p.LocalID()
	}
	return p.Status().ReplicaOn(node.ServerID(), func() (raft.ServerID, bool) {
		ctx, cancel := context.WithTimeout(ctx, replicaTimeout)
		defer cancel()
		status, err := rc.cfg.Nodes.Status(ctx, node)
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
