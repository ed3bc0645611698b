package flowcontrol

import (
	"fmt"

	"platform/internal/ids"
)

// Scheduler decides which invocation runs next, based only on the records in the tables: it
// keeps no state between calls. All tables belong to one partition, which contains scopes
// as a whole.
//
// The counters of a scope form a tree with queues as leaves. Each counter has a ring of the
// children that can use a slot. A free slot descends from the scope: at each counter to the
// next child in the ring, in the queue to its first entry. A child that cannot use the
// slot, because its own limit is reached, leaves the ring and rejoins when that changes, so
// it is not checked twice without result.
//
// Invariants: before and after each method, every child that can use a slot is in its ring.
// Before and after each command of a partition, no admissible invocation waits, except as
// described at admitWaiting in partition/machine.
type Scheduler struct {
	Tables Tables
	Rules  *Matcher
	Now    int64 // partition time, milliseconds since 1970
	// Wake sets a timer that calls Reevaluate at a time.
	Wake func(key CounterKey, at int64)
	// RingRemovals is how many children may still be removed from their rings because they cannot
	// use a slot. Next reduces it, and stops early when it is used up.
	RingRemovals int

	path path // reused memory
}

// Move counts a change that needs no slot. Leaving Running releases the slot: then Next
// must be called until it finds none.
func (s *Scheduler) Move(key QueueKey, c Transition) error {
	p, err := s.load(key)
	if err != nil {
		return err
	}
	s.count(p, c)
	s.store(p)
	return nil
}

// Admit assigns a slot to an invocation, or queues it with the returned sequence number;
// then Next must be called until it finds none. c.To is ignored. If others are waiting, the
// invocation is queued even if there is a free slot, which may be theirs.
func (s *Scheduler) Admit(key QueueKey, id ids.Invocation, priority uint8, c Transition) (admitted bool, seq uint64, err error) {
	p, err := s.load(key)
	if err != nil {
		return false, 0, err
	}
	if s.unobstructed(p) {
		c.To = Running
		s.take(p)
		s.count(p, c)
		s.store(p)
		return true, 0, nil
	}
	c.To = Inbox
	s.count(p, c)
	lane := &p.queue.Lanes[priority]
	seq = lane.Tail
	s.Tables.PutQueued(key, priority, seq, Queued{id, s.Now})
	lane.Tail++
	p.queue.Waiting++
	s.store(p)
	return false, seq, nil
}

// unobstructed reports whether one more invocation may run without overtaking another.
func (s *Scheduler) unobstructed(p *path) bool {
	if p.queue.Waiting > 0 || p.queue.Paused {
		return false
	}
	for l := range p.depth {
		if c := &p.counters[l]; !c.Ring.empty() || !c.Free(p.rules[l], s.Now) {
			return false
		}
	}
	return true
}

// Full returns the rule because of which one more invocation may not be queued, nil if
// there is none. locked means that it would have to wait for its key; otherwise an
// invocation that could run immediately is never rejected.
func (s *Scheduler) Full(key QueueKey, locked bool) (*Rule, error) {
	if !s.Rules.Bounded() {
		return nil, nil
	}
	p, err := s.load(key)
	if err != nil || !locked && s.unobstructed(p) {
		return nil, err
	}
	for l := range p.depth {
		if r := p.rules[l]; r != nil && r.Limits.QueueLimit != nil && p.counters[l].Waiting >= *r.Limits.QueueLimit {
			return r, nil
		}
	}
	return nil, nil
}

// Remove removes a waiting invocation from its lane; Move must count its next stage.
func (s *Scheduler) Remove(key QueueKey, priority uint8, seq uint64) error {
	p, err := s.load(key)
	if err != nil {
		return err
	}
	if err := s.removeQueued(p, priority, seq); err != nil {
		return err
	}
	s.store(p)
	return nil
}

// removeQueued removes an entry from its lane.
func (s *Scheduler) removeQueued(p *path, priority uint8, seq uint64) error {
	lane := &p.queue.Lanes[priority]
	if seq < lane.Head || seq >= lane.Tail || p.queue.Waiting == 0 {
		return fmt.Errorf("queue %v: no entry %d with priority %d", p.key, seq, priority)
	}
	s.Tables.DeleteQueued(p.key, priority, seq)
	p.queue.Waiting--
	switch seq {
	case lane.Head:
		lane.Head++
	case lane.Tail - 1:
		lane.Tail--
	}
	return nil
}

// Pause stops a queue from starting invocations. It returns false for a queue that has no
// record. A queue that is already paused keeps its pause.
func (s *Scheduler) Pause(key QueueKey, pause *QueuePause) (known bool, err error) {
	return s.setPaused(key, func(q *VQueue) {
		if !q.Paused {
			q.Paused, q.Pause = true, pause
		}
	})
}

// Resume lets a paused queue start invocations again; then Next must be called. It returns
// false for a queue without a record.
func (s *Scheduler) Resume(key QueueKey) (known bool, err error) {
	return s.setPaused(key, func(q *VQueue) { q.Paused, q.Pause = false, nil })
}

func (s *Scheduler) setPaused(key QueueKey, change func(*VQueue)) (known bool, err error) {
	p, err := s.load(key)
	if err != nil || p.queue == (VQueue{}) {
		return false, err
	}
	change(&p.queue)
	s.store(p)
	return true, nil
}

// PauseScope stops all queues of a scope, also those that do not exist yet, from starting
// invocations. A scope that is already paused keeps its pause.
func (s *Scheduler) PauseScope(scope string, pause *QueuePause) error {
	return s.changeScope(scope, func(c *Counter) {
		if c.Pause == nil {
			c.Pause = pause
		}
	})
}

// ResumeScope lets the queues of a paused scope, except those that are paused themselves, start
// invocations again; then Next must be called.
func (s *Scheduler) ResumeScope(scope string) error {
	return s.changeScope(scope, func(c *Counter) { c.Pause = nil })
}

func (s *Scheduler) changeScope(scope string, change func(*Counter)) error {
	p, err := s.loadCounters(CounterKey{Scope: scope})
	if err != nil {
		return err
	}
	change(&p.counters[LevelScope])
	s.store(p)
	return nil
}

// Reevaluate updates a counter after its timer has fired or its rules have changed. Then
// Next must be called.
func (s *Scheduler) Reevaluate(key CounterKey) error {
	p, err := s.loadCounters(key)
	if err != nil {
		return err
	}
	if c := &p.counters[p.depth-1]; c.WakeAt <= s.Now {
		c.WakeAt = 0
	}
	s.store(p)
	return nil
}

// Admitted is an invocation that got a slot.
type Admitted struct {
	ID        ids.Invocation
	Key       QueueKey
	Since     int64 // when it was queued
	Throttled bool  // delayed last by a rate, not by a concurrency limit
}

// Next assigns a free slot of a scope, if there is one, to the next waiting invocation;
// found reports whether it did. It may find none because RingRemovals is used up: then it must be called
// again in a later command. change returns what to count for the invocation; its To is ignored.
func (s *Scheduler) Next(scope string, change func(ids.Invocation) (Transition, error)) (next Admitted, found bool, err error) {
	key, found, err := s.nextQueue(CounterKey{Scope: scope})
	if !found || err != nil {
		return next, false, err
	}
	p, err := s.load(key)
	if err != nil {
		return next, false, err
	}
	priority, seq, entry, err := First(s.Tables, key, &p.queue)
	if err != nil {
		return next, false, err
	}
	if err := s.removeQueued(p, priority, seq); err != nil {
		return next, false, err
	}
	c, err := change(entry.ID)
	if err != nil {
		return next, false, err
	}
	c.From, c.To = Inbox, Running
	next = Admitted{ID: entry.ID, Key: key, Since: entry.At, Throttled: s.throttled(p)}
	if next.Throttled {
		p.queue.Averages.Throttling.add(s.Now - entry.At)
	} else {
		p.queue.Averages.Rules.add(s.Now - entry.At)
	}
	s.take(p)
	s.count(p, c)
	s.rotate(p)
	s.store(p)
	return next, true, nil
}

// take takes a token at each level that has a rate.
func (s *Scheduler) take(p *path) {
	for l := range p.depth {
		if r := p.rules[l]; r != nil && r.Limits.Rate != nil {
			p.counters[l].Bucket.take(*r.Limits.Rate, s.Now)
		}
	}
}

// throttled reports whether a rate on the path has regained its token only just now.
func (s *Scheduler) throttled(p *path) bool {
	for l := range p.depth {
		if r := p.rules[l]; r != nil && r.Limits.Rate != nil && !p.counters[l].Bucket.has(*r.Limits.Rate, s.Now-1) {
			return true
		}
	}
	return false
}

// RulesChanged re-evaluates counters after a change of the rules: at most the given number,
// from a key on. It returns the scopes, in order, for which Next must be called, and the key
// from which to continue; more is false if there are no others.
func (s *Scheduler) RulesChanged(from CounterKey, most int) (scopes []string, next CounterKey, more bool, err error) {
	counters, err := s.Tables.Counters(from, most)
	if err != nil {
		return nil, next, false, err
	}
	for i := range counters {
		c := &counters[i]
		next = c.Key
		if c.Waiting == 0 {
			continue
		}
		if err := s.Reevaluate(c.Key); err != nil {
			return nil, next, false, err
		}
		if len(scopes) == 0 || scopes[len(scopes)-1] != c.Key.Scope {
			scopes = append(scopes, c.Key.Scope)
		}
	}
	// The last one is evaluated again, which changes nothing, because its successor is not known.
	return scopes, next, len(counters) == most, nil
}
