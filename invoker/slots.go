package invoker

import "sync"

// slots bounds the attempts of a node. What waits costs one pointer, beside the
// record that came with the effect.
type slots struct {
	limit int // 0: none

	mu      sync.Mutex // guards the fields below
	used    int
	waiting []*task // in order of arrival, from head on
	head    int
}

// acquire takes a slot, or queues the task; the slot then comes with start.
func (q *slots) acquire(t *task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limit == 0 || q.used < q.limit {
		q.used++
		return true
	}
	q.waiting = append(q.waiting, t)
	return false
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
