package invoker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
)

// mostRecords is how many may wait for a slot together with their records. Behind them
// only ids wait, and records are read when it is their turn: a million sends that
// services cannot keep up with wait on disk.
const mostRecords = 4096

// slots bounds the attempts of a node. Those who wait stand in a line for each vqueue,
// and the lines take turns: a crowd in one does not delay the others.
type slots struct {
	limit int         // 0: none
	most  int         // that wait together with their records
	short atomic.Bool // somebody waits

	mu      sync.Mutex // guards the fields below
	used    int
	waiting int
	lines   map[flowcontrol.QueueKey]*queue // in which somebody waits
	turns   fifo[*queue]                    // the same ones
}

// queue are those of a vqueue who wait, in order of arrival.
type queue struct {
	key flowcontrol.QueueKey
	fifo[waiter]
}

// waiter stands in line for a slot: a task, or what becomes one when it is its turn.
type waiter struct {
	t      *task // nil: what follows names it
	s      *Session
	id     ids.Invocation
	number uint64
}

// start begins an attempt with the slot that has come. It reports false, and the slot
// is the caller's again, if there is nothing to do any more.
func (w *waiter) start() bool {
	t := w.t
	if t == nil {
		t = newTask(w.s, w.id, w.number)
		if !w.s.add(t) {
			return false
		}
	}
	return t.start()
}

// crowded reports whether whoever waits from now on waits without a record.
func (q *slots) crowded() bool {
	if !q.short.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting >= q.most
}

// acquire takes a slot, or lets w wait for it, maybe as the first; the slot then comes
// with start.
func (q *slots) acquire(key flowcontrol.QueueKey, w waiter) (got, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit == 0 || q.used < q.limit {
		q.used++
		return true, false
	}
	l := q.lines[key]
	if l == nil {
		if q.lines == nil {
			q.lines = make(map[flowcontrol.QueueKey]*queue)
		}
		l = &queue{key: key}
		q.lines[key] = l
		q.turns.push(l)
	}
	l.push(w)
	q.waiting++
	return false, !q.short.Swap(true)
}

// release gives a slot back or passes it on to the one it returns, which the caller
// must start.
func (q *slots) release() (w waiter, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		q.used--
		return w, false
	}
	l := q.turns.pop()
	w = l.pop()
	if l.len() > 0 {
		q.turns.push(l)
	} else {
		delete(q.lines, l.key)
	}
	if q.waiting--; q.waiting == 0 {
		q.lines, q.turns = nil, fifo[*queue]{}
		q.short.Store(false)
	}
	return w, true
}

// fifo is a queue. What has left it costs at most as much memory as what is in it.
type fifo[T any] struct {
	all  []T
	head int
}

func (f *fifo[T]) len() int { return len(f.all) - f.head }

func (f *fifo[T]) push(v T) { f.all = append(f.all, v) }

func (f *fifo[T]) pop() (v T) {
	v, f.all[f.head] = f.all[f.head], v
	if f.head++; f.head >= 1024 && f.head > len(f.all)/2 {
		f.all, f.head = slices.Clone(f.all[f.head:]), 0
	} else if f.head == len(f.all) {
		f.all, f.head = f.all[:0], 0
	}
	return v
}

// idlerTimeout is how long an attempt may be silent while others wait for its slot.
// It must not be so short that handlers are suspended between two steps.
const idlerTimeout = 200 * time.Millisecond

// line starts an attempt of an invocation, nil if its record was not read, as soon as
// there is a slot. When slots begin to be short,
// attempts that only wait for something are asked to make room: a thousand sleeping
// handlers must not keep all others from running until they have been idle for a minute.
func (iv *Invoker) line(inv *machine.Invocation, w waiter) {
	var key flowcontrol.QueueKey
	if inv != nil {
		key = inv.VQueue()
	}
	got, first := iv.slots.acquire(key, w)
	if got && !w.start() {
		iv.releaseSlot()
	}
	if first {
		at := time.Now().Add(idlerTimeout)
		iv.mu.Lock()
		defer iv.mu.Unlock()
		for s := range iv.sessions {
			s.clock.wake(at)
		}
	}
}

// releaseSlot frees a slot and starts whoever waits for one. No task's mutex may be
// held.
func (iv *Invoker) releaseSlot() {
	for w, passed := iv.slots.release(); passed && !w.start(); {
		w, passed = iv.slots.release() // w ended while it waited
	}
}
