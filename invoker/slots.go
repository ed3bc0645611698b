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
	"platform/partition/machine"
)

const (
	// mostRecords is how many may wait for a slot together with their records. Behind
	// them only ids wait, and records are read when it is their turn: a million sends
	// that services cannot keep up with wait on disk.
	mostRecords = 4096

	// headroom bounds a service to this many times the slots that are free. So one
	// service gets 16/17 of all, two get 16/33 each, and a service that holds none
	// finds a free one as long as there are any.
	headroom = 16
	// begunHeadroom is the same for invocations that have begun: one that wakes up finds
	// a slot even if new ones have taken all that they may.
	begunHeadroom = 4 * headroom

	// begunInRow is how many invocations that have begun are served before one of the
	// same service that has not. Work in progress comes first, since its callers, timers
	// and locks wait, but new work is not kept out.
	begunInRow = 3
	// mostInRow is the same while there is no slot that a new one may take.
	mostInRow = 16
)

// slots bounds the attempts of a node and divides them among services, max-min fair: a
// slot goes to the service that holds the fewest of those that wait. Within a service
// the vqueues of each partition take turns.
type slots struct {
	reopen     func(*share) // called when held back attempts may begin; nil: never
	limit      int          // 0: none
	perService int          // 0: none
	most       int          // invocations that wait together with their records
	short      atomic.Bool  // there are invocations that wait

	mu      sync.Mutex // guards the fields below
	used    int
	waiting int
	grants  uint64
	shares  map[string]*share // services that hold slots or wait for one
	hungry  hungry            // those that wait
}

// share is what a service holds of the slots, and what of it waits.
type share struct {
	service      string
	used         int
	waiting      int
	granted      uint64 // when it got its latest slot; breaks ties
	place        int    // in hungry; outside if it is not there
	begun, fresh lines  // what waits
	row          int    // begun ones served since the last fresh one
	openings     openings
	probes       map[string]*probes // by handler
}

// outside is the place of a share that waits for no slot.
const outside = -1

// lines is what waits of a service, by vqueue and partition, which take turns.
type lines struct {
	len    int
	queues map[queueKey]*queue
	turns  fifo[*queue] // the same ones
}

type queueKey struct {
	queue flowcontrol.QueueKey
	s     *Session
}

// queue is what waits of a vqueue in a partition, in order of arrival.
type queue struct {
	key     queueKey
	waiters fifo[waiter]
}

func (l *lines) push(key queueKey, w waiter) {
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

func (l *lines) pop() waiter {
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

// waiter waits for a slot: a task, or what becomes one when it is its turn.
type waiter struct {
	t      *task // nil: s, id and number name it
	s      *Session
	id     ids.Invocation
	number uint64
	share  *share // of the slot, once there is one

	opening *opening // of the attempt that begins then
}

func (w *waiter) session() *Session {
	if w.t != nil {
		return w.t.s
	}
	return w.s
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
	return t.start(w.share, w.opening)
}

// crowded reports whether invocations wait without their records from now on.
func (q *slots) crowded() bool {
	if !q.short.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting >= q.most
}

// acquire takes a slot for w, or lets it wait; the slot then comes with start. begun
// says that the invocation has been attempted before. short says that no slot has been
// left for the service since now.
func (q *slots) acquire(key flowcontrol.QueueKey, begun bool, w *waiter) (got, short bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[key.Service]
	if s == nil {
		s = &share{service: key.Service, place: outside}
		if q.shares == nil {
			q.shares = map[string]*share{}
		}
		q.shares[key.Service] = s
	}
	w.share = s
	now := time.Now()
	l, begunLen, freshLen := &s.fresh, s.begun.len, s.fresh.len
	if begun {
		l = &s.begun
		begunLen++
	} else {
		freshLen++
	}
	if l.len == 0 { // otherwise those before it may not take a slot either
		if next, ok := q.pick(s, begunLen, freshLen, now); ok && next == begun {
			q.take(s, w, begun, now)
			return true, false
		}
	}
	l.push(queueKey{key, w.session()}, *w)
	s.waiting++
	q.waiting++
	q.short.Store(true)
	return false, q.settle(s, now)
}

// allows reports whether a service may take one more slot, if it is to leave others one
// for each room slots that it holds.
func (q *slots) allows(s *share, room int) bool {
	if q.perService > 0 && s.used >= q.perService {
		return false
	}
	free := q.limit - q.used
	return q.limit == 0 || s.used < room*free
}

// pick says which invocations of a service are next, those that have begun or the others,
// and whether they may take a slot now.
func (q *slots) pick(s *share, begun, fresh int, now time.Time) (next, ok bool) {
	newcomers := fresh > 0 && !q.heldBack(s, now)
	switch {
	case newcomers && q.allows(s, headroom) && (begun == 0 || s.row >= begunInRow):
		return false, true
	case newcomers && s.row >= mostInRow:
		return false, false
	}
	return true, begun > 0 && q.allows(s, begunHeadroom)
}

// take gives a slot to an invocation of a service.
func (q *slots) take(s *share, w *waiter, begun bool, now time.Time) {
	switch {
	case !begun:
		s.row = 0
	case s.fresh.len > 0:
		s.row++
	}
	q.used++
	s.used++
	q.grants++
	s.granted = q.grants
	w.share, w.opening = s, s.openings.add(s, begun, now)
}

// release gives a slot back. If another invocation may have it, release returns that,
// which the caller must start.
func (q *slots) release(s *share) (w waiter, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	s.used--
	now := time.Now()
	q.settle(s, now)
	if s.waiting == 0 && s.used == 0 {
		delete(q.shares, s.service)
	}
	return q.nextLocked(now)
}

// next returns an invocation that may have a slot, which the caller must start.
func (q *slots) next() (w waiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.nextLocked(time.Now())
}

func (q *slots) nextLocked(now time.Time) (w waiter, ok bool) {
	for i, s := range q.hungry { // nearly always the first
		begun, ok := q.pick(s, s.begun.len, s.fresh.len, now)
		if !ok {
			if i == 0 && q.used == q.limit {
				return w, false
			}
			continue
		}
		if begun {
			w = s.begun.pop()
		} else {
			w = s.fresh.pop()
		}
		s.waiting--
		q.take(s, &w, begun, now)
		if q.waiting--; q.waiting == 0 {
			q.short.Store(false)
		}
		q.settle(s, now)
		return w, true
	}
	return w, false
}

// settle puts a service into hungry, or takes it out. It reports whether the service has
// become hungry.
func (q *slots) settle(s *share, now time.Time) bool {
	hungry := s.begun.len > 0 || s.fresh.len > 0 && !q.heldBack(s, now)
	switch {
	case hungry && s.place == outside:
		heap.Push(&q.hungry, s)
		return true
	case hungry:
		heap.Fix(&q.hungry, s.place)
	case s.place != outside:
		heap.Remove(&q.hungry, s.place)
	}
	return false
}

// pressure says whether invocations of a service wait for a slot, and whether it holds
// more than an equal share while another waits that holds less.
func (q *slots) pressure(service string) (own, over bool) {
	if !q.short.Load() {
		return false, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[service]
	if s == nil || len(q.hungry) == 0 {
		return false, false
	}
	least := q.hungry[0].used
	fair := q.limit / len(q.shares)
	return s.place != outside, q.limit > 0 && s.used > fair && least < fair && (q.perService == 0 || least < q.perService)
}

// hungry is a heap of the services that wait, with the one first that holds the fewest
// slots and, among equals, has waited longest since its last one.
type hungry []*share

func (h hungry) Len() int { return len(h) }
func (h hungry) Less(i, j int) bool {
	if h[i].used != h[j].used {
		return h[i].used < h[j].used
	}
	return h[i].granted < h[j].granted
}

func (h hungry) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *hungry) Push(x any) {
	s := x.(*share)
	s.place = len(*h)
	*h = append(*h, s)
}

func (h *hungry) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.place = outside
	return s
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

const (
	// idlerTimeout is how long an attempt that seems to wait for something may be silent
	// while there is pressure on its slot. It must not be so short that handlers are
	// suspended between two steps.
	idlerTimeout = 200 * time.Millisecond
	// silentTimeout is the same for an attempt that seems to compute, of a service that
	// holds more than its share.
	silentTimeout = 5 * time.Second
	// maxHold is as long as the inactivity timeout lets it.
	maxHold = time.Duration(math.MaxInt64)
)

// line starts an attempt of an invocation, nil if its record was not read, as soon as
// there is a slot. When slots become short, attempts that only wait for something are
// asked to make room: a thousand sleeping handlers must not keep all others from
// running until they have been idle for a minute.
func (iv *Invoker) line(inv *machine.Invocation, w waiter) {
	var key flowcontrol.QueueKey
	begun := false
	if inv != nil {
		key, begun = inv.VQueue(), inv.Length > 1
	}
	got, short := iv.slots.acquire(key, begun, &w)
	if got && !w.start() {
		iv.giveBack(w.share)
	}
	if short {
		iv.makeRoom()
	}
}

// makeRoom has all open attempts looked at soon, since slots are short.
func (iv *Invoker) makeRoom() { iv.scanOpen(time.Now().Add(idlerTimeout)) }

// scanOpen has all open attempts looked at by a time.
func (iv *Invoker) scanOpen(at time.Time) {
	iv.mu.Lock()
	defer iv.mu.Unlock()
	for s := range iv.sessions {
		s.clock.wake(at)
	}
}

// giveBack releases a slot, nil for none, and starts what waits for one. No task's mutex
// may be held.
func (iv *Invoker) giveBack(s *share) {
	if s == nil {
		return
	}
	for w, passed := iv.slots.release(s); passed && !w.start(); {
		w, passed = iv.slots.release(w.share) // w ended while it waited
	}
}
