package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/hardstate"
)

// Group is one replica of a Raft group. Its methods are safe for concurrent use.
type Group struct {
	cfg        Config
	log        *slog.Logger
	storage    *groupStorage
	fsm        *fsm
	snaps      *snapshotStore
	port       *port
	leadership *leadership
	reads      *confirmer

	cancel      context.CancelFunc // ends Lead and the helpers
	wg          sync.WaitGroup     // of the goroutines below
	leaderWake  chan struct{}
	rebuilds    chan string               // reasons to rebuild the Raft instance
	done        chan struct{}             // closed when the group has stopped
	reconciling chan struct{}             // holds one while Reconcile runs
	stuckSince  atomic.Pointer[time.Time] // when a leadership transfer that does not end was first noted; nil: none is
	transfers   transfers

	// mu covers inst and closing. Proposing holds it shared, so that nothing is enqueued at
	// an instance that is shut down and would never respond.
	mu      sync.RWMutex
	inst    *instance
	closing bool

	// errMu covers err, the reason why the group failed.
	errMu sync.Mutex
	err   error
}

// Open starts the replica described by cfg. An error that wraps ErrQuarantined or
// ErrStateBehindSnapshot concerns only this group; others may be opened.
func Open(cfg Config) (*Group, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open raft group %d: %w", cfg.ID, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &Group{
		cfg:         cfg,
		log:         cfg.Logger,
		cancel:      cancel,
		leaderWake:  make(chan struct{}, 1),
		rebuilds:    make(chan string, 1),
		done:        make(chan struct{}),
		reconciling: make(chan struct{}, 1),
	}
	g.reads = newConfirmer(g)
	g.leadership = newLeadership(g.reads.lost)
	// Held until everything is set up, because entries may be applied, and fail, as soon as
	// Raft runs.
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.open(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("open raft group %s: %w", cfg.Name, err)
	}
	g.wg.Go(func() { g.serveLeadership(ctx) })
	g.wg.Go(func() { g.watchLeader(ctx) })
	g.wg.Go(func() { g.supervise(ctx) })
	return g, nil
}

func (g *Group) open(ctx context.Context) error {
	g.storage = newGroupStorage(hardstate.WrapStorage(g.cfg.Storage, g.cfg.HardState), g.cfg.Profile.LogCacheBytes, g.log,
		g.cfg.Watchdog.Probe(g.cfg.Name, g.resign), g.fail)
	rec, have, err := hardstate.Reconcile(g.storage, g.cfg.HardState, g.cfg.StateMachine.Applied())
	if err != nil {
		return err
	}
	g.fsm = newFSM(g.cfg.StateMachine, g.fail)
	g.fsm.probe, g.fsm.complete = g.storage.probe, g.storage.complete
	g.fsm.running = func() context.Context { return g.port.outgoing.Load().ctx }
	if g.storage.retention, err = g.newRetention(); err != nil {
		return err
	}
	g.storage.onFailedWrite = g.writeFailed
	g.snaps = &snapshotStore{storage: g.storage, fsm: g.fsm, retention: g.storage.retention}
	g.fsm.install = &installer{storage: g.storage, snaps: g.snaps, rebuild: g.requestRebuild}
	if have {
		g.snaps.set(rec)
	}
	if g.port, err = g.cfg.Transport.attach(g); err != nil {
		return err
	}
	if g.inst, err = g.startInstance(ctx); err != nil {
		g.cfg.Transport.detach(g.port)
		return err
	}
	for _, s := range g.inst.raft.GetConfiguration().Configuration().Servers {
		if s.ID != g.cfg.LocalID {
			g.cfg.Transport.connect(g.cfg.Transport.addressOf(s.ID, s.Address))
		}
	}
	return nil
}

// observe is called by Raft for each observation; it must not block. It never lets one
// through: the watcher reads the current state when it wakes up.
func (g *Group) observe(o *raft.Observation) bool {
	switch data := o.Data.(type) {
	case raft.LeaderObservation:
		select {
		case g.leaderWake <- struct{}{}:
		default:
		}
	case raft.RaftState:
		g.cfg.Metrics.became(data)
	}
	return false
}

// watchLeader reports changes of the known leader.
func (g *Group) watchLeader(ctx context.Context) {
	var known Leader
	for {
		select {
		case <-g.leaderWake:
		case <-ctx.Done():
			return
		}
		if now := g.Leader(); now != known {
			known = now
			g.cfg.Metrics.leaderChanged()
			if g.cfg.OnLeaderChange != nil {
				g.cfg.OnLeaderChange(now)
			}
		}
	}
}

// fail stops the group after a fatal error.
func (g *Group) fail(err error) {
	g.errMu.Lock()
	first := g.err == nil
	if first {
		g.err = err
	}
	g.errMu.Unlock()
	if !first {
		return
	}
	switch {
	case !errors.Is(err, ErrQuarantined):
		g.log.Error("group failed", "err", err)
	case errors.Is(err, ErrNewerFormat):
		g.log.Error("replica quarantined until a newer version of the server starts", "err", err)
	default:
		g.log.Error("replica quarantined", "err", err)
		g.storage.quarantine(err)
	}
	// Not awaited by a method of the group: the failing goroutine is Raft's own, for which
	// the shutdown waits.
	go func() {
		if g.cfg.OnFailed != nil {
			g.cfg.OnFailed(err)
		}
		g.leadership.end() // serve nothing from this replica
		g.resign()
		_ = g.stopAll(context.Background())
	}()
}

// Quarantine permanently stops the replica because its data cannot be trusted or
// interpreted: a durable mark prevents it from being opened again before its data has been
// replaced or an operator has released it (logstore.DB.Release). It returns when the mark is
// written; Done is closed when the replica has stopped. Only the first failure of a group
// counts.
func (g *Group) Quarantine(reason error) { g.fail(fmt.Errorf("%w: %w", ErrQuarantined, reason)) }

// Err returns why the group failed, nil if it did not.
func (g *Group) Err() error {
	g.errMu.Lock()
	defer g.errMu.Unlock()
	return g.err
}

// ending reports whether the group has failed or is being stopped.
func (g *Group) ending() bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.closing || g.Err() != nil
}

// Done is closed when the group has stopped, by Shutdown or by failure.
func (g *Group) Done() <-chan struct{} { return g.done }

// handOverLimit bounds the leadership transfer of Shutdown.
const handOverLimit = 5 * time.Second

// Shutdown transfers leadership if there is another voter, ends Lead, and stops the
// replica. It may be called more than once.
func (g *Group) Shutdown(ctx context.Context) error {
	if g.IsLeader() {
		limit, cancel := context.WithTimeout(ctx, min(2*g.cfg.Profile.ElectionTimeout, handOverLimit))
		err := g.TransferLeadership(limit, "")
		if err == nil {
			g.awaitSuccessor(limit)
		} else if !errors.Is(err, ErrNoPeer) {
			g.log.Warn("could not transfer leadership before stopping", "err", err)
		}
		cancel()
	}
	return g.stopAll(ctx)
}

// awaitSuccessor waits until the new leader has contacted this replica, which it does with
// all replicas at the same time. Others that only see this node disappear would assume
// that the leader has died, and start an election against its successor.
func (g *Group) awaitSuccessor(ctx context.Context) {
	for l := g.Leader(); l.ID == "" || l.ID == g.cfg.LocalID; l = g.Leader() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// Stop is Shutdown without a leadership transfer; the others detect the loss. It is for a
// replica whose data must no longer be served.
func (g *Group) Stop(ctx context.Context) error { return g.stopAll(ctx) }

// stopAll stops the group and returns once it has stopped completely. If ctx ends first,
// the group continues to stop: its storage and its state machine are in use until Done is
// closed.
func (g *Group) stopAll(ctx context.Context) error {
	g.mu.Lock()
	first := !g.closing
	g.closing = true
	g.mu.Unlock()
	if first {
		go g.end(ctx)
	}
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop raft group %s: not stopped in time: %w", g.cfg.Name, context.Cause(ctx))
	}
}

// end stops everything that the group has started. Pending work is abandoned when ctx ends.
func (g *Group) end(ctx context.Context) {
	g.cancel()
	g.wg.Wait() // Lead and its proposers have ended
	g.reads.close()
	g.stopInstance(ctx, g.inst) // without mu: closing is set, and what is known of the replica can be read meanwhile
	g.cfg.Transport.detach(g.port)
	g.reads.wait()
	g.fsm.install.close()
	g.storage.retention.DropHolds()
	close(g.done)
}
