package invoker

import (
	"math"
	"time"

	"platform/flowcontrol"
	"platform/internal/stats"
)

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

// enqueue starts an attempt of an invocation of a vqueue as soon as there is a slot. resumed
// means that the invocation has been attempted before. When slots become short, idle attempts are asked to make room: a
// thousand sleeping handlers must not block all others until the inactivity timeout.
func (iv *Invoker) enqueue(key flowcontrol.QueueKey, resumed bool, w waiter) {
	got, more, short := iv.slots.acquire(key, resumed, &w)
	switch {
	case got && !w.start():
		iv.returnSlot(w)
	case more:
		iv.startNext(short)
	case short:
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

// releaseSlot releases a slot, nil for none, and starts a waiting attempt. The caller must not
// hold the mutex of a task.
func (iv *Invoker) releaseSlot(s *share) {
	if s != nil {
		iv.pass(iv.slots.release(s))
	}
}

// returnSlot releases the slot of an invocation that ended while it waited.
func (iv *Invoker) returnSlot(w waiter) { iv.pass(iv.slots.giveBack(w)) }

// pass starts an invocation that a released slot was passed to.
func (iv *Invoker) pass(w waiter, passed bool) {
	for passed && !w.start() {
		w, passed = iv.slots.giveBack(w)
	}
}

// Short reports whether invocations wait for a slot for an attempt.
func (iv *Invoker) Short() bool { return iv.slots.short.Load() }

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
