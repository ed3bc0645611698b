package partition

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"platform/partition/machine"
)

const (
	// timerWindow is how far ahead timers are held in memory. Most are retention timers a
	// day away, which must not use memory.
	timerWindow = time.Minute
	// timerBatch bounds the timers of one FireTimers command, timerBatchBytes their names. The
	// names of promises may be long.
	timerBatch      = 512
	timerBatchBytes = 256 << 10
	// maxFiring is how many FireTimers commands may be in progress: one is applied while
	// others are written.
	maxFiring = 4
	// timerLimit is approximately how many timers one load reads, so that a large number of
	// timers due in the same minute is loaded in parts.
	timerLimit = 50_000
	// timerCheck bounds how long the leader sleeps before it checks its clock. Go timers
	// stop while the machine is suspended, the clock does not.
	timerCheck = time.Second
)

// timers is the leader's timer queue: it proposes FireTimers when timers of the table are
// due. It holds the timers before its horizon; later ones stay in the table until the
// horizon advances.
type timers struct {
	now func() int64 // partition time of the leader, ms
	// load reads the timers due in [from, before) in order, stopping soon after limit, but
	// never between two timers of the same millisecond. more means that it stopped early.
	load func(from, before int64, limit int) (due []machine.Timer, more bool, err error)
	// fire proposes timers; it blocks while too many commands are in progress. Timers that
	// were not fired are returned through requeue.
	fire func(context.Context, []machine.Timer) error

	mu      sync.Mutex // covers the fields below
	pending timerHeap
	horizon int64

	wake chan struct{}
}

func newTimers(now func() int64, load func(from, before int64, limit int) ([]machine.Timer, bool, error), fire func(context.Context, []machine.Timer) error) *timers {
	return &timers{now: now, load: load, fire: fire, wake: make(chan struct{}, 1)}
}

// set registers a timer that is in the table. It never blocks.
func (t *timers) set(timer machine.Timer) {
	t.mu.Lock()
	if timer.At >= t.horizon {
		t.mu.Unlock()
		return
	}
	heap.Push(&t.pending, timer)
	first := t.pending[0] == timer
	t.mu.Unlock()
	if first {
		t.signal()
	}
}

// requeue takes back timers that were not fired. It never blocks.
func (t *timers) requeue(due []machine.Timer) {
	t.mu.Lock()
	for _, timer := range due {
		heap.Push(&t.pending, timer)
	}
	t.mu.Unlock()
	t.signal()
}

func (t *timers) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run fires timers until ctx ends.
func (t *timers) Run(ctx context.Context) error {
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.wake:
		case <-alarm.C:
		}
		next, err := t.fireDue(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		alarm.Reset(min(next, timerCheck))
	}
}

// fireDue fires the due timers, advances the horizon, and returns the time until the next
// check.
func (t *timers) fireDue(ctx context.Context) (time.Duration, error) {
	for {
		now := t.now()
		due := t.takeDue(now)
		if len(due) > 0 {
			if err := t.fire(ctx, due); err != nil {
				return 0, fmt.Errorf("fire timers: %w", err)
			}
			continue
		}
		moved, err := t.advance(now)
		if err != nil {
			return 0, err
		}
		if !moved {
			return t.untilNext(now), nil
		}
	}
}

func (t *timers) takeDue(now int64) []machine.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []machine.Timer
	for bytes := 0; len(t.pending) > 0 && t.pending[0].At <= now && len(due) < timerBatch; {
		if bytes += len(t.pending[0].Name); len(due) > 0 && bytes > timerBatchBytes {
			break
		}
		due = append(due, heap.Pop(&t.pending).(machine.Timer))
	}
	return due
}

// advance loads the timers of the next window once less than half of the current one is
// left, and reports whether it did.
func (t *timers) advance(now int64) (bool, error) {
	window := timerWindow.Milliseconds()
	t.mu.Lock()
	from := t.horizon
	full := len(t.pending) >= timerLimit
	if full || from-now > window/2 {
		t.mu.Unlock()
		return false, nil
	}
	// Timers set from here on arrive through set; those set before are in the table.
	before := max(now, from) + window
	t.horizon = before
	t.mu.Unlock()

	due, more, err := t.load(from, before, timerLimit)
	if err != nil {
		return false, fmt.Errorf("load timers: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if more {
		t.shrink(due[len(due)-1].At + 1)
	}
	for _, timer := range due {
		heap.Push(&t.pending, timer)
	}
	return true, nil
}

// shrink moves the horizon back and drops the timers behind it, which are in the table.
func (t *timers) shrink(horizon int64) {
	t.horizon = horizon
	kept := t.pending[:0]
	for _, timer := range t.pending {
		if timer.At < horizon {
			kept = append(kept, timer)
		}
	}
	t.pending = kept
	heap.Init(&t.pending)
}

func (t *timers) untilNext(now int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.horizon - timerWindow.Milliseconds()/2
	if len(t.pending) > 0 {
		next = min(max(next, now+1), t.pending[0].At)
		if len(t.pending) >= timerLimit {
			next = t.pending[0].At
		}
	}
	return time.Duration(max(next-now, 0)) * time.Millisecond
}

type timerHeap []machine.Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].At < h[j].At }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(machine.Timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
