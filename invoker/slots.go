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

	// begunInRow is how many invocations that have begun are served before one of the
	// same line that has not. Work in progress comes first, since its callers, timers
	// and locks wait, but new work is not kept out.
	begunInRow = 3
)

// slots bounds the attempts of a node and divides them among services, max-min fair: a
// slot goes to the service that holds the fewest of those that wait. Within a service
// the vqueues of each partition take turns.
type slots struct {
	limit      int         // 0: none
	perService int         // 0: none
	most       int         // invocations that wait together with their records
	short      atomic.Bool // there are invocations that wait

	mu      sync.Mutex // guards the fields below
	used    int
	waiting int
	grants  uint64
	shares  map[string]*share // services that hold slots or wait for one
	hungry  hungry            // those that wait
}

// share is what a service holds of the slots, and what of it waits.
type share struct {
	service string
	used    int
	waiting int
	granted uint64 // when it got its latest slot; breaks ties
	place   int    // in hungry, while waiting > 0
	queues  map[queueKey]*queue
	turns   fifo[*queue] // the same ones
}

type queueKey struct {
	queue flowcontrol.QueueKey
	s     *Session
}

// queue is what waits of a vqueue in a partition, in order of arrival.
type queue struct {
	key          queueKey
	begun, fresh fifo[waiter]
	row          int // begun ones served since the last fresh one
}

func (l *queue) len() int { return l.begun.len() + l.fresh.len() }

func (l *queue) pop() waiter {
	if l.fresh.len() == 0 || l.begun.len() > 0 && l.row < begunInRow {
		l.row++
		return l.begun.pop()
	}
	l.row = 0
	return l.fresh.pop()
}

// waiter waits for a slot: a task, or what becomes one when it is its turn.
type waiter struct {
	t      *task // nil: s, id and number name it
	s      *Session
	id     ids.Invocation
	number uint64
	share  *share // of the slot, once there is one
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
	return t.start(w.share)
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
// says that the invocation has been attempted before. first says that it is the only
// one of its service that waits.
func (q *slots) acquire(key flowcontrol.QueueKey, begun bool, w *waiter) (got, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[key.Service]
	if s == nil {
		s = &share{service: key.Service}
		if q.shares == nil {
			q.shares = map[string]*share{}
		}
		q.shares[key.Service] = s
	}
	w.share = s
	if s.waiting == 0 && q.allows(s) {
		q.take(s)
		return true, false
	}
	s.push(queueKey{key, w.session()}, begun, *w)
	if s.waiting == 1 {
		heap.Push(&q.hungry, s)
	}
	q.waiting++
	q.short.Store(true)
	return false, s.waiting == 1
}

// allows reports whether a service may take one more slot. If one that waits may not,
// neither may those that hold more.
func (q *slots) allows(s *share) bool {
	if q.perService > 0 && s.used >= q.perService {
		return false
	}
	free := q.limit - q.used
	return q.limit == 0 || s.used < headroom*free
}

func (q *slots) take(s *share) {
	q.used++
	s.used++
	q.grants++
	s.granted = q.grants
}

// release gives a slot back. If another invocation may have it, release returns that,
// which the caller must start.
func (q *slots) release(s *share) (w waiter, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	s.used--
	switch {
	case s.waiting > 0:
		heap.Fix(&q.hungry, s.place)
	case s.used == 0:
		delete(q.shares, s.service)
	}
	if len(q.hungry) == 0 || !q.allows(q.hungry[0]) {
		return w, false
	}
	next := q.hungry[0]
	w = next.pop()
	q.take(next)
	if next.waiting > 0 {
		heap.Fix(&q.hungry, 0)
	} else {
		heap.Pop(&q.hungry)
	}
	if q.waiting--; q.waiting == 0 {
		q.short.Store(false)
	}
	return w, true
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
	return s.waiting > 0, q.limit > 0 && s.used > fair && least < fair && (q.perService == 0 || least < q.perService)
}

func (s *share) push(key queueKey, begun bool, w waiter) {
	l := s.queues[key]
	if l == nil {
		if s.queues == nil {
			s.queues = map[queueKey]*queue{}
		}
		l = &queue{key: key}
		s.queues[key] = l
		s.turns.push(l)
	}
	if begun {
		l.begun.push(w)
	} else {
		l.fresh.push(w)
	}
	s.waiting++
}

func (s *share) pop() waiter {
	l := s.turns.pop()
	w := l.pop()
	if l.len() > 0 {
		s.turns.push(l)
	} else {
		delete(s.queues, l.key)
	}
	if s.waiting--; s.waiting == 0 {
		s.queues, s.turns = nil, fifo[*queue]{}
	}
	return w
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
	// silentTimeout is the same for an attempt that has asked for nothing yet, of a
	// service that holds more than its share. It may be computing, and would do so again.
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
	got, first := iv.slots.acquire(key, begun, &w)
	if got && !w.start() {
		iv.giveBack(w.share)
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
