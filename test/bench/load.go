package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is one step under way: workers that call in a closed loop, each on a
// connection of its own, until time is up or everything was sent.
type load struct {
	step        step
	bed         *bed
	from, until time.Time // answers in between are measured
	left        atomic.Int64

	mu        sync.Mutex // covers all below
	accepted  int64      // right answers, before from as well
	latencies []time.Duration
}

// outcome is what was measured in a step.
type outcome struct {
	accepted  int64           // operations since the start of the bed
	latencies []time.Duration // sorted, of measured operations
	elapsed   time.Duration
	used      both // CPU while measuring, memory at the end
	tally     tally
}

// timed calls for warmup and then measures for d. The load goes on while CPU time
// is read at both ends.
func (l *load) timed(ctx context.Context, warmup, d time.Duration) (outcome, error) {
	l.from = time.Now().Add(warmup)
	l.until = l.from.Add(d)
	g, callers := errgroup.WithContext(ctx) // ends with the first error
	l.work(callers, g, func() bool { return time.Now().Before(l.until) })
	var before, after both
	g.Go(func() (err error) {
		if err = waitUntil(callers, l.from); err != nil {
			return err
		}
		if before, err = l.bed.usage(); err != nil {
			return err
		}
		if err = waitUntil(callers, l.until); err != nil {
			return err
		}
		after, err = l.bed.usage()
		return err
	})
	if err := g.Wait(); err != nil {
		return outcome{}, err
	}
	t, err := l.bed.tally(ctx, false)
	return l.outcome(d, before, after, t), err
}

// counted sends as often as the step says and measures until the endpoint has
// executed everything.
func (l *load) counted(ctx context.Context) (outcome, error) {
	before, err := l.bed.usage()
	if err != nil {
		return outcome{}, err
	}
	l.from = time.Now()
	l.until = l.from.Add(24 * time.Hour)
	l.left.Store(int64(l.step.size))
	g, callers := errgroup.WithContext(ctx)
	l.work(callers, g, func() bool { return l.left.Add(-1) >= 0 })
	if err := g.Wait(); err != nil {
		return outcome{}, err
	}
	t, err := l.drained(ctx)
	if err != nil {
		return outcome{}, err
	}
	after, err := l.bed.usage()
	return l.outcome(t.Latest.Sub(l.from), before, after, t), err
}

// work starts the workers, which call while more says so.
func (l *load) work(ctx context.Context, g *errgroup.Group, more func() bool) {
	for worker := range l.step.workers {
		g.Go(func() error {
			c, err := dial(ctx, l.bed.host)
			if err != nil {
				return err
			}
			defer c.close()
			return l.call(c, l.step.caller(l.step, l.bed.prefix, worker), more)
		})
	}
}

// call is one worker. Any answer but the right one ends it, and so all.
func (l *load) call(c *conn, own caller, more func() bool) error {
	var accepted int64
	var latencies []time.Duration
	for more() {
		path, body := own.next()
		begin := time.Now()
		status, answer, err := c.post(path, body)
		end := time.Now()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := own.check(status, answer); err != nil {
			return fmt.Errorf("wrong answer: %w", err)
		}
		accepted++
		if !end.Before(l.from) && end.Before(l.until) {
			latencies = append(latencies, end.Sub(begin))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted += accepted
	l.latencies = append(l.latencies, latencies...)
	return nil
}

// drained waits until the endpoint has executed what was sent. It gives up when
// nothing has happened for as long as an answer may take.
func (l *load) drained(ctx context.Context) (tally, error) {
	progress, done := time.Now().Add(l.step.quiet()), int64(0)
	for {
		t, err := l.bed.tally(ctx, false)
		if err != nil {
			return tally{}, err
		}
		now := t.Done[l.step.counts]
		if now >= l.accepted {
			return l.settled(ctx)
		}
		if now > done {
			progress, done = time.Now(), now
		} else if time.Since(progress) > requestLimit {
			return tally{}, fmt.Errorf("lost work: %d sends were accepted, only %d executed", l.accepted, now)
		}
		if err := waitUntil(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return tally{}, err
		}
	}
}

// settleTime is how long to look out for executions that should not happen.
const settleTime = 200 * time.Millisecond

func (l *load) settled(ctx context.Context) (tally, error) {
	if err := waitUntil(ctx, time.Now().Add(settleTime)); err != nil {
		return tally{}, err
	}
	return l.bed.tally(ctx, true)
}

func (l *load) outcome(elapsed time.Duration, before, after both, t tally) outcome {
	slices.Sort(l.latencies)
	slices.Sort(t.Late)
	after.server.cpu -= before.server.cpu
	after.service.cpu -= before.service.cpu
	return outcome{accepted: l.accepted, latencies: l.latencies, elapsed: elapsed, used: after, tally: t}
}

// waitUntil returns at a time, or earlier with the error of ctx.
func waitUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
