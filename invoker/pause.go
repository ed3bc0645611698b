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
	// pauseBeat is how often the process notes that it runs, pauseLimit after how long
	// without that it may have been given up by others. It is a fraction of the time in
	// which they elect another leader.
	pauseBeat  = 100 * time.Millisecond
	pauseLimit = 500 * time.Millisecond
	// confirmTimeout bounds how long leaders may take to find out that they still lead.
	confirmTimeout = 5 * time.Second
)

// errPaused ends connections on which something may wait that is not to be sent any
// more.
var errPaused = errors.New("the process was stopped for a while and has lost a leadership meanwhile")

// pauses notices when the process did not run for a while: it was stopped, its machine
// was, or there was no time for it. Others may lead then and have started attempts of
// their own, while here everything goes on as if nothing had happened. So nothing is
// sent to endpoints until all leaderships are confirmed.
type pauses struct {
	elapsed func() time.Duration // monotonic, suspension included
	confirm func(context.Context) error
	noticed func(paused time.Duration, err error)
	last    atomic.Int64 // when the process was last known to run and to lead
	losses  atomic.Int64 // pauses in which a leadership was lost

	mu sync.Mutex // held while it is found out

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newPauses(confirm func(context.Context) error, noticed func(time.Duration, error)) *pauses {
	return &pauses{elapsed: boottime.Start().Elapsed, confirm: confirm, noticed: noticed}
}

// begin starts the goroutine that notes the time, until end.
func (p *pauses) begin() {
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
			now := p.elapsed() // before it is checked: it may be stopped in between
			p.check()
			p.ran(now)
		}
	})
}

// ran notes that nothing was amiss at a time.
func (p *pauses) ran(at time.Duration) {
	for last := p.last.Load(); last < int64(at) && !p.last.CompareAndSwap(last, int64(at)); last = p.last.Load() {
	}
}

func (p *pauses) end() {
	p.cancel()
	p.wg.Wait()
}

// fresh tells whether the process has run all the time.
func (p *pauses) fresh() bool { return p.elapsed()-time.Duration(p.last.Load()) <= pauseLimit }

// connected returns what a new connection asks before it sends anything. It fails for
// ever after a pause in which a leadership was lost: what has been waiting to be sent
// since before that is somewhere on its way to the connection.
func (p *pauses) connected() func() error {
	losses := p.losses.Load()
	return func() error {
		p.check()
		if p.losses.Load() != losses {
			return errPaused
		}
		return nil
	}
}

// check returns at once while the process runs. After a pause it waits until it is
// known what has become of the leaderships, and those that were lost have ended.
func (p *pauses) check() {
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

// confirm makes sure that all sessions work for leaders.
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

func (iv *Invoker) wasPaused(d time.Duration, err error) {
	if err != nil {
		iv.log.Warn("the process did not run for a while, attempts start again", "duration", d, "err", err)
		return
	}
	iv.log.Info("the process did not run for a while, it still leads", "duration", d)
}
