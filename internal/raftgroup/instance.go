package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
)

// instance is one instance of the Raft library.
type instance struct {
	raft     *raft.Raft
	observer *raft.Observer
	outgoing *outgoing
	pending  atomic.Int64 // futures that are awaited
	stopped  bool         // used by rebuild, and by end after it
	stop     chan struct{}
	followed chan struct{} // closed when its notifications are no longer read
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
	first := raft.Configuration{Servers: g.cfg.Voters}
	interrupted, err := g.bootstrapInterrupted()
	if err == nil && interrupted {
		err = g.storage.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(first)})
	} else if err == nil {
		err = raft.BootstrapCluster(conf, g.storage, g.storage, g.snaps, g.port, first)
	}
	if err != nil && !errors.Is(err, raft.ErrCantBootstrap) { // that of a storage that is not empty
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// bootstrapInterrupted reports whether the process ended during an earlier bootstrap, which writes
// term 1 before the configuration. A replica that has taken part in anything is in a later term.
func (g *Group) bootstrapInterrupted() (bool, error) {
	term, err := hardstate.CurrentTerm(g.storage)
	if err != nil || term != 1 {
		return false, err
	}
	_, last, err := logstore.Bounds(g.storage)
	_, snapshot := g.snaps.current()
	return last == 0 && !snapshot, err
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

// writeFailed is called when the log could not be written. It requests a new Raft instance if the
// log ends before the entry that Raft considers to be the last one: a follower that removes
// conflicting entries and cannot store the new ones still assumes the old ones, and would then
// never accept another entry.
func (g *Group) writeFailed() {
	r := g.port.outgoing.Load().raft.Load()
	if r == nil {
		return
	}
	g.port.silence.writeFailed(r.CurrentTerm())
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
	g.stuckSince.Store(nil)
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
// caller holds mu or has set closing, so nothing new is proposed; pending proposals have been completed unless
// the disk hangs, which is not awaited after ctx has ended. An instance that could not be
// replaced has been stopped before.
func (g *Group) stopInstance(ctx context.Context, inst *instance) {
	if inst.stopped {
		return
	}
	inst.stopped = true
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
