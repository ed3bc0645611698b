package invoker

import (
	"sync"
	"time"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
)

// task is an invocation that a session has to run until it ends or suspends, by as many
// attempts as needed. All of them have the machine's attempt number; what the machine calls
// an attempt is an admission.
type task struct {
	s      *Session
	id     ids.Invocation
	number uint64

	// sending is held while progress is taken from the attempt and proposed, so that
	// proposals are made in order. It is taken before mu.
	sending sync.Mutex

	place int // in the backoffs of the session, from 1 on; 0: not in them. Covered by the timer queue's mutex

	// mu covers the fields below, and the attempt. The suffix Locked of a method of either means that
	// the caller holds it. It is held by one task at a time, see DESIGN.md for the order.
	mu    sync.Mutex
	moved sync.Cond // pending, volume or state changed
	state state
	a     *attempt // from loading to reporting
	slot  *share   // the service whose slot it holds; nil: none

	// The invocation. Its record is dropped while it waits for the next attempt, if there are many, see shedLocked.
	inv                *machine.Invocation  // as last read; nil: not read yet, or dropped
	vqueue             flowcontrol.QueueKey // of an inv that was dropped
	resumed            bool                 // the same: it had been attempted before
	backsOffWithRecord bool                 // counted in Invoker.backoffRecords
	input              []byte               // journal entry 0, while the journal is known to contain nothing else; otherwise nil
	pin                machine.Pin          // zero while nothing is stored
	size               int                  // bytes of the last replay, 0: unknown

	pending int // proposals without an outcome
	volume  int // bytes of their steps

	// Attempts and failures.
	retry     retryState
	started   time.Time   // the current or last attempt
	due       time.Time   // the next one, while backing off
	deployed  machine.Pin // of the last attempt
	server    string      // how the endpoint identified itself last
	last      *failure    // of the last failed attempt, see setLastLocked
	lastTexts int64       // bytes of it that maxFailureTexts bounds
	lastAt    time.Time   // when it failed
	recorded  uint64      // digest of the last failure in the history of the invocation; 0: none
	cancelled bool        // while the current attempt was open
	pausing   bool        // no further attempt starts
	spins     int         // previous tasks in a row that suspended to run again immediately, see follow
}

func newTask(s *Session, id ids.Invocation, number uint64) *task {
	t := &task{s: s, id: id, number: number, state: waiting}
	t.moved.L = &t.mu
	return t
}

// start starts an attempt with the assigned slot. It returns false, and the caller keeps
// the slot, if the task ended while it waited.
func (t *task) start(slot *share, o *opening) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s.isClosed() || !t.moveLocked(granted) {
		return false
	}
	t.slot, t.started = slot, time.Now()
	t.a = &attempt{t: t, s: t.s, opening: o}
	t.a.memory.b = &t.s.iv.memory
	t.a.stream = t.s.iv.open(t.a) // its first event waits for t.mu
	return true
}

// abandon drops the task and aborts its attempt.
func (t *task) abandon() {
	t.mu.Lock()
	slot := t.endLocked(drop)
	t.mu.Unlock()
	t.s.iv.releaseSlot(slot)
}

// moveLocked makes the transition of an event that does not lead to backingOff or gone: see endLocked.
// It returns false if the event has no effect.
func (t *task) moveLocked(e event) bool {
	next := transitions[t.state][e]
	if next.to == none {
		return false
	}
	t.state = next.to
	if t.backsOffWithRecord {
		t.backsOffWithRecord = false
		t.s.iv.backoffRecords.Add(-1)
	}
	t.moved.Broadcast()
	a := t.a
	if a == nil {
		return true
	}
	switch {
	case next.do&closeWrite != 0:
		a.stream.CloseWrite()
		a.touchLocked()
		t.s.timers.wake(a.deadlineLocked())
	case next.do&resetStream != 0, next.do&endStream != 0 && a.failure != nil && !a.failure.orderly:
		a.stream.Reset()
	case next.do&endStream != 0:
		a.stream.Finish()
	}
	if next.do&unwatch != 0 {
		t.s.timers.closed(a)
	}
	return true
}

// endLocked is moveLocked for events that lead to backingOff or gone: it releases the attempt. It
// returns the slot, nil for none, which the caller releases after t.mu.
func (t *task) endLocked(e event) (slot *share) {
	if !t.moveLocked(e) {
		return nil
	}
	if t.a != nil {
		t.a.measureLocked(e)
		t.s.iv.slots.roomMade(t.a.room)
		t.a.memory.close()
		t.s.iv.actions.leave(t.a.action)
		t.a = nil
	}
	if t.state == gone {
		t.inv, t.input = nil, nil
		t.setLastLocked(nil)
		t.s.timers.forget(t)
		t.s.remove(t)
	}
	slot, t.slot = t.slot, nil
	return slot
}

// notify passes a notification to the open attempt. Later attempts read it from the
// journal, which from now on contains more than the input.
func (t *task) notify(n *machine.Notify) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.input = nil
	if t.state.open() {
		t.a.notifyLocked(n)
	}
}
