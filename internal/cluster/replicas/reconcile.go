package replicas

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
	"platform/internal/cluster/membership"
	"platform/internal/diskspace"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

const (
	// reconcileTick is the interval of comparisons with the table when nothing changes.
	reconcileTick = time.Second
	// settleTime is how long a node must be up before it gets leaderships back, and how long
	// the current leader leads before a transfer, so that callers do not lose their leader
	// twice in a row.
	settleTime = 3 * time.Second
	// maxContactAge is the maximum age of the last response of a transfer target, since a transfer
	// blocks the partition until the target responds: several heartbeats, and much less
	// than the time after which a follower counts as unreachable.
	maxContactAge = time.Second
	// transferPause is the delay after a failed transfer, for which the partition was blocked; it doubles up to transferPauseMax.
	transferPause    = 10 * time.Second
	transferPauseMax = 10 * time.Minute
)

// transfers is when a leadership may be transferred to another replica.
type transfers struct {
	settled  time.Time // to the preferred one, from then on; zero while this node does not lead
	failures map[raft.ServerID]transferFailure
}

// transferFailure is when the next transfer to a replica may be tried, and the pause after it, if it fails.
type transferFailure struct {
	due   time.Time
	pause time.Duration
}

func (t *transfers) observe(leads bool, now time.Time) {
	switch {
	case !leads:
		*t = transfers{}
	case t.settled.IsZero():
		t.settled = now.Add(settleTime)
	}
}

// failed records that a transfer has failed.
func (t *transfers) failed(to raft.ServerID, now time.Time) {
	if t.failures == nil {
		t.failures = map[raft.ServerID]transferFailure{}
	}
	pause := max(t.failures[to].pause, transferPause)
	t.failures[to] = transferFailure{now.Add(pause), min(2*pause, transferPauseMax)}
}

// ready reports whether a transfer may be tried again.
func (t *transfers) ready(to raft.ServerID, now time.Time) bool {
	return !now.Before(t.failures[to].due)
}

// Run reconciles the replicas of this node with the partition table until ctx ends.
func (rc *Reconciler) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { rc.watchDamage(ctx) })
	for id := range rc.cfg.Router.Count() {
		wg.Go(func() { rc.reconcile(ctx, id) })
	}
	wg.Wait()
	return nil
}

// reconcile reconciles one partition with the table until ctx ends.
func (rc *Reconciler) reconcile(ctx context.Context, id uint32) {
	tick := time.NewTicker(reconcileTick)
	defer tick.Stop()
	var next transfers
	for ctx.Err() == nil {
		layout, moved := rc.cfg.Store.Layout()
		var changed <-chan struct{}
		p := rc.cfg.Router.Replica(id)
		if p != nil {
			changed = p.Changed()
		}
		next.observe(p != nil && p.Leading(), time.Now())
		rc.locks[id].Lock()
		err := rc.reconcileOnce(ctx, id, layout, &next)
		rc.locks[id].Unlock()
		if err != nil && ctx.Err() == nil {
			rc.cfg.Log.Warn("replica differs from the partition table; retrying", "partition_id", id, "err", err)
		}
		select {
		case <-moved:
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// reconcileOnce takes the next step: it opens or removes the replica or, if the replica
// leads, changes the members or the leader of the partition.
func (rc *Reconciler) reconcileOnce(ctx context.Context, id uint32, layout *metadata.Layout, next *transfers) error {
	place, p := layout.Partitions[id], rc.cfg.Router.Replica(id)
	switch {
	case p != nil && rc.closing[id]:
		return rc.closeReplica(ctx, p, p.Stop)
	case rc.cfg.Disk.Level() == diskspace.Full:
		return rc.closeForSpace(ctx, p)
	case rc.quarantine.reason(id) != "":
		return rc.isolate(ctx, p, id, layout)
	case p == nil: // also one that should leave: until it is removed, the others may need its vote
		err := rc.openReplica(ctx, id, layout)
		if rc.quarantined(id, err) {
			return nil
		}
		return err
	case p.Leading():
		return rc.lead(ctx, p, layout, next)
	case !rc.holds(place):
		return rc.leave(ctx, p, layout)
	}
	return nil
}

// lead makes the replicas in the table the members of the partition, and transfers
// leadership to the preferred one when that is due. If this node's disk is short of space,
// it first tries to transfer leadership to any other replica.
func (rc *Reconciler) lead(ctx context.Context, p *partition.Partition, layout *metadata.Layout, next *transfers) error {
	space := rc.cfg.Disk.Level()
	if space >= diskspace.Short {
		if to, _ := rc.successor(p, next); to != "" && next.ready(to, time.Now()) {
			return transfer(ctx, p, to, next)
		}
	}
	place := layout.Partitions[p.ID()]
	desired := rc.desired(ctx, p, layout, place)
	if len(desired) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer cancel()
		tick := time.NewTicker(reconcileTick)
		defer tick.Stop()
		awaitOutdated(ctx, rc.cfg.Store.Layout, tick.C, place, func(layout *metadata.Layout) bool {
			return rc.cfg.Disk.Level() != space || rebuilt(desired, rc.desired(ctx, p, layout, place))
		})
	})
	if err := p.Reconcile(ctx, desired); err != nil {
		if errors.Is(err, raftgroup.ErrNotLeader) || errors.Is(err, raftgroup.ErrStopped) || ctx.Err() != nil {
			return nil // leadership or the table has changed
		}
		return err
	}
	preferred, now := desired[0].ID, time.Now()
	if space >= diskspace.Short || now.Before(next.settled) || !next.ready(preferred, now) {
		return nil
	}
	return rc.preferLeader(ctx, p, preferred, next)
}

// desired returns the members in the table, with the IDs of their current replicas.
func (rc *Reconciler) desired(ctx context.Context, p *partition.Partition, layout *metadata.Layout, place metadata.Partition) []raft.Server {
	servers := make([]raft.Server, 0, len(place.Replicas))
	for _, id := range place.Replicas {
		// A removed node remains a member until another one has replaced it.
		if node, member := layout.Node(id); member {
			servers = append(servers, raft.Server{Suffrage: raft.Voter, ID: rc.replicaOn(ctx, p, node), Address: node.RaftAddress()})
		}
	}
	return servers
}

// awaitOutdated returns when the partition has changed in the table, or outdated reports true,
// which it checks at every tick.
func awaitOutdated(ctx context.Context, layout func() (*metadata.Layout, <-chan struct{}), tick <-chan time.Time,
	place metadata.Partition, outdated func(*metadata.Layout) bool,
) {
	for {
		current, moved := layout()
		if current.Partitions[place.ID].Version != place.Version {
			return
		}
		select {
		case <-moved:
		case <-tick:
			if outdated(current) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// rebuilt reports whether a node has rebuilt its replica, under another ID.
func rebuilt(before, now []raft.Server) bool {
	for _, s := range now {
		node, number := metadata.ReplicaNode(s.ID)
		for _, b := range before {
			if was, earlier := metadata.ReplicaNode(b.ID); was == node && number > earlier {
				return true
			}
		}
	}
	return false
}

// preferLeader transfers leadership to a replica that has been healthy for some time.
func (rc *Reconciler) preferLeader(ctx context.Context, p *partition.Partition, to raft.ServerID, next *transfers) error {
	node, _ := metadata.ReplicaNode(to)
	if node == rc.cfg.Node.ID || rc.cfg.Draining() {
		return nil
	}
	for _, m := range rc.cfg.Members.Nodes() {
		if cluster.ServerID(m.Name, m.Incarnation) == node && (m.State != membership.Alive || m.Draining || time.Since(m.Since) < settleTime) {
			return nil
		}
	}
	for _, f := range p.Status().Followers {
		if f.ID == to && f.CaughtUp && time.Since(f.Contact) < maxContactAge && isVoter(f.Server) {
			return transfer(ctx, p, to, next)
		}
	}
	return nil
}

// transfer transfers leadership to a replica.
func transfer(ctx context.Context, p *partition.Partition, to raft.ServerID, next *transfers) error {
	err := p.TransferLeadership(ctx, to)
	if errors.Is(err, raftgroup.ErrNotLeader) || ctx.Err() != nil {
		return nil //nolint:nilerr // leadership has changed
	}
	if err != nil {
		next.failed(to, time.Now())
	}
	return err
}
