package partition

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
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
	// timerLimit bounds the timers that one load reads, timerLimitBytes their names; the one
	// that exceeds it is the last. Twice as many are held in memory.
	timerLimit      = 50_000
	timerLimitBytes = 8 << 20
	// timerCheck bounds how long the leader sleeps before it checks its clock. Go timers
	// stop while the machine is suspended, the clock does not.
	timerCheck = time.Second
)

// timers is the leader's timer queue: it proposes FireTimers when timers of the table are
// due. It holds the timers before its horizon; later ones stay in the table until the
// horizon advances. If too many are set before the horizon, it moves back.
type timers struct {
	now func() int64 // partition time of the leader, ms
	// load reads the timers in [from, before) in order, up to the limits. more means that it
	// stopped early, after at least one.
	load func(from, before machine.Timer) (due []machine.Timer, more bool, err error)
	// fire proposes timers; it blocks while too many commands are in progress. Timers that
	// were not fired are returned through requeue.
	fire func(context.Context, []machine.Timer) error

	mu      sync.Mutex // covers the fields below
	pending timerHeap
	bytes   int // of the names in pending
	horizon machine.Timer

	wake chan struct{}
}

func newTimers(now func() int64, load func(from, before machine.Timer) ([]machine.Timer, bool, error), fire func(context.Context, []machine.Timer) error) *timers {
	return &timers{now: now, load: load, fire: fire, wake: make(chan struct{}, 1)}
}

// set registers a timer that is in the table. It never blocks.
func (t *timers) set(timer machine.Timer) {
	t.mu.Lock()
	t.pushLocked(timer)
	first := len(t.pending) > 0 && t.pending[0] == timer
	t.mu.Unlock()
	if first {
		signal(t.wake)
	}
}

// requeue takes back timers that were not fired. It never blocks.
func (t *timers) requeue(due []machine.Timer) {
	t.mu.Lock()
	for _, timer := range due {
		t.pushLocked(timer)
	}
	t.mu.Unlock()
	signal(t.wake)
}

// pushLocked adds a timer unless it is behind the horizon.
func (t *timers) pushLocked(timer machine.Timer) {
	if timer.Compare(t.horizon) >= 0 {
		return
	}
	timer.Name = strings.Clone(timer.Name) // that of a scope may be a part of a log entry
	heap.Push(&t.pending, timer)
	t.bytes += len(timer.Name)
	if len(t.pending) > 2*timerLimit || t.bytes > 2*timerLimitBytes && len(t.pending) > 1 {
		t.halveLocked()
	}
}

// popLocked removes the first timer.
func (t *timers) popLocked() machine.Timer {
	first := heap.Pop(&t.pending).(machine.Timer)
	t.bytes -= len(first.Name)
	return first
}

// fullLocked reports whether no further timers should be loaded.
func (t *timers) fullLocked() bool { return len(t.pending) >= timerLimit || t.bytes >= timerLimitBytes }

// halveLocked keeps the first timers, up to the limits of a load but at least one, and moves the
// horizon back to the next one.
func (t *timers) halveLocked() {
	slices.SortFunc(t.pending, machine.Timer.Compare) // a sorted slice is a heap
	kept, bytes := 0, 0
	for kept < min(len(t.pending)-1, timerLimit) && (kept == 0 || bytes < timerLimitBytes) {
		bytes += len(t.pending[kept].Name)
		kept++
	}
	t.horizon, t.bytes = t.pending[kept], bytes
	t.pending = slices.Clone(t.pending[:kept])
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
		due = append(due, t.popLocked())
	}
	return due
}

// advance loads the timers of the next window once less than half of the current one is
// left, and reports whether it did.
func (t *timers) advance(now int64) (bool, error) {
	window := timerWindow.Milliseconds()
	t.mu.Lock()
	from := t.horizon
	if t.fullLocked() || from.At-now > window/2 {
		t.mu.Unlock()
		return false, nil
	}
	// Timers set from here on arrive through set; those set before are in the table.
	before := machine.Timer{At: max(now, from.At) + window}
	t.horizon = before
	t.mu.Unlock()

	due, more, err := t.load(from, before)
	if err != nil {
		return false, fmt.Errorf("load timers: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if more {
		t.retreatLocked(due[len(due)-1])
	}
	for _, timer := range due {
		t.pushLocked(timer)
	}
	return true, nil
}

// retreatLocked moves the horizon back to the timer after last, unless it was moved back further
// during a load, and drops the timers behind it, which are in the table.
func (t *timers) retreatLocked(last machine.Timer) {
	last.Name += "\x00"
	if last.Compare(t.horizon) >= 0 {
		return
	}
	t.horizon = last
	kept := t.pending[:0]
	for _, timer := range t.pending {
		if timer.Compare(last) < 0 {
			kept = append(kept, timer)
		} else {
			t.bytes -= len(timer.Name)
		}
	}
	clear(t.pending[len(kept):])
	t.pending = kept
	heap.Init(&t.pending)
}

func (t *timers) untilNext(now int64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.horizon.At - timerWindow.Milliseconds()/2
	if len(t.pending) > 0 {
		next = min(max(next, now+1), t.pending[0].At)
		if t.fullLocked() {
			next = t.pending[0].At
		}
	}
	return time.Duration(max(next-now, 0)) * time.Millisecond
}

type timerHeap []machine.Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].Compare(h[j]) < 0 }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)        { *h = append(*h, x.(machine.Timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = machine.Timer{} // its name
	*h = old[:len(old)-1]
	return last
}
