package replicas

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
	"platform/internal/cluster/membership"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

const (
	// HandOverTimeout bounds the leadership transfers of a stopping node.
	HandOverTimeout = 10 * time.Second
	// handOverPause is the delay between two attempts.
	handOverPause = 50 * time.Millisecond
)

// room returns why a partition that this node leads accepts no new invocations, nil if it
// does. While another node may become leader, the error makes callers look for that one.
func (rc *Reconciler) room() error {
	err := rc.cfg.Disk.Room()
	if err != nil && len(rc.cfg.Store.Nodes()) > 1 && rc.cfg.Disk.ShortFor() < HandOverTimeout {
		return fmt.Errorf("%w: %s", raftgroup.ErrNotLeader, err.Error()) // not ErrOverloaded, which is final
	}
	return err
}

// HandOver transfers the leadership of a partition to another replica.
func (rc *Reconciler) HandOver(ctx context.Context, p *partition.Partition) {
	var tried transfers
	for p.Leading() {
		to, expected := rc.successor(p, &tried)
		if !expected {
			return
		}
		err := errNotCaughtUp
		if to != "" {
			if err = p.TransferLeadership(ctx, to); err != nil {
				tried.failed(to, time.Now())
			}
		}
		switch {
		case err == nil, errors.Is(err, raftgroup.ErrNotLeader), errors.Is(err, raftgroup.ErrNoPeer):
			return
		case ctx.Err() != nil:
			rc.cfg.Log.Warn("leadership transfer failed; peers will elect", "partition_id", p.ID(), "err", err)
			return
		}
		select {
		case <-time.After(handOverPause):
		case <-ctx.Done():
		}
	}
}

var errNotCaughtUp = errors.New("no other replica has caught up")

// successor returns a transfer target for the leadership of this replica, "" if there is
// none now; expected reports whether there may soon be one. Nodes that are about to stop are not
// targets, since they would only transfer it again.
func (rc *Reconciler) successor(p *partition.Partition, tried *transfers) (to raft.ServerID, expected bool) {
	return tried.successor(p.Status().Followers, rc.AvailableNodes())
}

// successor prefers replicas to which no transfer has failed, then those to which few have.
func (t *transfers) successor(followers []raftgroup.Follower, available map[raft.ServerID]bool) (to raft.ServerID, expected bool) {
	for _, f := range followers {
		node, _ := metadata.ReplicaNode(f.ID)
		if !isVoter(f.Server) || !available[node] {
			continue
		}
		expected = true
		if f.Live && f.CaughtUp && (to == "" || t.failures[f.ID].pause < t.failures[to].pause) {
			to = f.ID
		}
	}
	return to, expected
}

// AvailableNodes returns the other nodes that are alive and not about to stop.
func (rc *Reconciler) AvailableNodes() map[raft.ServerID]bool {
	available := map[raft.ServerID]bool{}
	for _, m := range rc.cfg.Members.Nodes() {
		if !m.Self && m.State == membership.Alive && !m.Draining {
			available[cluster.ServerID(m.Name, m.Incarnation)] = true
		}
	}
	return available
}

func isVoter(s raft.Server) bool { return s.Suffrage == raft.Voter }
