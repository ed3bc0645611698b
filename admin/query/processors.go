package query

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// sliceTime is how long a query computes before another one may. A query that cannot stop
	// then, since it sorts, reads a page or writes to a client, loses its time slice as well, but
	// continues until its next check.
	sliceTime = 20 * time.Millisecond
	// checkInterval is the number of SQLite's operations between two checks, which take much less
	// than sliceTime.
	checkInterval = 1000
)

// processors bound the queries that compute concurrently. They get time slices in order of arrival.
type processors struct{ free chan struct{} }

// newProcessors leaves half of the processors to invocations, whose goroutines would otherwise wait
// until a computing one is preempted each time they need a processor.
func newProcessors() *processors {
	n := max(1, runtime.GOMAXPROCS(0)/2)
	p := &processors{make(chan struct{}, n)}
	for range n {
		p.free <- struct{}{}
	}
	return p
}

// timeSlice is the right of a query to compute.
type timeSlice struct {
	of    *processors
	held  atomic.Bool
	timer *time.Timer // that ends it
}

// begin waits for the first time slice of a query, which must close it.
func (p *processors) begin(ctx context.Context) (*timeSlice, error) {
	s := &timeSlice{of: p}
	return s, s.check(ctx)
}

// check waits for the next time slice if the last one is over. Only the query may call it.
func (s *timeSlice) check(ctx context.Context) error {
	if s.held.Load() {
		return nil
	}
	select {
	case <-s.of.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.held.Store(true)
	if s.timer == nil {
		s.timer = time.AfterFunc(sliceTime, s.end)
	} else {
		s.timer.Reset(sliceTime)
	}
	return nil
}

// end lets another query compute.
func (s *timeSlice) end() {
	if s.held.CompareAndSwap(true, false) {
		s.of.free <- struct{}{}
	}
}

// close ends the last time slice of a query.
func (s *timeSlice) close() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.end()
}
