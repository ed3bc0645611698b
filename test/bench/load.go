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

// load runs one step: workers that make calls in a closed loop, each on its own
// connection, for a time or a number of sends.
type load struct {
	step        step
	testbed     *testbed
	spread      time.Duration // of the sends of a counted step; 0: as fast as the server accepts them
	measureFrom time.Time     // responses are measured from here on, until ended
	ended       atomic.Bool
	remaining   atomic.Int64

	firstMeasured sync.Once
	measured      chan struct{} // closed by the first measured response

	mu        sync.Mutex // covers the fields below
	accepted  int64      // correct responses, including those before measureFrom
	latencies []time.Duration
}

// outcome is the measurement of a step.
type outcome struct {
	accepted  int64           // operations since the start of the testbed
	latencies []time.Duration // sorted, of measured operations
	elapsed   time.Duration
	usage     processUsage // CPU while measuring, memory at the end
	executed  executionCounts
}

func newLoad(s step, b *testbed) *load {
	return &load{step: s, testbed: b, measured: make(chan struct{})}
}

// runTimed runs the load for warmup, then measures for d, or until the first response if that comes later. The load
// continues while CPU time is read at both ends.
func (l *load) runTimed(ctx context.Context, warmup, d time.Duration) (outcome, error) {
	l.measureFrom = time.Now().Add(warmup)
	g, callers := errgroup.WithContext(ctx) // ends with the first error
	l.startWorkers(callers, g, func() bool { return !l.ended.Load() })
	var before, after processUsage
	var elapsed time.Duration
	g.Go(func() (err error) {
		if err = waitUntil(callers, l.measureFrom); err != nil {
			return err
		}
		if before, err = l.testbed.usage(); err != nil {
			return err
		}
		if err = waitUntil(callers, l.measureFrom.Add(d)); err != nil {
			return err
		}
		select {
		case <-l.measured:
		case <-callers.Done():
			return context.Cause(callers)
		}
		l.ended.Store(true)
		elapsed = time.Since(l.measureFrom)
		after, err = l.testbed.usage()
		return err
	})
	if err := g.Wait(); err != nil {
		return outcome{}, err
	}
	t, err := l.testbed.executionCounts(ctx, l.step.limited)
	return l.newOutcome(elapsed, before, after, t), err
}

// runCounted makes the step's number of sends and measures until all have been executed.
func (l *load) runCounted(ctx context.Context) (outcome, error) {
	before, err := l.testbed.usage()
	if err != nil {
		return outcome{}, err
	}
	l.measureFrom = time.Now()
	l.remaining.Store(int64(l.step.size))
	g, callers := errgroup.WithContext(ctx)
	l.startWorkers(callers, g, func() bool {
		left := l.remaining.Add(-1)
		return left >= 0 && waitUntil(callers, l.sendTime(left)) == nil
	})
	if err := g.Wait(); err != nil {
		return outcome{}, err
	}
	t, err := l.awaitExecuted(ctx)
	if err != nil {
		return outcome{}, err
	}
	after, err := l.testbed.usage()
	return l.newOutcome(t.Latest.Sub(l.measureFrom), before, after, t), err
}

// sendTime returns when the send starts after which that many are left.
func (l *load) sendTime(left int64) time.Time {
	size := int64(l.step.size)
	return l.measureFrom.Add(time.Duration(int64(l.spread) / size * (size - 1 - left)))
}

// startWorkers starts the workers, which make calls while more returns true.
func (l *load) startWorkers(ctx context.Context, g *errgroup.Group, more func() bool) {
	for worker := range l.step.workers {
		g.Go(func() error {
			c, err := l.testbed.dial(ctx, l.step)
			if err != nil {
				return err
			}
			defer c.close()
			return l.runWorker(c, l.step.newCalls(l.step, l.testbed.prefix, worker), more)
		})
	}
}

// runWorker runs one worker. A wrong response stops all workers.
func (l *load) runWorker(c *conn, calls callGenerator, more func() bool) error {
	var accepted int64
	var latencies []time.Duration
	for more() {
		path, body := calls.next()
		begin := time.Now()
		status, resp, err := c.post(path, body)
		end := time.Now()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := calls.check(status, resp); err != nil {
			return fmt.Errorf("wrong response: %w", err)
		}
		accepted++
		if !end.Before(l.measureFrom) && !l.ended.Load() {
			latencies = append(latencies, end.Sub(begin))
			l.firstMeasured.Do(func() { close(l.measured) })
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted += accepted
	l.latencies = append(l.latencies, latencies...)
	return nil
}

// awaitExecuted waits until the endpoint has executed all sends. It fails if there is no
// progress within requestTimeout.
func (l *load) awaitExecuted(ctx context.Context) (executionCounts, error) {
	progress, done := time.Now().Add(l.step.maxIdle()), int64(0)
	for {
		t, err := l.testbed.executionCounts(ctx, false)
		if err != nil {
			return executionCounts{}, err
		}
		now := t.Done[l.step.counter]
		if now >= l.accepted {
			return l.awaitSettled(ctx)
		}
		if now > done {
			progress, done = time.Now(), now
		} else if time.Since(progress) > requestTimeout {
			return executionCounts{}, fmt.Errorf("lost work: %d sends were accepted, only %d executed", l.accepted, now)
		}
		if err := waitUntil(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return executionCounts{}, err
		}
	}
}

// settleDelay is the time to wait for unexpected executions.
const settleDelay = 200 * time.Millisecond

func (l *load) awaitSettled(ctx context.Context) (executionCounts, error) {
	if err := waitUntil(ctx, time.Now().Add(settleDelay)); err != nil {
		return executionCounts{}, err
	}
	return l.testbed.executionCounts(ctx, true)
}

func (l *load) newOutcome(elapsed time.Duration, before, after processUsage, t executionCounts) outcome {
	slices.Sort(l.latencies)
	slices.Sort(t.Late)
	slices.Sort(t.Gaps)
	after.server.cpu -= before.server.cpu
	after.server.written -= before.server.written
	after.service.cpu -= before.service.cpu
	return outcome{accepted: l.accepted, latencies: l.latencies, elapsed: elapsed, usage: after, executed: t}
}

// waitUntil waits until a time; if ctx ends first, it returns its error.
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
