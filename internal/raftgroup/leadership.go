package raftgroup

import (
	"context"
	"errors"
	"sync"
	"time"

	"platform/internal/failpoint"
)

const (
	// leadRetry is how long a group without other voters waits before it calls Lead again
	// after an error.
	leadRetry = time.Second
	// leadRetrySoon is the delay while leadership is uncertain.
	leadRetrySoon = 10 * time.Millisecond
)

// leadership turns Raft's notifications into calls of Config.Lead: never two at a time,
// each with a context that ends before anything else when leadership is lost.
type leadership struct {
	lost func() // called after each loss
	wake chan struct{}

	// mu covers the fields below.
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // ends with the current leadership; nil if none
	cancel  context.CancelFunc
	pending bool // ctx has not been returned by next
}

func newLeadership(lost func()) *leadership {
	return &leadership{lost: lost, wake: make(chan struct{}, 1)}
}

// gain begins a leadership, which ends with ctx at the latest. It never blocks.
func (l *leadership) gain(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked()
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.pending = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// end ends the current leadership, if there is one. It never blocks.
func (l *leadership) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked()
}

func (l *leadership) endLocked() {
	if l.cancel != nil {
		l.cancel()
		l.ctx, l.cancel, l.pending = nil, nil, false
	}
}

// current returns the context of the current leadership, nil if there is none.
func (l *leadership) current() context.Context {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx
}

// next waits for a leadership that has not been served yet, until ctx ends.
func (l *leadership) next(ctx context.Context) (context.Context, error) {
	for {
		l.mu.Lock()
		if l.pending {
			l.pending = false
			leading := l.ctx
			l.mu.Unlock()
			return leading, nil
		}
		l.mu.Unlock()
		select {
		case <-l.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// follow forwards the notifications of one Raft instance until stop is closed. It never
// waits for anything else, because Raft's main loop waits for it. Leaderships end with ctx.
func (l *leadership) follow(ctx context.Context, notify <-chan bool, stop <-chan struct{}) {
	defer l.lost()
	defer l.end()
	for {
		select {
		case leading := <-notify:
			if leading {
				l.gain(ctx)
				continue
			}
			l.end()
			l.lost()
		case <-stop:
			return
		}
	}
}

// serveLeadership calls Config.Lead for each leadership until ctx ends.
func (g *Group) serveLeadership(ctx context.Context) {
	for {
		leading, err := g.leadership.next(ctx)
		if err != nil {
			return
		}
		g.lead(leading)
	}
}

// lead serves one leadership, which ctx spans.
func (g *Group) lead(ctx context.Context) {
	for ctx.Err() == nil {
		err := g.leadOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil { // no duties; wait for the end
			<-ctx.Done()
			return
		}
		pause := leadRetry
		if errors.Is(err, ErrNotLeader) {
			// Either leadership is lost again, then ctx ends soon, or a transfer is in
			// progress that may still fail.
			pause = leadRetrySoon
		} else {
			g.giveUp(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// giveUp transfers leadership after Lead failed with err.
func (g *Group) giveUp(ctx context.Context, err error) {
	g.log.Error("leader duties failed; giving up leadership", "err", err)
	if err := g.TransferLeadership(ctx, ""); err != nil && !errors.Is(err, ErrNoPeer) {
		g.log.Warn("could not transfer leadership", "err", err)
	}
}

func (g *Group) leadOnce(ctx context.Context) error {
	inst := g.current()
	term := inst.raft.CurrentTerm()
	if err := g.Barrier(ctx); err != nil {
		return err
	}
	failpoint.Pause(failpoint.Duties)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The notification of a loss may still be in transit. The barrier has to belong to the
	// term that the duties are for.
	if !leads(inst.raft, term) {
		return ErrNotLeader
	}
	g.log.Debug("leading", "raft_term", term)
	if g.cfg.Lead == nil {
		return nil
	}
	return g.cfg.Lead(ctx, term)
}
