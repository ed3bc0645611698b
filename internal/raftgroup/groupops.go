package raftgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/limits"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/peers"
)

// ErrNoPeer means that the group has no other voter that can lead.
var ErrNoPeer = errors.New("group has no other voter")

// snapshotRetry is the delay before another attempt to take a snapshot during a leadership transfer.
const snapshotRetry = 50 * time.Millisecond

// enqueueTimeout bounds how long a request waits for Raft's main loop.
const enqueueTimeout = 10 * time.Second

// Future is the outcome of one proposed entry.
type Future struct {
	done   chan struct{}
	err    error
	result any
	index  uint64
}

// Done is closed when the outcome is known.
func (f *Future) Done() <-chan struct{} { return f.done }

// Wait returns the state machine's result for the entry. If ctx ends, the outcome is
// unknown.
func (f *Future) Wait(ctx context.Context) (any, error) {
	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	}
}

// Index returns the entry's index; it is valid when Wait returned no error.
func (f *Future) Index() uint64 { return f.index }

// Propose proposes one entry. data must not be modified afterwards. Use a Proposer for
// batching; this is for rare entries.
func (g *Group) Propose(data []byte) *Future {
	out := &Future{done: make(chan struct{})}
	rf, inst, err := g.apply(data)
	if err != nil {
		g.cfg.Metrics.refused(1, err)
		out.err = err
		close(out.done)
		return out
	}
	begin := time.Now()
	go func() {
		defer inst.pending.Add(-1)
		defer close(out.done)
		out.result, out.err = g.outcome(rf)
		out.index = rf.Index()
		g.cfg.Metrics.ended(begin, 1, len(data), out.err)
	}()
	return out
}

// apply enqueues data at Raft. The caller waits for the future and then decrements the
// instance's pending count.
func (g *Group) apply(data []byte) (raft.ApplyFuture, *instance, error) {
	if len(data) > limits.Entry {
		return nil, nil, fmt.Errorf("%w: entry has %d bytes, the limit is %d", ErrTooLarge, len(data), limits.Entry)
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closing {
		return nil, nil, ErrStopped
	}
	inst := g.inst
	if inst.raft.State() != raft.Leader {
		return nil, nil, ErrNotLeader
	}
	inst.pending.Add(1)
	return inst.raft.Apply(data, enqueueTimeout), inst, nil
}

// outcome waits for a future of apply.
func (g *Group) outcome(f raft.ApplyFuture) (any, error) {
	err := f.Error()
	g.noteTransfer(err)
	if err != nil {
		return nil, proposalError(err)
	}
	result := f.Response()
	if err, ok := result.(error); ok && errors.Is(err, errFailed) {
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return result, nil
}

// noteTransfer detects a leadership transfer that never ends: Raft then rejects everything
// indefinitely (hashicorp/raft#696).
func (g *Group) noteTransfer(err error) {
	if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		if g.stuckSince.Load() != nil {
			g.stuckSince.Store(nil)
		}
		return
	}
	since := g.stuckSince.Load() // once: another outcome may end it at any time
	if since == nil {
		now := time.Now()
		g.stuckSince.CompareAndSwap(nil, &now)
		return
	}
	if time.Since(*since) > 3*g.cfg.Profile.ElectionTimeout {
		g.requestRebuild("a leadership transfer does not end")
	}
}

// await waits for a future of Raft, with the deadline of ctx. start creates the future; it
// is not called after the group began to stop.
func (g *Group) await(ctx context.Context, start func(*raft.Raft) raft.Future) error {
	g.mu.RLock()
	if g.closing {
		g.mu.RUnlock()
		return ErrStopped
	}
	inst := g.inst
	inst.pending.Add(1)
	g.mu.RUnlock()

	done := make(chan error, 1)
	go func() {
		defer inst.pending.Add(-1)
		done <- start(inst.raft).Error()
	}()
	select {
	case err := <-done:
		g.noteTransfer(err)
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) ||
			errors.Is(err, raft.ErrLeadershipLost) {
			return fmt.Errorf("%w: %w", ErrNotLeader, err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// IsLeader reports whether this replica leads as far as it knows. Use ConfirmLeadership for
// certainty.
func (g *Group) IsLeader() bool { return g.current().raft.State() == raft.Leader }

// Leader returns the known leader, the zero Leader if none is known.
func (g *Group) Leader() Leader {
	addr, id := g.current().raft.LeaderWithID()
	return Leader{ID: id, Address: addr}
}

// Barrier waits until everything committed before has been applied here. It only works on
// the leader.
func (g *Group) Barrier(ctx context.Context) error {
	return g.await(ctx, func(r *raft.Raft) raft.Future { return r.Barrier(enqueueTimeout) })
}

// Servers returns the latest configuration this replica knows, committed or not.
func (g *Group) Servers() []raft.Server {
	return g.current().raft.GetConfiguration().Configuration().Servers
}

// SoleVoter reports whether this replica is the only voter of the latest configuration that
// it knows. No other replica can then be elected, or have been elected since this one was.
func (g *Group) SoleVoter() bool {
	return soleVoter(g.current().raft.GetConfiguration().Configuration(), g.cfg.LocalID)
}

// AddNonvoter adds a replica that receives the log but has no vote. An existing member gets
// the address and keeps its vote, if it has one.
func (g *Group) AddNonvoter(ctx context.Context, id raft.ServerID, addr raft.ServerAddress) error {
	return g.await(ctx, func(r *raft.Raft) raft.Future { return r.AddNonvoter(id, addr, 0, enqueueTimeout) })
}

// AddVoter adds a replica with a vote, or gives one its vote. It should have caught up as a
// nonvoter.
func (g *Group) AddVoter(ctx context.Context, id raft.ServerID, addr raft.ServerAddress) error {
	return g.await(ctx, func(r *raft.Raft) raft.Future { return r.AddVoter(id, addr, 0, enqueueTimeout) })
}

// DemoteVoter makes a voter a nonvoter.
func (g *Group) DemoteVoter(ctx context.Context, id raft.ServerID) error {
	return g.await(ctx, func(r *raft.Raft) raft.Future { return r.DemoteVoter(id, 0, enqueueTimeout) })
}

// RemoveServer removes a replica.
func (g *Group) RemoveServer(ctx context.Context, id raft.ServerID) error {
	return g.await(ctx, func(r *raft.Raft) raft.Future { return r.RemoveServer(id, 0, enqueueTimeout) })
}

// TransferLeadership transfers leadership to the given voter, or to any if to is empty. It
// returns ErrNoPeer if there is none and ErrNotLeader on a follower.
func (g *Group) TransferLeadership(ctx context.Context, to raft.ServerID) error {
	if !g.IsLeader() {
		return ErrNotLeader
	}
	successors := g.successors(to)
	if len(successors) == 0 {
		return ErrNoPeer
	}
	var errs error
	// A replica on a busy machine may respond late. One retry costs nothing, since this
	// replica continues to lead meanwhile.
	for timeout := probeTimeout; timeout <= probeTimeoutMax; timeout *= 2 {
		late := false
		errs = nil
		for _, p := range successors {
			err := g.port.responds(ctx, p.ID, p.Address, true, timeout)
			late = late || errors.Is(err, peers.ErrTimeout)
			if err == nil {
				err = g.await(ctx, func(r *raft.Raft) raft.Future { return g.transferTo(r, p) })
			}
			if err == nil || !g.IsLeader() {
				return nil
			}
			errs = errors.Join(errs, fmt.Errorf("transfer leadership to %s: %w", p.ID, err))
			if ctx.Err() != nil {
				return errs
			}
		}
		if !late {
			break
		}
	}
	return errs
}

// successors returns the voters that may take over, reachable ones first, and among them
// those with the least lag.
func (g *Group) successors(to raft.ServerID) []raft.Server {
	var out []raft.Server
	for _, s := range g.Servers() {
		if s.Suffrage == raft.Voter && s.ID != g.cfg.LocalID && (to == "" || s.ID == to) {
			out = append(out, s)
		}
	}
	t := g.cfg.Transport
	distance := func(s raft.Server) int {
		if t.peers.Connected(t.addressOf(s.ID, s.Address)) {
			return 0
		}
		return 1
	}
	known := g.Followers()
	lag := func(id raft.ServerID) uint64 {
		for i := range known {
			if known[i].ID == id {
				return known[i].Lag
			}
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b raft.Server) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(lag(a.ID), lag(b.ID)))
	})
	return out
}

// Snapshot takes a virtual snapshot: it makes the state durable and then truncates the log,
// except for the trailing entries. It is not an error if there is nothing new. Raft takes none during a leadership transfer,
// whose end it waits for.
func (g *Group) Snapshot(ctx context.Context) error {
	if err := g.fsm.failure(); err != nil {
		return err
	}
	snapshot := func() error {
		return g.await(ctx, func(r *raft.Raft) raft.Future { return r.Snapshot() })
	}
	err := snapshot()
	for ; errors.Is(err, raft.ErrLeadershipTransferInProgress); err = snapshot() {
		for running := true; running; _, running = g.transfers.state() { // Raft makes the state durable before it refuses
			select {
			case <-time.After(snapshotRetry):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", g.cfg.Name, err)
	}
	g.cfg.Metrics.tookSnapshot()
	return nil
}

// Stats describes a replica at one moment.
type Stats struct {
	State         string // Follower, Candidate, Leader or Shutdown
	Term          uint64
	FirstIndex    uint64 // of the log, 0 if empty
	LastIndex     uint64
	CommitIndex   uint64
	AppliedIndex  uint64 // last command applied
	SnapshotIndex uint64
	Leader        Leader
	LastContact   time.Time // with the leader; zero on the leader and if there was none
}

// Stats returns what is known about the replica.
func (g *Group) Stats() Stats {
	r := g.current().raft
	first, last, _ := logstore.Bounds(g.storage)
	rec, _ := g.snaps.current()
	return Stats{
		State:         r.State().String(),
		Term:          r.CurrentTerm(),
		FirstIndex:    first,
		LastIndex:     last,
		CommitIndex:   r.CommitIndex(),
		AppliedIndex:  g.fsm.applied.Load(),
		SnapshotIndex: rec.Index,
		Leader:        g.Leader(),
		LastContact:   r.LastContact(),
	}
}
