package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"platform/internal/datadir"
	"platform/internal/diskspace"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/internal/routing"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
	nodepb "platform/proto/node"
)

const (
	// tendTick is how often a partition is looked at when nothing is heard of it.
	tendTick = time.Second
	// settled is how long a node has to be there before it gets leaderships back, and
	// how long another one leads meanwhile: elections leave traces, and one right after
	// the other would leave callers without a leader twice.
	settled = 3 * time.Second
	// lately is when a replica must have answered that is to lead. The transfer holds up
	// the partition until it has: several heartbeats, and much less than a follower may be
	// silent before it counts as gone.
	lately = time.Second
)

// openPartitions starts the replicas that this node has or should have.
func (n *Node) openPartitions(ctx context.Context) error {
	cluster, _ := n.metadata.Cluster()
	n.router = routing.New(cluster.Partitions, n.routes())
	n.tending = make([]sync.Mutex, cluster.Partitions)
	n.cluster.router.Store(n.router)
	n.invoker = n.newInvoker()
	layout, _ := n.metadata.Layout()
	var g errgroup.Group
	for id := range cluster.Partitions {
		g.Go(func() error {
			err := n.openReplica(ctx, id, layout)
			if n.quarantined(id, err) {
				return nil
			}
			if err != nil && len(layout.Nodes) > 1 && ctx.Err() == nil {
				n.log.Error("replica not opened; the others of the partition go on without it", "partition_id", id, "err", err)
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// openReplica opens the replica of a partition if this node should have it, or has it
// still.
func (n *Node) openReplica(ctx context.Context, id uint32, layout *metadata.Layout) error {
	place := layout.Partitions[id]
	logs, err := n.logs.Storage(partition.GroupID(id))
	if err != nil {
		return fmt.Errorf("open log of partition %d: %w", id, err)
	}
	last, err := logs.LastIndex()
	if err != nil {
		return fmt.Errorf("read log of partition %d: %w", id, err)
	}
	if last == 0 && !n.holds(place) {
		return nil
	}
	p, err := n.openPartition(id, logs, n.begins(place, layout))
	if errors.Is(err, raftgroup.ErrLeaving) { // what is removed was there: it begins nothing anew
		if err := n.destroy(ctx, id); err != nil || !n.holds(place) {
			return err
		}
		p, err = n.openPartition(id, logs, false)
	}
	if err != nil {
		return err
	}
	n.router.Set(id, p)
	return nil
}

// holds reports whether this node should have a replica.
func (n *Node) holds(place metadata.Partition) bool {
	me, _ := n.listed()
	return slices.Contains(place.Replicas, me.ID)
}

// begins reports whether this node makes the first replica of a partition.
func (n *Node) begins(place metadata.Partition, layout *metadata.Layout) bool {
	record, err := n.hard.Group(partition.GroupID(place.ID))
	return err == nil && n.holds(place) && mayBegin(n.self, record.Record(), place, len(layout.Nodes) == 1)
}

// mayBegin reports whether a node that should have a replica of a partition may make the
// first one: it created the cluster or is alone, and the partition has never been anywhere
// else. A node that the cluster was recovered from begins none, and a replica that was
// rebuilt does not begin again: what is not here is lost or elsewhere, not new.
func mayBegin(id datadir.Identity, record raftgroup.HardStateRecord, place metadata.Partition, alone bool) bool {
	return id.RecoveredAt.IsZero() && place.Version <= 1 && (id.Founder || alone) && record.Replica == 0 && !record.Rebuilding
}

func (n *Node) openPartition(id uint32, logs raftgroup.Storage, begins bool) (*partition.Partition, error) {
	tables, err := n.tables.Partition(id)
	if errors.Is(err, store.ErrDamaged) {
		err = fmt.Errorf("%w: %w", raftgroup.ErrQuarantined, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open tables of partition %d: %w", id, err)
	}
	hard, err := n.hard.Group(partition.GroupID(id))
	if errors.Is(err, raftgroup.ErrCorrupt) {
		err = fmt.Errorf("%w: %w", raftgroup.ErrQuarantined, err)
	}
	if err != nil {
		return nil, err
	}
	cfg := partition.Config{
		ID: id, Count: n.router.Count(), Node: n.self.Node,
		Tables: tables, Flush: n.tables.Flush, Storage: logs, Invoker: n.invoker, Deliver: n.router.Deliver, Rules: n.rules(), OutboxMemory: &n.outboxMemory,
		Transport: n.transport, LocalID: n.replicaID(id), HardState: hard, Join: !begins,
		Watchdog: n.watchdog, Metrics: n.metrics.partitions, DigestMetrics: n.metrics.digests, OnFailed: func(err error) { n.replicaFailed(id, err) }, Room: n.room, Level: n.featureLevel, Clock: n.members, Log: n.log,
		FlowControl: n.cfg.FlowControl(), FlowEnabled: n.flowEnabled,
		MaxBatchCommands: n.cfg.Worker.MaxCommandBatchSize, MaxBatchBytes: int(n.cfg.Worker.MaxCommandBatchBytes),
	}
	if every := n.cfg.Worker.DigestInterval; every > 0 {
		cfg.FetchDigest, cfg.DigestEntries = n.fetchDigest, uint64(every)
	}
	if begins {
		cfg.Voters = []raft.Server{n.replica()}
	}
	return partition.Open(cfg)
}

// tendPartitions keeps the replicas on this node as the partition table says, until
// ctx ends.
func (n *Node) tendPartitions(ctx context.Context) error {
	var wg sync.WaitGroup
	for id := range n.router.Count() {
		wg.Go(func() { n.tend(ctx, id) })
	}
	wg.Wait()
	return nil
}

// tend looks after one partition.
func (n *Node) tend(ctx context.Context, id uint32) {
	tick := time.NewTicker(tendTick)
	defer tick.Stop()
	var led time.Time // since when this node leads, zero: it does not
	for ctx.Err() == nil {
		layout, moved := n.metadata.Layout()
		var changed <-chan struct{}
		p := n.router.Replica(id)
		if p != nil {
			changed = p.Changed()
		}
		switch leads := p != nil && p.Leading(); {
		case !leads:
			led = time.Time{}
		case led.IsZero():
			led = time.Now()
		}
		n.tending[id].Lock()
		err := n.tendOnce(ctx, id, layout, led)
		n.tending[id].Unlock()
		if err != nil && ctx.Err() == nil {
			n.log.Warn("replica is not as the partition table says, it is tried again", "partition_id", id, "err", err)
		}
		select {
		case <-moved:
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// tendOnce does what is to be done now: open or remove the replica, or, if it leads,
// change who the replicas are and who leads.
func (n *Node) tendOnce(ctx context.Context, id uint32, layout *metadata.Layout, led time.Time) error {
	place, p := layout.Partitions[id], n.router.Replica(id)
	switch {
	case n.disk.Level() == diskspace.Full:
		return n.rest(ctx, p)
	case n.quarantine.reason(id) != "":
		return n.isolate(ctx, p, id, layout)
	case p == nil && n.holds(place):
		err := n.openReplica(ctx, id, layout)
		if n.quarantined(id, err) {
			return nil
		}
		return err
	case p == nil:
		return nil
	case p.Leading():
		return n.lead(ctx, p, layout, led)
	case !n.holds(place):
		return n.leave(ctx, p)
	}
	return nil
}

// rest closes a replica, which is opened again when there is room.
func (n *Node) rest(ctx context.Context, p *partition.Partition) error {
	if p == nil {
		return nil
	}
	return n.closeReplica(ctx, p, p.Close)
}

// closeReplica takes a replica out of use. One that does not end stays known, so that
// it is tried again and never opened a second time.
func (n *Node) closeReplica(ctx context.Context, p *partition.Partition, end func(context.Context) error) error {
	n.router.Set(p.ID(), nil)
	limit := n.cfg.ShutdownTimeout.Std()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	// A node that stops meanwhile does not wait for it that long.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(limit/4, cancel) })()
	err := end(closing)
	if err != nil {
		n.router.Set(p.ID(), p)
	}
	return err
}

// lead makes the table's replicas those of the partition, and hands leadership to the
// one that should have it. This node leads since led.
func (n *Node) lead(ctx context.Context, p *partition.Partition, layout *metadata.Layout, led time.Time) error {
	place := layout.Partitions[p.ID()]
	desired := make([]raft.Server, 0, len(place.Replicas))
	for _, id := range place.Replicas {
		// A removed node stays until another has taken its place.
		if node, member := layout.Node(id); member {
			desired = append(desired, raft.Server{Suffrage: raft.Voter, ID: n.replicaOn(ctx, p, node), Address: node.RaftAddress()})
		}
	}
	if len(desired) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { n.cancelWhenMoved(ctx, cancel, place) })
	if err := p.Reconcile(ctx, desired); err != nil {
		if errors.Is(err, raftgroup.ErrNotLeader) || errors.Is(err, raftgroup.ErrStopped) || ctx.Err() != nil {
			return nil // somebody else's turn, or another table
		}
		return err
	}
	if n.disk.Level() >= diskspace.Short {
		n.handOver(ctx, p)
		return nil
	}
	if time.Since(led) < settled {
		return nil
	}
	return n.preferLeader(ctx, p, desired[0].ID)
}

// cancelWhenMoved ends an attempt at a place that the table does not say any more.
func (n *Node) cancelWhenMoved(ctx context.Context, cancel context.CancelFunc, place metadata.Partition) {
	for {
		layout, moved := n.metadata.Layout()
		if layout.Partitions[place.ID].Version != place.Version {
			cancel()
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// preferLeader hands leadership to a replica if it is well and has been for a while.
func (n *Node) preferLeader(ctx context.Context, p *partition.Partition, to raft.ServerID) error {
	node, _ := metadata.ReplicaNode(to)
	if node == n.replica().ID || n.draining.Load() {
		return nil
	}
	for _, m := range n.members.Nodes() {
		if serverID(m.Name, m.Incarnation) == node && (m.State != membership.Alive || m.Draining || time.Since(m.Since) < settled) {
			return nil
		}
	}
	for _, f := range p.Status().Followers {
		if f.ID == to && f.CaughtUp && time.Since(f.Contact) < lately && isVoter(f.Server) {
			err := p.TransferLeadership(ctx, to)
			if errors.Is(err, raftgroup.ErrNotLeader) || ctx.Err() != nil {
				return nil //nolint:nilerr // somebody else's turn
			}
			return err
		}
	}
	return nil
}

// leave removes the replica once the leader of the partition says that it is no
// member any more. Until then it still has a vote that the others may need.
func (n *Node) leave(ctx context.Context, p *partition.Partition) error {
	// A leader does not speak to whom it removed, so it may not be known here.
	for _, st := range n.statuses(ctx) {
		for _, r := range st.Replicas {
			if removed(p.Status(), r, p.LocalID()) {
				return n.removeReplica(ctx, p)
			}
		}
	}
	return nil
}

// removed reports whether what another node says about its replica proves that the own
// one is no member of the partition any more. A node may believe that it leads and be
// wrong, so it must know of no older term, and of a committed configuration that is
// newer than the last one that the own replica was a member of.
func removed(own partition.Status, said *nodepb.ReplicaStatus, self raft.ServerID) bool {
	if said.Partition != own.ID || !said.Leading || said.Term < own.Term {
		return false
	}
	if slices.ContainsFunc(said.Members, func(m *nodepb.ReplicaMember) bool { return raft.ServerID(m.Id) == self }) {
		return false
	}
	if _, member := own.Members.Find(self); member {
		return said.MembersIndex > own.Members.Index
	}
	return said.MembersIndex >= own.Members.Index
}

func (n *Node) removeReplica(ctx context.Context, p *partition.Partition) error {
	n.log.Info("removing the replica, the partition has moved", "partition_id", p.ID())
	if err := n.closeReplica(ctx, p, p.Stop); err != nil {
		return err
	}
	return n.destroy(ctx, p.ID()) // the next start finishes what is cut off here
}

// destroy removes all that this node has of a partition.
func (n *Node) destroy(ctx context.Context, id uint32) error {
	hard, err := n.hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	return partition.Destroy(ctx, n.logs, n.tables, hard, id)
}

// closePartitions hands over and stops the replicas, within the time that the
// configuration gives a shutdown.
func (n *Node) closePartitions() error {
	if n.router == nil {
		return nil
	}
	n.ending.enter("the replicas of partitions")
	ctx, cancel := n.ending.context()
	defer cancel()
	var g errgroup.Group
	for p := range n.router.Replicas() {
		g.Go(func() error {
			if _, hope := n.heir(p); !hope {
				return p.Stop(ctx)
			}
			return p.Close(ctx)
		})
	}
	err := g.Wait()
	n.inUse.Store(err != nil)
	n.invoker.Close()
	n.flush(ctx)
	return err
}

// flush makes the tables durable, so that the next start replays nothing. That it
// cannot is no failure, since the log has all that is in them.
func (n *Node) flush(ctx context.Context) {
	n.ending.enter("the tables to be written")
	if n.disk.Check() >= diskspace.Full { // it would be tried until the time is up
		n.log.Warn("the disk is full: the tables are not written, the next start replays the log", "free", n.disk.Free())
		return
	}
	wait, err := n.tables.Flush()
	if err == nil {
		err = wait(ctx)
	}
	if err != nil {
		n.log.Warn("the tables were not written, the next start replays the log", "err", err)
	}
}
