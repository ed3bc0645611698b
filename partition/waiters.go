package partition

import (
	"sync"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

// ending is what a waiter receives: the result of an invocation, or the error because of
// which it will not learn it.
type ending struct {
	result    journal.Result
	expiresAt int64
	request   uint64 // that created the invocation
	err       error
}

func (e ending) of(t machine.Target) Ending { return Ending{t, e.result, e.expiresAt} }

// waiter is a caller that waits for the end of an invocation.
type waiter struct {
	ended chan ending    // receives at most one
	lock  machine.Object // that the invocation locks, if any, and that no other waiter counts for

	// Covered by the mutex of the waiters.
	only  uint64  // only an invocation that this request created ends the wait; 0: any
	early *ending // of an invocation with the same ID that another request created
}

// lockOf returns the object whose lock a new invocation has to wait for; zero if there is none.
func lockOf(t *machine.Target) machine.Object {
	if t.Type != target.ObjectExclusive {
		return machine.Object{}
	}
	return t.Object()
}

func newWaiter() *waiter { return &waiter{ended: make(chan ending, 1)} }

func (w *waiter) offer(e ending) {
	select {
	case w.ended <- e:
	default:
	}
}

// waiters are the callers that wait on this leader for the end of invocations. They are not
// stored: after a failover a caller retries with the next leader and the same ID.
type waiters struct {
	mu     sync.Mutex // covers the fields below
	byID   map[ids.Invocation][]*waiter
	byLock map[machine.Object]int // how many of them count for its lock
	closed error
}

func newWaiters() *waiters {
	return &waiters{byID: make(map[ids.Invocation][]*waiter), byLock: make(map[machine.Object]int)}
}

// add registers w until it receives an ending or is removed. It returns how many others wait for the
// end of an invocation with the same lock.
func (s *waiters) add(id ids.Invocation, w *waiter) (others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		w.offer(ending{err: s.closed})
		return 0
	}
	if len(s.byID[id]) > 0 {
		w.lock = machine.Object{} // the first one counts
	}
	s.byID[id] = append(s.byID[id], w)
	if w.lock == (machine.Object{}) {
		return 0
	}
	others = s.byLock[w.lock]
	s.byLock[w.lock] = others + 1
	return others
}

// releaseLocked no longer counts w, which was removed.
func (s *waiters) releaseLocked(w *waiter) {
	if w.lock == (machine.Object{}) {
		return
	}
	if n := s.byLock[w.lock]; n > 1 {
		s.byLock[w.lock] = n - 1
		return
	}
	delete(s.byLock, w.lock)
}

func (s *waiters) remove(id ids.Invocation, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(id, w)
}

func (s *waiters) removeLocked(id ids.Invocation, w *waiter) {
	list := s.byID[id]
	for i := range list {
		if list[i] == w {
			s.releaseLocked(w)
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(s.byID, id)
		return
	}
	s.byID[id] = list
}

// settle records which invocation w waits for, once that is known: that of its own request, or
// the one that it found.
func (s *waiters) settle(id ids.Invocation, w *waiter, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	early := w.early
	w.early = nil
	if own {
		return
	}
	w.only = 0
	if early != nil {
		s.removeLocked(id, w)
		w.offer(*early)
	}
}

// finish passes an ending to the waiters for id.
func (s *waiters) finish(id ids.Invocation, e ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*waiter
	for _, w := range s.byID[id] {
		if w.only == 0 || w.only == e.request {
			s.releaseLocked(w)
			w.offer(e)
			continue
		}
		w.early = &e
		left = append(left, w)
	}
	if left == nil {
		delete(s.byID, id)
		return
	}
	s.byID[id] = left
}

// close fails all waiters, present and future.
func (s *waiters) close(err error) {
	s.mu.Lock()
	all := s.byID
	s.byID, s.byLock, s.closed = nil, nil, err
	s.mu.Unlock()
	for _, list := range all {
		for _, w := range list {
			w.offer(ending{err: err})
		}
	}
}
