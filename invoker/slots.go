package invoker

import (
	"sync"
	"sync/atomic"
	"time"
)

// slots bounds the attempts of a node. What waits costs one pointer, beside the
// record that came with the effect.
type slots struct {
	limit int         // 0: none
	short atomic.Bool // somebody waits

	mu      sync.Mutex // guards the fields below
	used    int
	waiting []*task // in order of arrival, from head on
	head    int
}

// acquire takes a slot, or queues the task, maybe as the first; the slot then comes
// with start.
func (q *slots) acquire(t *task) (got, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit == 0 || q.used < q.limit {
		q.used++
		return true, false
	}
	q.waiting = append(q.waiting, t)
	return false, !q.short.Swap(true)
}

// idlerTimeout is how long an attempt may be silent while others wait for its slot.
// It must not be so short that handlers are suspended between two steps.
const idlerTimeout = 200 * time.Millisecond

// acquireSlot takes a slot or queues for one. When slots begin to be short, attempts
// that only wait for something are asked to make room: a thousand sleeping handlers
// must not keep all others from running until they have been idle for a minute.
func (iv *Invoker) acquireSlot(t *task) bool {
	got, first := iv.slots.acquire(t)
	if first {
		at := time.Now().Add(idlerTimeout)
		iv.mu.Lock()
		defer iv.mu.Unlock()
		for s := range iv.sessions {
			s.clock.wake(at)
		}
	}
	return got
}

// release gives a slot back or passes it on to the task it returns, which the
// caller must start.
func (q *slots) release() *task {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.waiting) {
		q.used--
		return nil
	}
	t := q.waiting[q.head]
	q.waiting[q.head] = nil
	if q.head++; q.head == len(q.waiting) {
		q.waiting, q.head = nil, 0
		q.short.Store(false)
	} else if q.head >= 1024 && q.head > len(q.waiting)/2 {
		q.waiting = append([]*task(nil), q.waiting[q.head:]...)
		q.head = 0
	}
	return t
}

// releaseSlot frees a slot and starts whoever waits for one. No task's mutex may be
// held.
func (iv *Invoker) releaseSlot() {
	for t := iv.slots.release(); t != nil && !t.start(); {
		t = iv.slots.release() // t ended while it waited
	}
}
