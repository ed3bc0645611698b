package flowcontrol

import (
	"fmt"

	"platform/internal/ids"
)

// Scheduler decides who runs next, by the records in the tables and nothing else: it
// keeps nothing from one call to the next. All of it is one partition's, and all of a
// scope is in one partition.
//
// The counters of a scope are a tree, with queues as its leaves. Each counter has a
// ring of the children that can use a slot. A free slot goes down from the scope: at
// each counter to the child whose turn it is, in the queue to whoever stands first.
// A child that cannot use its turn, because its own limit is reached, leaves the ring
// and comes back when that changes; so nobody is looked at in vain twice.
//
// Before and after each method, every child that can use a slot stands in its ring.
// Before and after each command of a partition, nobody is left who could run; the one
// exception is in partition/machine, see admitWaiting.
type Scheduler struct {
	Tables Tables
	Rules  *Matcher
	Now    int64 // partition time, milliseconds since 1970
	// Wake is asked for a call of Awake at a time.
	Wake func(key CounterKey, at int64)

	path path // memory to use again
}

// Move counts a change that needs no slot. What was Running gives its slot back: then
// Next must be called until it finds nobody.
func (s *Scheduler) Move(key QueueKey, c Transition) error {
	p, err := s.load(key)
	if err != nil {
		return err
	}
	s.count(p, c)
	s.store(p)
	return nil
}

// Admit gives a slot to an invocation that asks for one, or lets it line up at the
// place that it returns; then Next must be called until it finds nobody. c.To does not
// matter. Whoever finds others in line lines up, even if there is a free slot: it
// could be theirs.
func (s *Scheduler) Admit(key QueueKey, id ids.Invocation, priority uint8, c Transition) (admitted bool, place uint64, err error) {
	p, err := s.load(key)
	if err != nil {
		return false, 0, err
	}
	if s.clear(p) {
		c.To = Running
		s.take(p)
		s.count(p, c)
		s.store(p)
		return true, 0, nil
	}
	c.To = Inbox
	s.count(p, c)
	lane := &p.queue.Lanes[priority]
	place = lane.Tail
	s.Tables.PutQueued(key, priority, place, Queued{id, s.Now})
	lane.Tail++
	p.queue.Waiting++
	s.store(p)
	return false, place, nil
}

// clear reports whether one more may run without overtaking anybody.
func (s *Scheduler) clear(p *path) bool {
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

// Full finds the rule that keeps one more from lining up in the queue, nil if there
// is none. locked says that it would have to wait for its key; otherwise one that could
// run at once is never refused.
func (s *Scheduler) Full(key QueueKey, locked bool) (*Rule, error) {
	if !s.Rules.Bounded() {
		return nil, nil
	}
	p, err := s.load(key)
	if err != nil || !locked && s.clear(p) {
		return nil, err
	}
	for l := range p.depth {
		if r := p.rules[l]; r != nil && r.Limits.QueueLimit != nil && p.counters[l].Waiting >= *r.Limits.QueueLimit {
			return r, nil
		}
	}
	return nil, nil
}

// Remove takes one that waits out of the line; Move counts where it goes.
func (s *Scheduler) Remove(key QueueKey, priority uint8, place uint64) error {
	p, err := s.load(key)
	if err != nil {
		return err
	}
	if err := s.pull(p, priority, place); err != nil {
		return err
	}
	s.store(p)
	return nil
}

// pull takes a place out of its lane.
func (s *Scheduler) pull(p *path, priority uint8, place uint64) error {
	lane := &p.queue.Lanes[priority]
	if place < lane.Head || place >= lane.Tail || p.queue.Waiting == 0 {
		return fmt.Errorf("queue %v: nobody waits at place %d of priority %d", p.key, place, priority)
	}
	s.Tables.DeleteQueued(p.key, priority, place)
	p.queue.Waiting--
	switch place {
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
// false for a queue that has no record.
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

// Awake looks at a counter again, when its timer has fired or its rules have changed.
// Then Next must be called.
func (s *Scheduler) Awake(key CounterKey) error {
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

// Admitted is who got a slot.
type Admitted struct {
	ID        ids.Invocation
	Key       QueueKey
	Since     int64 // when it lined up
	Throttled bool  // a rate held it up last, not a concurrency limit
}

// Next gives a free slot of a scope, if there is one, to whoever is next; found tells
// whether anybody is. change says what to count; its To does not matter.
func (s *Scheduler) Next(scope string, change func(ids.Invocation) (Transition, error)) (next Admitted, found bool, err error) {
	key, found, err := s.choose(CounterKey{Scope: scope})
	if !found || err != nil {
		return next, false, err
	}
	p, err := s.load(key)
	if err != nil {
		return next, false, err
	}
	priority, place, who, err := First(s.Tables, key, &p.queue)
	if err != nil {
		return next, false, err
	}
	if err := s.pull(p, priority, place); err != nil {
		return next, false, err
	}
	c, err := change(who.ID)
	if err != nil {
		return next, false, err
	}
	c.From, c.To = Inbox, Running
	next = Admitted{ID: who.ID, Key: key, Since: who.At, Throttled: s.throttled(p)}
	if next.Throttled {
		p.queue.Averages.Throttling.add(s.Now - who.At)
	} else {
		p.queue.Averages.Rules.add(s.Now - who.At)
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

// throttled reports whether there is a rate on the path of which just this token has
// come back.
func (s *Scheduler) throttled(p *path) bool {
	for l := range p.depth {
		if r := p.rules[l]; r != nil && r.Limits.Rate != nil && !p.counters[l].Bucket.has(*r.Limits.Rate, s.Now-1) {
			return true
		}
	}
	return false
}

// Revise looks at all counters again after a change of the rules, and returns the
// scopes, in order, that Next must be called for.
func (s *Scheduler) Revise() (scopes []string, err error) {
	var waiting []CounterKey
	for c, err := range s.Tables.Counters() {
		if err != nil {
			return nil, err
		}
		if c.Waiting > 0 {
			waiting = append(waiting, c.Key)
		}
	}
	for _, key := range waiting {
		if err := s.Awake(key); err != nil {
			return nil, err
		}
		if key.Level() == LevelScope {
			scopes = append(scopes, key.Scope)
		}
	}
	return scopes, nil
}
