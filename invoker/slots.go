package invoker

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"platform/flowcontrol"
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
	// maxResumedInRow is the same while new ones hold all slots that they may take. The next new
	// one then takes one of those that are left for resumed ones.
	maxResumedInRow = 16
)

// slots bounds the attempts of a node and divides them among services, max-min fair: a slot
// goes to the waiting service that holds the fewest. If the starts of attempts are throttled, they
// are what is scarce, so services take turns instead. Within a service the vqueues of each
// partition are served round robin.
type slots struct {
	reopen     func(*share) // called when held back attempts may start; nil: never
	limit      int          // 0: unbounded
	perService int          // 0: unbounded
	maxRecords int          // maximum number of invocations that wait with their records, and of those that back off
	short      atomic.Bool  // invocations are waiting

	mu            sync.Mutex // covers the fields below
	starts        throttle   // of attempts; services then take turns
	used          int
	waiting       int
	grants        uint64
	shares        map[string]*share // services that hold or wait for slots
	waitingShares shareHeap         // the waiting ones
}

// share is the state of a service: its slots and its waiting invocations.
type share struct {
	service        string
	inTurns        bool // slots go to services in turns, whatever they hold
	used           int
	waiting        int
	granted        uint64       // order of its latest slot; breaks ties
	heapIndex      int          // in the heap; notInHeap if it does not wait
	resumed, fresh waiterQueues // waiting invocations
	row            int          // resumed ones served since the last new one
	openings       openings
	probes         map[string]*probes // by handler
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

// acquire takes a slot for w, or queues it; the slot is then passed to start. resumed means
// that the invocation has been attempted before. more means that it was queued, but next returns
// an invocation that may start now. short means that slots for the service have just become
// short.
func (q *slots) acquire(key flowcontrol.QueueKey, resumed bool, w *waiter) (got, more, short bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[key.Service]
	if s == nil {
		s = &share{service: strings.Clone(key.Service), heapIndex: notInHeap, inTurns: q.starts.Limited()}
		if q.shares == nil {
			q.shares = map[string]*share{}
		}
		q.shares[s.service] = s
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
	next, ok := q.pickLocked(s, resumedLen, freshLen, now)
	// While others wait for a token, next decides who gets it, and whether there is one.
	inTurns := q.starts.Limited() && (q.waiting > 0 || !q.starts.Has(now))
	if ok && next == resumed && l.len == 0 && !inTurns {
		q.takeLocked(s, w, resumed, now)
		return true, false, false
	}
	w.since = now.UnixNano()
	l.push(queueKey{key, w.session()}, *w)
	s.waiting++
	q.waiting++
	q.short.Store(true)
	return false, ok || inTurns, q.updateHeapLocked(s, now)
}

// allowsLocked reports whether a service may take one more slot while it leaves one free for each
// room slots that it holds.
func (q *slots) allowsLocked(s *share, room int) bool {
	if q.perService > 0 && s.used >= q.perService {
		return false
	}
	free := q.limit - q.used
	return q.limit == 0 || s.used < room*free
}

// pickLocked returns which invocations of a service are next, resumed or new ones, and whether
// they may take a slot now.
func (q *slots) pickLocked(s *share, resumed, fresh int, now time.Time) (next, ok bool) {
	newcomers := fresh > 0 && !q.heldBackLocked(s, now)
	switch {
	case newcomers && q.allowsLocked(s, headroom) && (resumed == 0 || s.row >= resumedInRow):
		return false, true
	case newcomers && s.row >= maxResumedInRow:
		return false, q.allowsLocked(s, resumedHeadroom)
	}
	return true, resumed > 0 && q.allowsLocked(s, resumedHeadroom)
}

// takeLocked assigns a slot to an invocation of a service.
func (q *slots) takeLocked(s *share, w *waiter, resumed bool, now time.Time) {
	switch {
	case !resumed:
		s.row = 0
	case s.fresh.len > 0:
		s.row++
	}
	q.starts.Take(now)
	q.used++
	s.used++
	q.grants++
	s.granted = q.grants
	kind := openingFresh
	if resumed {
		kind = openingResumed
	}
	w.share, w.opening = s, s.openings.add(s, kind, now)
}

// release releases a slot. If another invocation may have it, release returns that, and the
// caller must start it.
func (q *slots) release(s *share) (w waiter, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.releaseLocked(s)
}

// giveBack is release for an invocation that did not start.
func (q *slots) giveBack(w waiter) (next waiter, passed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.share.openings.end(w.opening)
	q.starts.Return()
	return q.releaseLocked(w.share)
}

func (q *slots) releaseLocked(s *share) (w waiter, passed bool) {
	q.used--
	s.used--
	now := time.Now()
	q.updateHeapLocked(s, now)
	if s.waiting == 0 && s.used == 0 {
		delete(q.shares, s.service)
	}
	return q.nextLocked(now)
}

// leave removes the waiting invocations of a session that ends. A node that loses and wins
// leaderships has them in another one.
func (q *slots) leave(ended *Session) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for service, s := range q.shares {
		left := s.resumed.remove(ended) + s.fresh.remove(ended)
		if left == 0 {
			continue
		}
		s.waiting -= left
		q.waiting -= left
		q.updateHeapLocked(s, now)
		if s.waiting == 0 && s.used == 0 {
			delete(q.shares, service)
		}
	}
	if q.waiting == 0 {
		q.short.Store(false)
		q.starts.over(now)
	}
}

// next returns an invocation that may have a slot; the caller must start it.
func (q *slots) next() (w waiter, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.nextLocked(time.Now())
}

func (q *slots) nextLocked(now time.Time) (w waiter, ok bool) {
	if q.waiting > 0 && !q.mayStartLocked(now) {
		return w, false
	}
	for i, s := range q.waitingShares { // nearly always the first
		resumed, ok := q.pickLocked(s, s.resumed.len, s.fresh.len, now)
		if !ok {
			if i == 0 && q.used == q.limit {
				break
			}
			continue
		}
		if resumed {
			w = s.resumed.pop()
		} else {
			w = s.fresh.pop()
		}
		s.waiting--
		q.takeLocked(s, &w, resumed, now)
		if q.waiting--; q.waiting == 0 {
			q.short.Store(false)
		}
		q.updateHeapLocked(s, now)
		return w, true
	}
	q.starts.over(now)
	return w, false
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
	if !q.starts.Has(time.Now()) {
		return false, false // a slot would not help
	}
	least := q.waitingShares[0].used
	fair := q.limit / len(q.shares)
	return s.heapIndex != notInHeap, q.limit > 0 && s.used > fair && least < fair && (q.perService == 0 || least < q.perService)
}
