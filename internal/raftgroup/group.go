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
	rebuilds    chan string   // reasons to rebuild the Raft instance
	done        chan struct{} // closed when the group has stopped
	reconciling chan struct{} // holds one while Reconcile runs
	stuckSince  atomic.Int64  // start of a leadership transfer that does not end

	// mu covers inst and closing. Proposing holds it shared, so that nothing is enqueued at
	// an instance that is shut down and would never respond.
	mu      sync.RWMutex
	inst    *instance
	closing bool

	// errMu covers err, the reason why the group failed.
	errMu sync.Mutex
	err   error
}

// instance is one instance of the Raft library.
type instance struct {
	raft     *raft.Raft
	observer *raft.Observer
	outgoing *outgoing
	pending  atomic.Int64 // futures that are awaited
	stop     chan struct{}
	followed chan struct{} // closed when its notifications are no longer read
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
	g.storage = newGroupStorage(recordHardState(g.cfg.Storage, g.cfg.HardState), g.cfg.Profile.LogCacheBytes, g.log,
		g.cfg.Watchdog.probe(g.cfg.Name, g.resign), g.fail)
	rec, have, err := reconcile(g.storage, g.cfg.HardState, g.cfg.StateMachine.Applied())
	if err != nil {
		return err
	}
	g.fsm = newFSM(g.cfg.StateMachine, g.fail)
	g.fsm.probe, g.fsm.complete = g.storage.probe, g.storage.complete
	g.storage.holds = g.newHolds()
	g.storage.match = g.matchOf
	g.storage.trailing = trailing{
		entries: g.cfg.Profile.TrailingLogs, bytes: g.cfg.Profile.TrailingBytes,
		sizes: &g.storage.sizes, alone: g.fsm.alone,
	}
	g.storage.onFailedWrite = g.checkLogEnd
	g.snaps = &snapshotStore{storage: g.storage, fsm: g.fsm, holds: g.storage.holds}
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
			g.cfg.Transport.reach(g.cfg.Transport.addressOf(s.ID, s.Address))
		}
	}
	return nil
}

// startInstance starts the Raft library on the stored data. The library panics on a log
// that it cannot read, which becomes an error of this group. Leaderships end with ctx. The
// caller holds mu.
func (g *Group) startInstance(ctx context.Context) (inst *instance, err error) {
	defer func() {
		if p := recover(); p != nil {
			inst, err = nil, fmt.Errorf("%w: start raft: %v", ErrQuarantined, p)
		}
	}()
	notify := make(chan bool, 1)
	conf := g.cfg.raftConfig(notify)
	if err := g.bootstrap(conf); err != nil {
		return nil, err
	}
	out := g.cfg.Transport.newOutgoing()
	g.port.outgoing.Store(out)
	g.storage.running.Store(false)
	r, err := raft.NewRaft(conf, g.fsm, raftStorage{g.storage}, g.storage, g.snaps, g.port)
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", err)
	}
	g.storage.running.Store(true)
	out.raft.Store(r)
	inst = &instance{raft: r, outgoing: out, stop: make(chan struct{}), followed: make(chan struct{})}
	go func() {
		defer close(inst.followed)
		g.leadership.follow(ctx, notify, inst.stop)
	}()
	inst.observer = raft.NewObserver(nil, false, g.observe)
	r.RegisterObserver(inst.observer)
	if soleVoter(r.GetConfiguration().Configuration(), g.cfg.LocalID) {
		// No other replica can lead: do not wait for the election timeout.
		g.port.timeoutNow(conf.ElectionTimeout)
	}
	return inst, nil
}

// bootstrap writes the first configuration into an empty storage.
func (g *Group) bootstrap(conf *raft.Config) error {
	if len(g.cfg.Voters) == 0 {
		return nil
	}
	has, err := raft.HasExistingState(g.storage, g.storage, g.snaps)
	if err != nil || has {
		return err
	}
	err = raft.BootstrapCluster(conf, g.storage, g.storage, g.snaps, g.port, raft.Configuration{Servers: g.cfg.Voters})
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

func soleVoter(c raft.Configuration, id raft.ServerID) bool {
	voters := 0
	local := false
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			voters++
			local = local || s.ID == id
		}
	}
	return voters == 1 && local
}

// current returns the running Raft instance.
func (g *Group) current() *instance {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.inst
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

// supervise rebuilds the Raft instance on request.
func (g *Group) supervise(ctx context.Context) {
	for {
		select {
		case why := <-g.rebuilds:
			if err := g.rebuild(ctx, why); err != nil {
				g.fail(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// requestRebuild requests a new Raft instance on the same storage. It never blocks.
func (g *Group) requestRebuild(why string) {
	select {
	case g.rebuilds <- why:
	default:
	}
}

// checkLogEnd requests a new Raft instance if the log ends before the entry that Raft
// considers to be the last one: a follower that removes conflicting entries and cannot store
// the new ones still assumes the old ones, and would then never accept another entry.
func (g *Group) checkLogEnd() {
	r := g.port.outgoing.Load().raft.Load()
	if r == nil {
		return
	}
	rec, _ := g.snaps.current()
	if last, err := g.storage.LastIndex(); err == nil && max(last, rec.Index) < r.LastIndex() {
		g.requestRebuild("the log was truncated, and the entries after that could not be stored")
	}
}

func (g *Group) rebuild(ctx context.Context, why string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return nil
	}
	g.log.Warn("restarting raft", "reason", why)
	g.stopInstance(context.Background(), g.inst)
	g.stuckSince.Store(0)
	inst, err := g.startInstance(ctx)
	if err != nil {
		return fmt.Errorf("restart raft: %w", err)
	}
	g.inst = inst
	return nil
}

// drainFor is how long pending proposals may take to finish before Raft is shut down.
const drainFor = 3 * time.Second

// stopInstance shuts one Raft instance down and returns when it has stopped completely. The
// caller holds mu, so nothing new is proposed; pending proposals have been completed unless
// the disk hangs, which is not awaited after ctx has ended.
func (g *Group) stopInstance(ctx context.Context, inst *instance) {
	inst.raft.DeregisterObserver(inst.observer)
	deadline := time.Now().Add(drainFor)
	for inst.pending.Load() > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	inst.outgoing.hangUp()
	_ = inst.raft.Shutdown().Error()
	close(inst.stop)
	<-inst.followed
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

// LocalID returns this replica's Raft server ID.
func (g *Group) LocalID() raft.ServerID { return g.cfg.LocalID }

// Quarantine permanently stops the replica because its data cannot be trusted or
// interpreted: a durable mark prevents it from being opened again before its data has been
// replaced or an operator has released it (LogDB.Release). It returns when the mark is
// written; Done is closed when the replica has stopped. Only the first failure of a group
// counts.
func (g *Group) Quarantine(reason error) { g.fail(fmt.Errorf("%w: %w", ErrQuarantined, reason)) }

// Err returns why the group failed, nil if it did not.
func (g *Group) Err() error {
	g.errMu.Lock()
	defer g.errMu.Unlock()
	return g.err
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
// all replicas at the same time. Others that only see this node disappear would take it for
// a leader that died, and start an election against its successor.
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
	g.mu.Lock()
	g.stopInstance(ctx, g.inst)
	g.mu.Unlock()
	g.cfg.Transport.detach(g.port)
	g.reads.wait()
	g.fsm.install.close()
	g.storage.holds.clear()
	close(g.done)
}

const (
	// orderlyTransferTimeout is how long a leader with a slow or damaged storage tries Raft's leadership
	// transfer.
	orderlyTransferTimeout = 300 * time.Millisecond
	// timeoutNowTimeout bounds the request for an election to one successor.
	timeoutNowTimeout = time.Second
)

// resign transfers leadership because this replica's log or state is slow or unusable. A
// replica without other voters continues to lead.
// Raft's leadership transfer fails if it waits for that storage itself, or has ended
// because of it; then a successor is asked for an election directly, as Raft would.
func (g *Group) resign() {
	if !g.IsLeader() || len(g.successors("")) == 0 {
		return
	}
	g.log.Warn("giving up leadership because the storage is slow or unusable")
	ctx, cancel := context.WithTimeout(context.Background(), orderlyTransferTimeout)
	defer cancel()
	err := g.TransferLeadership(ctx, "")
	if err == nil || !g.IsLeader() {
		return
	}
	for _, s := range g.successors("") {
		var resp raft.TimeoutNowResponse
		timeoutErr := g.port.sendTimeoutNow(s.ID, s.Address, min(timeoutNowTimeout, g.cfg.Profile.ElectionTimeout), &raft.TimeoutNowRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
		}, &resp)
		if timeoutErr == nil {
			return
		}
		err = errors.Join(err, timeoutErr)
	}
	g.log.Warn("could not transfer leadership", "err", err)
}
