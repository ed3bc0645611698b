package invoker

import (
	"sync"
	"time"

	"platform/internal/ids"
	"platform/partition/machine"
)

// phase is where a task stands.
type phase uint8

const (
	waiting    phase = iota // for a slot
	running                 // an attempt is open or being opened
	settling                // the attempt is over; its last proposals are not answered yet
	backingOff              // for the time of the next attempt
	gone                    // nothing is owed any more
)

// task is an invocation that a session has to bring to an end or to a suspension,
// by as many attempts as it takes. All of them have the machine's attempt number;
// what the machine calls an attempt is an admission.
type task struct {
	s      *Session
	id     ids.Invocation
	number uint64

	// sending is held while progress is taken from the attempt and proposed, so that
	// proposals are made in order. It is taken before mu.
	sending sync.Mutex

	mu        sync.Mutex // guards the fields below, and the attempt
	moved     sync.Cond  // unanswered or phase changed
	phase     phase
	inv       *machine.Invocation // as last read; nil: not read yet
	input     []byte              // journal entry 0, as long as the journal is known to hold nothing else; else nil
	pin       machine.Pin         // zero as long as nothing was stored
	a         *attempt            // while running or settling
	retry     retryState
	pending   int      // proposals without an answer
	volume    int      // payload bytes in them
	size      int      // of the last replay, 0: unknown
	slot      *share   // whose slot it has; nil: none
	last      *failure // of the last attempt that failed
	cancelled bool     // while the present attempt was open
	pausing   bool     // no further attempt begins
	started   time.Time
	due       time.Time // while backing off
	deployed  machine.Pin
	server    string
}

func newTask(s *Session, id ids.Invocation, number uint64) *task {
	t := &task{s: s, id: id, number: number}
	t.moved.L = &t.mu
	return t
}

// start begins an attempt with the slot it has been given. It reports false, and
// the slot is the caller's again, if the task ended while it waited.
func (t *task) start(slot *share, o *opening) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != waiting || t.s.isClosed() {
		return false
	}
	t.phase, t.slot = running, slot
	t.started = time.Now()
	t.a = &attempt{t: t, s: t.s, opening: o}
	t.a.memory.b = &t.s.iv.memory
	t.a.stream = t.s.iv.open(t.a) // its first event waits for t.mu
	return true
}

// abandon drops the task and cuts its attempt.
func (t *task) abandon() {
	t.mu.Lock()
	slot := t.end(true)
	t.mu.Unlock()
	t.s.iv.giveBack(slot)
}

// end makes the task gone. It returns the slot that is to be given back once t.mu is
// not held any more, if there is one.
func (t *task) end(reset bool) (slot *share) {
	if t.phase == gone {
		return nil
	}
	if t.a != nil {
		if reset {
			t.a.stream.Reset()
		}
		t.s.clock.closed(t.a)
		t.a.memory.close()
		t.a = nil
	}
	t.phase = gone
	t.inv, t.input = nil, nil
	t.moved.Broadcast()
	t.s.forget(t)
	slot, t.slot = t.slot, nil
	return slot
}

// notify passes a notification on to the open attempt. Later attempts read it from
// the journal, which is more than the input from now on.
func (t *task) notify(n *machine.Notify) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.input = nil
	if t.phase == running {
		t.a.notify(n)
	}
}
