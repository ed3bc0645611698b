package invoker

import (
	"context"
	"log/slog"
	"sync"

	"platform/internal/ids"
	"platform/partition/attempts"
	"platform/partition/machine"
)

// Session runs the attempts of one partition during one leadership. Its methods are safe
// for concurrent use.
type Session struct {
	iv   *Invoker
	part attempts.Partition
	log  *slog.Logger

	// gate is held for reading while a stream's event is handled, so that Close can wait
	// for events in progress.
	gate sync.RWMutex

	mu     sync.Mutex // covers the fields below; taken after a task's
	closed bool
	tasks  map[ids.Invocation]*task
	sizes  map[machine.Object]int // bounds of the sizes of states that were not sent as a whole, see stateSize

	timers timerQueue
}

var _ attempts.Session = (*Session)(nil)

// Open starts a session for a partition that this node leads.
func (iv *Invoker) Open(p attempts.Partition) attempts.Session { return iv.openSession(p) }

func (iv *Invoker) openSession(p attempts.Partition) *Session {
	s := &Session{iv: iv, part: p, log: iv.log, tasks: map[ids.Invocation]*task{}}
	s.timers.init(s)
	iv.mu.Lock()
	iv.sessions[s] = struct{}{}
	iv.mu.Unlock()
	return s
}

// Run starts an attempt as soon as a slot is free. It never blocks. A known attempt is not
// started again; one with a newer number replaces it.
func (s *Session) Run(r *machine.Run) {
	id, number := r.Invocation.ID, r.Invocation.Attempt
	previous := s.task(id)
	if s.iv.slots.backlogged() && previous == nil && !r.Invocation.Pausing {
		s.iv.enqueue(r.Invocation.VQueue(), r.Invocation.Length > 1, waiter{s: s, id: id, number: number})
		return
	}
	t := newTask(s, id, number)
	t.inv = r.Invocation.Owned()
	t.pin = t.inv.Pin
	t.retry.restore(t.inv.Failed)
	if r.Invocation.Pausing { // since before this leadership
		if s.add(t) {
			t.yield()
		}
		return
	}
	if previous != nil {
		t.follow(previous, r.Invocation.Length)
	}
	if t.spins > toleratedSpins {
		if s.add(t) {
			t.delaySpin()
		}
		return
	}
	if len(r.Input) <= keptInput || !s.iv.slots.short.Load() {
		t.input = r.Input
	}
	if s.add(t) {
		s.iv.enqueue(r.Invocation.VQueue(), r.Invocation.Length > 1, waiter{t: t})
	}
}

// enter makes Close wait during an event; false if the session is closed.
func (s *Session) enter() bool {
	s.gate.RLock()
	if s.isClosed() {
		s.gate.RUnlock()
		return false
	}
	return true
}

// guarded runs f as an event, unless the session is closed.
func (s *Session) guarded(f func()) {
	if s.enter() {
		defer s.gate.RUnlock()
		f()
	}
}

// add registers a task. It returns false if the session is closed, or if the same attempt
// or a newer one is registered.
func (s *Session) add(t *task) bool {
	s.mu.Lock()
	old := s.tasks[t.id]
	if s.closed || old != nil && old.number >= t.number {
		s.mu.Unlock()
		return false
	}
	s.tasks[t.id] = t
	s.mu.Unlock()
	if old != nil {
		old.abandon()
	}
	return true
}

// Notify passes a notification to its attempt. It never blocks.
func (s *Session) Notify(n *machine.Notify) {
	if t := s.task(n.ID); t != nil && t.number == n.Attempt {
		t.notify(n)
	}
}

// Yield ends the attempts of an invocation that is to pause, see task.yield. It never
// blocks.
func (s *Session) Yield(y *machine.Yield) {
	t := s.task(y.ID)
	if t == nil { // it waits for a slot without a record
		t = newTask(s, y.ID, y.Attempt)
		if !s.add(t) {
			return
		}
	}
	if t.number == y.Attempt {
		t.yield()
	}
}

// Hasten starts the next attempt of an invocation that is backing off. It never
// blocks.
func (s *Session) Hasten(h *machine.Hasten) {
	if t := s.task(h.ID); t != nil && t.number == h.Attempt {
		t.hasten(h.Cancel)
	}
}

// Settle waits until the outcome of the last step of an attempt is known, if one is being
// stored, and reports whether it did.
func (s *Session) Settle(ctx context.Context, id ids.Invocation) bool {
	t := s.task(id)
	return t != nil && t.settle(ctx)
}

// Abort aborts an attempt. It never blocks.
func (s *Session) Abort(a *machine.Abort) {
	if t := s.task(a.ID); t != nil && t.number <= a.Attempt {
		t.abandon()
	}
}

// Close ends the leadership: all attempts are aborted, and nothing is proposed once it has
// returned.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	tasks := s.tasks
	s.tasks = map[ids.Invocation]*task{}
	s.mu.Unlock()
	for _, t := range tasks {
		t.abandon()
	}
	s.iv.slots.leave(s)
	s.timers.stop()
	s.gate.Lock() // waits for events in progress
	defer s.gate.Unlock()
	s.iv.mu.Lock()
	delete(s.iv.sessions, s)
	s.iv.mu.Unlock()
}

func (s *Session) task(id ids.Invocation) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id]
}

// remove removes a task unless a newer one has replaced it.
func (s *Session) remove(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks[t.id] == t {
		delete(s.tasks, t.id)
	}
}

func (s *Session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
