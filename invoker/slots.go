package invoker

import (
	"container/heap"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/stats"
	"platform/partition/machine"
)

const (
	// maxRecords is how many invocations may wait for a slot with their records in memory.
	// Of the others only IDs are queued, and their records are read when they get a slot: a
	// million sends that services cannot keep up with wait on disk.
	maxRecords = 4096

	// headroom bounds a service to this many times the free slots. So one service gets
	// 16/17 of all, two get 16/33 each, and a service that holds none finds a free one as
	// long as there are any.
	headroom = 16
	// resumedHeadroom is the same for resumed invocations: they find a slot even if new
	// ones have taken all that they may.
	resumedHeadroom = 4 * headroom

	// resumedInRow is how many resumed invocations are served before a new one of the same
	// service. Work in progress comes first, since its callers, timers and locks wait, but
	// new work is not starved.
	resumedInRow = 3
	// maxResumedInRow is the same while there is no slot that a new one may take.
	maxResumedInRow = 16
)

// slots bounds the attempts of a node and divides them among services, max-min fair: a slot
// goes to the waiting service that holds the fewest. Within a service the vqueues of each
// partition are served round robin.
type slots struct {
	reopen     func(*share) // called when held back attempts may start; nil: never
	limit      int          // 0: unbounded
	perService int          // 0: unbounded
	maxRecords int          // maximum number of invocations that wait with their records
	short      atomic.Bool  // invocations are waiting

	mu            sync.Mutex // guards the fields below
	used          int
	waiting       int
	grants        uint64
	shares        map[string]*share // services that hold or wait for slots
	waitingShares shareHeap         // the waiting ones
}

// share is the state of a service: its slots and its waiting invocations.
type share struct {
	service        string
	used           int
	waiting        int
	granted        uint64       // order of its latest slot; breaks ties
	heapIndex      int          // in the heap; notInHeap if it does not wait
	resumed, fresh waiterQueues // waiting invocations
	row            int          // resumed ones served since the last new one
	openings       openings
	probes         map[string]*probes // by handler
}

// notInHeap is the heap index of a share that waits for no slot.
const notInHeap = -1

// waiterQueues are the waiting invocations of a service, by vqueue and partition, served
// round robin.
type waiterQueues struct {
	len    int
	queues map[queueKey]*queue
	turns  fifo[*queue] // the same queues
}

type queueKey struct {
	queue flowcontrol.QueueKey
	s     *Session
}

// queue is the waiting invocations of a vqueue in a partition, in order of arrival.
type queue struct {
	key     queueKey
	waiters fifo[waiter]
}

func (l *waiterQueues) push(key queueKey, w waiter) {
	q := l.queues[key]
	if q == nil {
		if l.queues == nil {
			l.queues = map[queueKey]*queue{}
		}
		q = &queue{key: key}
		l.queues[key] = q
		l.turns.push(q)
	}
	q.waiters.push(w)
	l.len++
}

// maxAgedQueues bounds how many vqueues are searched for the oldest invocation. They are the ones
// served next, and within a vqueue the first is the oldest.
const maxAgedQueues = 1024

// oldest returns from when the oldest invocation waits; now if none does.
func (l *waiterQueues) oldest(now int64) int64 {
	waiting := l.turns.all[l.turns.head:]
	for _, q := range waiting[:min(len(waiting), maxAgedQueues)] {
		now = min(now, q.waiters.all[q.waiters.head].since)
	}
	return now
}

func (l *waiterQueues) pop() waiter {
	q := l.turns.pop()
	w := q.waiters.pop()
	if q.waiters.len() > 0 {
		l.turns.push(q)
	} else {
		delete(l.queues, q.key)
	}
	if l.len--; l.len == 0 {
		l.queues, l.turns = nil, fifo[*queue]{}
	}
	return w
}

// waiter waits for a slot: a task, or an invocation whose record has not been read.
type waiter struct {
	t      *task // nil: identified by s, id and number
	s      *Session
	id     ids.Invocation
	number uint64
	share  *share // of the slot, once assigned
	since  int64  // Unix time in nanoseconds from which it waits

	opening *opening // of the attempt that starts then
}

func (w *waiter) session() *Session {
	if w.t != nil {
		return w.t.s
	}
	return w.s
}

// start starts an attempt with the assigned slot. It returns false, and the caller keeps
// the slot, if there is nothing left to do.
func (w *waiter) start() bool {
	t := w.t
	if t == nil {
		t = newTask(w.s, w.id, w.number)
		if !w.s.add(t) {
			return false
		}
	}
	return t.start(w.share, w.opening)
}

// backlogged reports whether further invocations wait without their records.
func (q *slots) backlogged() bool {
	if !q.short.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting >= q.maxRecords
}

// acquire takes a slot for w, or queues it; the slot is then passed to start. resumed says
// that the invocation has been attempted before. short means that slots for the service have
// just become short.
func (q *slots) acquire(key flowcontrol.QueueKey, resumed bool, w *waiter) (got, short bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[key.Service]
	if s == nil {
		s = &share{service: key.Service, heapIndex: notInHeap}
		if q.shares == nil {
			q.shares = map[string]*share{}
		}
		q.shares[key.Service] = s
	}
	w.share = s
	now := time.Now()
	l, resumedLen, freshLen := &s.fresh, s.resumed.len, s.fresh.len
	if resumed {
		l = &s.resumed
		resumedLen++
	} else {
		freshLen++
	}
	if l.len == 0 { // otherwise the earlier ones may not take a slot either
		if next, ok := q.pick(s, resumedLen, freshLen, now); ok && next == resumed {
			q.take(s, w, resumed, now)
			return true, false
		}
	}
	w.since = now.UnixNano()
	l.push(queueKey{key, w.session()}, *w)
	s.waiting++
	q.waiting++
	q.short.Store(true)
	return false, q.updateHeap(s, now)
}

// allows reports whether a service may take one more slot while it leaves one free for each
// room slots that it holds.
func (q *slots) allows(s *share, room int) bool {
	if q.perService > 0 && s.used >= q.perService {
		return false
	}
	free := q.limit - q.used
	return q.limit == 0 || s.used < room*free
}

// pick returns which invocations of a service are next, resumed or new ones, and whether
// they may take a slot now.
func (q *slots) pick(s *share, resumed, fresh int, now time.Time) (next, ok bool) {
	newcomers := fresh > 0 && !q.heldBack(s, now)
	switch {
	case newcomers && q.allows(s, headroom) && (resumed == 0 || s.row >= resumedInRow):
		return false, true
	case newcomers && s.row >= maxResumedInRow:
		return false, false
	}
	return true, resumed > 0 && q.allows(s, resumedHeadroom)
}

// take assigns a slot to an invocation of a service.
func (q *slots) take(s *share, w *waiter, resumed bool, now time.Time) {
	switch {
	case !resumed:
		s.row = 0
	case s.fresh.len > 0:
		s.row++
	}
	q.used++
	s.used++
	q.grants++
	s.granted = q.grants
	w.share, w.opening = s, s.openings.add(s, resumed, now)
}

// release releases a slot. If another invocation may have it, release returns that, and the
// caller must start it.
func (q *slots) release(s *share) (w waiter, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	s.used--
	now := time.Now()
	q.updateHeap(s, now)
	if s.waiting == 0 && s.used == 0 {
		delete(q.shares, s.service)
	}
	return q.nextLocked(now)
}

// next returns an invocation that may have a slot; the caller must start it.
func (q *slots) next() (w waiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.nextLocked(time.Now())
}

func (q *slots) nextLocked(now time.Time) (w waiter, ok bool) {
	for i, s := range q.waitingShares { // nearly always the first
		resumed, ok := q.pick(s, s.resumed.len, s.fresh.len, now)
		if !ok {
			if i == 0 && q.used == q.limit {
				return w, false
			}
			continue
		}
		if resumed {
			w = s.resumed.pop()
		} else {
			w = s.fresh.pop()
		}
		s.waiting--
		q.take(s, &w, resumed, now)
		if q.waiting--; q.waiting == 0 {
			q.short.Store(false)
		}
		q.updateHeap(s, now)
		return w, true
	}
	return w, false
}

// updateHeap adds a service to the heap of waiting ones, updates or removes it. It returns
// true if it was added.
func (q *slots) updateHeap(s *share, now time.Time) bool {
	eligible := s.resumed.len > 0 || s.fresh.len > 0 && !q.heldBack(s, now)
	switch {
	case eligible && s.heapIndex == notInHeap:
		heap.Push(&q.waitingShares, s)
		return true
	case eligible:
		heap.Fix(&q.waitingShares, s.heapIndex)
	case s.heapIndex != notInHeap:
		heap.Remove(&q.waitingShares, s.heapIndex)
	}
	return false
}

// pressure returns whether invocations of a service wait for a slot, and whether it holds
// more than an equal share while another one waits that holds less.
func (q *slots) pressure(service string) (own, over bool) {
	if !q.short.Load() {
		return false, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[service]
	if s == nil || len(q.waitingShares) == 0 {
		return false, false
	}
	least := q.waitingShares[0].used
	fair := q.limit / len(q.shares)
	return s.heapIndex != notInHeap, q.limit > 0 && s.used > fair && least < fair && (q.perService == 0 || least < q.perService)
}

// shareHeap is a heap of the waiting services. The first one holds the fewest slots and,
// among equals, has waited longest since its last one.
type shareHeap []*share

func (h shareHeap) Len() int { return len(h) }
func (h shareHeap) Less(i, j int) bool {
	if h[i].used != h[j].used {
		return h[i].used < h[j].used
	}
	return h[i].granted < h[j].granted
}

func (h shareHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *shareHeap) Push(x any) {
	s := x.(*share)
	s.heapIndex = len(*h)
	*h = append(*h, s)
}

func (h *shareHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.heapIndex = notInHeap
	return s
}

// fifo is a queue. Removed elements use at most as much memory as the remaining ones.
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

const (
	// idleTimeout is how long an attempt that seems to wait for an event may be silent
	// while there is pressure on its slot. It must not be so short that handlers are
	// suspended between two steps.
	idleTimeout = 200 * time.Millisecond
	// silentTimeout is the same for an attempt that seems to compute, of a service that
	// holds more than its share.
	silentTimeout = 5 * time.Second
	// maxHold leaves the limit to the inactivity timeout.
	maxHold = time.Duration(math.MaxInt64)
)

// enqueue starts an attempt of an invocation (nil if its record was not read) as soon as
// there is a slot. When slots become short, idle attempts are asked to make room: a
// thousand sleeping handlers must not block all others until the inactivity timeout.
func (iv *Invoker) enqueue(inv *machine.Invocation, w waiter) {
	var key flowcontrol.QueueKey
	resumed := false
	if inv != nil {
		key, resumed = inv.VQueue(), inv.Length > 1
	}
	got, short := iv.slots.acquire(key, resumed, &w)
	if got && !w.start() {
		iv.releaseSlot(w.share)
	}
	if short {
		iv.makeRoom()
	}
}

// makeRoom has all open attempts checked soon, since slots are short.
func (iv *Invoker) makeRoom() { iv.scanOpen(time.Now().Add(idleTimeout)) }

// scanOpen has all open attempts checked by a time.
func (iv *Invoker) scanOpen(at time.Time) {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	for s := range iv.sessions {
		s.timers.wake(at)
	}
}

// releaseSlot releases a slot, nil for none, and starts a waiting attempt. No task's mutex
// may be held.
func (iv *Invoker) releaseSlot(s *share) {
	if s == nil {
		return
	}
	for w, passed := iv.slots.release(s); passed && !w.start(); {
		w, passed = iv.slots.release(w.share) // w ended while it waited
	}
}

// Load returns the open attempts of each service, and its invocations that wait for a slot.
func (iv *Invoker) Load() map[string]stats.Load {
	q := &iv.slots
	q.mu.Lock()
	defer q.mu.Unlock()
	loads := make(map[string]stats.Load, len(q.shares))
	now := time.Now().UnixNano()
	for service, s := range q.shares {
		since := min(s.resumed.oldest(now), s.fresh.oldest(now))
		loads[service] = stats.Load{InFlight: s.used, Waiting: s.waiting, Oldest: time.Duration(now - since)}
	}
	return loads
}
