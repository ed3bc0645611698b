package replicas

import (
	"context"
	"fmt"
	"time"

	"platform/internal/cluster"
	"platform/internal/raftgroup"
	"platform/partition"
	nodepb "platform/proto/node"
)

const (
	// recoverPause is the delay between two attempts to lock a partition.
	recoverPause = 10 * time.Millisecond
)

// Recover makes the replica of a partition its only one, or puts it into quarantine if
// another one was chosen.
func (rc *Reconciler) Recover(ctx context.Context, req *nodepb.RecoverRequest) error {
	id := req.Partition
	p := rc.cfg.Router.Replica(id)
	if p == nil {
		return fmt.Errorf("there is no usable replica of partition %d", id)
	}
	if err := awaitNoLeader(ctx, p); err != nil {
		return err
	}
	for !rc.locks[id].TryLock() {
		select {
		case <-time.After(recoverPause):
		case <-ctx.Done():
			return fmt.Errorf("the replica is in use: %w", ctx.Err())
		}
	}
	defer rc.locks[id].Unlock()
	if rc.cfg.Router.Replica(id) != p {
		return fmt.Errorf("the replica of partition %d was closed meanwhile", id)
	}
	if err := checkUnchanged(p, req); err != nil {
		return err
	}
	if err := rc.closeReplica(ctx, p, p.Stop); err != nil {
		return err
	}
	if req.From != string(rc.cfg.Node.ID) {
		reason := "the partition was recovered from node " + req.From + " after it had lost its majority"
		if err := rc.cfg.Logs.Quarantine(partition.GroupID(id), reason); err != nil {
			return err
		}
		rc.quarantine.add(id, reason)
		rc.cfg.Log.Warn("replica quarantined, partition is recovered from another node", "partition_id", id, "from", req.From)
		return nil
	}
	if err := rc.force(id); err != nil {
		return err
	}
	layout, _ := rc.cfg.Store.Layout()
	return rc.openReplica(ctx, id, layout)
}

// leaderView is a replica's view of its partition's leader.
type leaderView interface {
	ID() uint32
	Leader() raftgroup.Leader
	Changed() <-chan struct{}
}

// awaitNoLeader waits until a replica knows no leader, for at most cluster.LeaderExpiry.
func awaitNoLeader(ctx context.Context, p leaderView) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.LeaderExpiry)
	defer cancel()
	for {
		changed := p.Changed()
		leader := p.Leader()
		if leader.ID == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return hasLeaderError(p.ID(), leader)
		}
	}
}

func hasLeaderError(partition uint32, leader raftgroup.Leader) error {
	return fmt.Errorf("partition %d has a leader, %s", partition, leader.ID)
}

// checkUnchanged rejects a replica that has changed since the recovery was planned.
func checkUnchanged(p *partition.Partition, req *nodepb.RecoverRequest) error {
	if own := string(p.LocalID()); own != req.Replica {
		return fmt.Errorf("the replica here is %s, not %s", own, req.Replica)
	}
	if leader := p.Leader(); leader.ID != "" {
		return hasLeaderError(p.ID(), leader)
	}
	last, err := p.LastPosition()
	if err != nil {
		return err
	}
	if last != (raftgroup.Position{Index: req.Last, Term: req.LastTerm}) {
		return fmt.Errorf("the log has changed since: it ends at entry %d of term %d", last.Index, last.Term)
	}
	return nil
}

// force makes the closed replica of a partition its only one, with the next number, so that
// it does not respond to former members that know its previous ID.
func (rc *Reconciler) force(id uint32) error {
	record, err := rc.cfg.Hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	if err := record.Renumber(); err != nil {
		return err
	}
	return partition.ForceOnlyMember(rc.cfg.Logs, rc.cfg.Tables, rc.cfg.Hard, id, rc.cfg.Node)
}
