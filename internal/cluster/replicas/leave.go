package replicas

import (
	"context"
	"errors"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition"
	nodepb "platform/proto/node"
)

// leave removes the replica once the leader of the partition confirms that it is no longer a
// member. Until then the others may need its vote.
func (rc *Reconciler) leave(ctx context.Context, p *partition.Partition, layout *metadata.Layout) error {
	if !rc.confirmedRemoval(ctx, p) {
		return nil
	}
	rc.cfg.Log.Info("removing replica, partition was moved", "partition_id", p.ID())
	if err := rc.closeReplica(ctx, p, p.Stop); err != nil {
		return err
	}
	// Until it was stopped, it responded to the leader, which may have added it again.
	if !rc.confirmedRemoval(ctx, p) {
		rc.cfg.Log.Info("keeping replica, partition is to be here again", "partition_id", p.ID())
		return rc.openReplica(ctx, p.ID(), layout)
	}
	return rc.destroy(ctx, p.ID()) // if interrupted, the next start finishes it
}

// confirmedRemoval queries the other nodes whether a replica is no longer a member of its
// partition.
func (rc *Reconciler) confirmedRemoval(ctx context.Context, p *partition.Partition) bool {
	// A leader does not contact removed members, so it may not be known here.
	for _, st := range rc.cfg.Nodes.Statuses(ctx, false) {
		for _, r := range st.Replicas {
			if removed(p.Status(), r, p.LocalID()) {
				return true
			}
		}
	}
	return false
}

// removed reports whether the status of another node's replica proves that this node's one
// is no longer a member of the partition.
func removed(own partition.Status, reported *nodepb.ReplicaStatus, self raft.ServerID) bool {
	members := raftgroup.Configuration{Index: reported.MembersIndex}
	for _, m := range reported.Members {
		members.Servers = append(members.Servers, raft.Server{ID: raft.ServerID(m.Id)})
	}
	var newest []raft.ServerID
	for _, id := range reported.Newest {
		newest = append(newest, raft.ServerID(id))
	}
	return own.RemovedBy(partition.Status{
		ID: reported.Partition, Leading: reported.Leading, Term: reported.Term, Members: members, Newest: newest,
	}, self)
}

// destroy removes all data of a partition from this node. A later replica of it on this node
// gets the next number, and therefore another Raft server ID. Nodes below feature level 2 do
// not know such IDs.
func (rc *Reconciler) destroy(ctx context.Context, id uint32) error {
	if rc.cfg.Store.FeatureLevel() >= feature.Level2 {
		if err := rc.retire(ctx, id); err != nil {
			return err
		}
	}
	hard, err := rc.cfg.Hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	return partition.Destroy(ctx, rc.cfg.Logs, rc.cfg.Tables, hard, id)
}

// retire assigns the next number. If the last one is not on record, it follows from what the
// other nodes know.
func (rc *Reconciler) retire(ctx context.Context, id uint32) error {
	group := partition.GroupID(id)
	hard, err := rc.cfg.Hard.Group(group)
	if errors.Is(err, logstore.ErrCorrupt) || err == nil && hard.Missing() {
		return rc.cfg.Hard.RetireUnknown(group, highestNumber(rc.cfg.Nodes.Statuses(ctx, false), id, rc.cfg.Node.ID))
	}
	if err != nil {
		return err
	}
	return hard.Retire()
}

// highestNumber returns the highest number of a node's replicas of a partition that any node
// knows as a member.
func highestNumber(statuses cluster.Statuses, id uint32, node raft.ServerID) (highest uint32) {
	note := func(replica string) {
		if on, n := metadata.ReplicaNode(raft.ServerID(replica)); on == node {
			highest = max(highest, n)
		}
	}
	for _, st := range statuses {
		for _, r := range st.Replicas {
			if r.Partition != id {
				continue
			}
			for _, m := range r.Members {
				note(m.Id)
			}
			for _, replica := range r.Newest {
				note(replica)
			}
		}
	}
	return highest
}
