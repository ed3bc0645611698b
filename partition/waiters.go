package partition

import (
	"sync"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// ending is what a waiter receives: the result of an invocation, or the error because of
// which it will not learn it.
type ending struct {
	result    journal.Result
	expiresAt int64
	err       error
}

func (e ending) of(t machine.Target) Ending { return Ending{t, e.result, e.expiresAt} }

// waiters are the callers that wait on this leader for the end of invocations. They are not
// stored: after a failover a caller retries with the next leader and the same ID.
type waiters struct {
	mu     sync.Mutex // covers the fields below
	byID   map[ids.Invocation][]chan<- ending
	closed error
}

func newWaiters() *waiters {
	return &waiters{byID: make(map[ids.Invocation][]chan<- ending)}
}

// add registers c, which must have capacity for one ending, until it receives one or is
// removed.
func (w *waiters) add(id ids.Invocation, c chan<- ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		offer(c, ending{err: w.closed})
		return
	}
	w.byID[id] = append(w.byID[id], c)
}

func (w *waiters) remove(id ids.Invocation, c chan<- ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.byID[id]
	for i := range list {
		if list[i] == c {
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(w.byID, id)
		return
	}
	w.byID[id] = list
}

// finish passes an ending to all waiters for id.
func (w *waiters) finish(id ids.Invocation, e ending) {
	w.mu.Lock()
	list := w.byID[id]
	delete(w.byID, id)
	w.mu.Unlock()
	for _, c := range list {
		offer(c, e)
	}
}

// close fails all waiters, present and future.
func (w *waiters) close(err error) {
	w.mu.Lock()
	all := w.byID
	w.byID, w.closed = nil, err
	w.mu.Unlock()
	for _, list := range all {
		for _, c := range list {
			offer(c, ending{err: err})
		}
	}
}

func offer(c chan<- ending, e ending) {
	select {
	case c <- e:
	default:
	}
}
