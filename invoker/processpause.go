package invoker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/boottime"
)

const (
	// pauseBeat is how often the process records that it runs, pauseLimit the gap after
	// which it may have been deposed. It is a fraction of the time in which another leader
	// is elected.
	pauseBeat  = 100 * time.Millisecond
	pauseLimit = 500 * time.Millisecond
	// confirmTimeout bounds how long leaders may take to confirm their leadership.
	confirmTimeout = 5 * time.Second
)

// errPaused ends connections whose buffered data must no longer be sent.
var errPaused = errors.New("the process was paused and has lost a leadership")

// processPauses detects that the process did not run for a while: it was paused, its machine was
// suspended, or it was starved. Others may then lead and have started attempts, while this
// process continues as if nothing had happened. So nothing is sent to endpoints until all
// leaderships are confirmed.
type processPauses struct {
	elapsed func() time.Duration // monotonic, including suspension
	confirm func(context.Context) error
	noticed func(paused time.Duration, err error)
	last    atomic.Int64 // when the process was last known to run and to lead
	losses  atomic.Int64 // pauses in which a leadership was lost

	mu sync.Mutex // held during a confirmation

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newProcessPauses(confirm func(context.Context) error, noticed func(time.Duration, error)) *processPauses {
	return &processPauses{elapsed: boottime.Start().Elapsed, confirm: confirm, noticed: noticed}
}

// begin starts the goroutine that records the time, until end.
func (p *processPauses) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.wg.Go(func() {
		tick := time.NewTicker(pauseBeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			now := p.elapsed() // before the check: the process may be paused in between
			p.check()
			p.ran(now)
		}
	})
}

// ran records that the process ran at a time.
func (p *processPauses) ran(at time.Duration) {
	for last := p.last.Load(); last < int64(at) && !p.last.CompareAndSwap(last, int64(at)); last = p.last.Load() {
	}
}

func (p *processPauses) end() {
	p.cancel()
	p.wg.Wait()
}

// fresh reports whether the process has been running without a pause.
func (p *processPauses) fresh() bool { return p.elapsed()-time.Duration(p.last.Load()) <= pauseLimit }

// connected returns the check that a new connection makes before it sends anything. It
// fails permanently after a pause in which a leadership was lost: older data may be
// buffered on its way to the connection.
func (p *processPauses) connected() func() error {
	losses := p.losses.Load()
	return func() error {
		p.check()
		if p.losses.Load() != losses {
			return errPaused
		}
		return nil
	}
}

// check returns immediately while the process runs. After a pause it waits until the
// leaderships are confirmed, and lost ones have ended.
func (p *processPauses) check() {
	if p.fresh() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fresh() {
		return
	}
	paused := p.elapsed() - time.Duration(p.last.Load())
	ctx, cancel := context.WithTimeout(context.Background(), confirmTimeout)
	defer cancel()
	err := p.confirm(ctx)
	if err != nil {
		p.losses.Add(1)
	}
	p.noticed(paused, err)
	p.ran(p.elapsed())
}

// confirm verifies that all sessions belong to current leaders.
func (iv *Invoker) confirm(ctx context.Context) error {
	iv.mu.Lock()
	sessions := make([]*Session, 0, len(iv.sessions))
	for s := range iv.sessions {
		sessions = append(sessions, s)
	}
	iv.mu.Unlock()
	errs := make([]error, len(sessions))
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() { errs[i] = s.part.Confirm(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (iv *Invoker) processWasPaused(d time.Duration, err error) {
	if err != nil {
		iv.log.Warn("process was paused and lost a leadership; restarting its attempts", "duration", d, "err", err)
		return
	}
	iv.log.Info("process was paused; its leaderships are confirmed", "duration", d)
}
