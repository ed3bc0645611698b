package flowcontrol

import "fmt"

// Every invocation takes one slot, so round robin gives each child its share: with a
// quantum of one and a cost of one no deficit is ever carried over.

// join appends a child to the ring of a counter.
func (s *Scheduler) join(key CounterKey, ring *Ring, c Child) (place uint64) {
	if ring.Tail == 0 {
		*ring = Ring{1, 1}
	}
	place = ring.Tail
	s.Tables.PutChild(key, place, c)
	ring.Tail++
	return place
}

// leave takes a child out of the ring of a counter.
func (s *Scheduler) leave(key CounterKey, ring *Ring, turn *uint64) {
	s.Tables.DeleteChild(key, *turn)
	switch *turn {
	case ring.Head:
		ring.Head++
	case ring.Tail - 1:
		ring.Tail--
	}
	*turn = 0
}

// choose finds the queue whose turn it is below a counter. Children that cannot use
// their turn leave the ring.
func (s *Scheduler) choose(key CounterKey) (found QueueKey, ok bool, err error) {
	c, err := s.Tables.Counter(key)
	if err != nil || c.Ring.empty() || !c.Free(s.Rules.Match(key.Scope, key.LimitKey)[key.Level()], s.Now) {
		return found, false, err
	}
	before := c
	for !ok && err == nil && !c.Ring.empty() {
		var child Child
		if child, err = s.Tables.Child(key, c.Ring.Head); err != nil {
			break
		}
		switch {
		case child == Child{}:
			c.Ring.Head++
		case child.Queue:
			found = key.queue(child.Name)
			ok, err = s.offerQueue(key, &c.Ring, found)
		default:
			found, ok, err = s.offerCounter(key, &c.Ring, key.counter(child.Name))
		}
	}
	if c != before {
		s.Tables.PutCounter(key, c)
	}
	return found, ok, err
}

// offerQueue gives the queue at the head of a ring its turn.
func (s *Scheduler) offerQueue(key CounterKey, ring *Ring, child QueueKey) (bool, error) {
	q, err := s.Tables.VQueue(child)
	if err != nil || q.ready() {
		return err == nil, err
	}
	if q.Turn != ring.Head {
		return false, fmt.Errorf("ring of %v: queue %v at place %d says %d", key, child, ring.Head, q.Turn)
	}
	s.leave(key, ring, &q.Turn)
	s.Tables.PutVQueue(child, q)
	return false, nil
}

// offerCounter gives the counter at the head of a ring its turn.
func (s *Scheduler) offerCounter(key CounterKey, ring *Ring, child CounterKey) (found QueueKey, ok bool, err error) {
	found, ok, err = s.choose(child)
	if ok || err != nil {
		return found, ok, err
	}
	c, err := s.Tables.Counter(child)
	if err != nil {
		return found, false, err
	}
	if c.Turn != ring.Head {
		return found, false, fmt.Errorf("ring of %v: counter %v at place %d says %d", key, child, ring.Head, c.Turn)
	}
	s.leave(key, ring, &c.Turn)
	s.Tables.PutCounter(child, c)
	return found, false, nil
}

// rotate sends those who have had their turn, each at the head of its ring, to the end
// of it: they leave, and store lets them join again if they can use another one. Who
// is alone in its ring stays, which saves two writes.
func (s *Scheduler) rotate(p *path) {
	key := p.key.Counter()
	for l := p.depth - 1; ; l-- {
		turn := &p.queue.Turn
		if l < p.depth-1 {
			turn = &p.counters[l+1].Turn
		}
		if ring := &p.counters[l].Ring; ring.Tail-ring.Head > 1 {
			s.leave(key.at(l), ring, turn)
		}
		if l == 0 {
			return
		}
	}
}

// Line is where places of queues can be looked up.
type Line interface {
	// Queued is who waits at a place, zero if nobody does.
	Queued(q QueueKey, priority uint8, place uint64) (Queued, error)
}

// First is who stands first in a queue: at the head of the lane whose head came first,
// less its head starts. It is the zero Queued if nobody stands in line. Lanes of q that
// begin with gaps are cut.
func First(line Line, key QueueKey, q *VQueue) (priority uint8, place uint64, who Queued, err error) {
	best := int64(0)
	for i := range q.Lanes {
		lane, n := &q.Lanes[i], uint8(i)
		head, err := headOf(line, key, lane, n)
		if err != nil {
			return 0, 0, who, err
		}
		if head.ID.IsZero() {
			continue
		}
		rank := head.At - int64(n)*PriorityHeadStart
		if who.ID.IsZero() || rank <= best { // equal: the more urgent
			priority, place, who, best = n, lane.Head, head, rank
		}
	}
	return priority, place, who, nil
}

// headOf is who stands first in a lane, zero if nobody does. It passes over gaps.
func headOf(line Line, key QueueKey, lane *Lane, priority uint8) (Queued, error) {
	for lane.Head < lane.Tail {
		who, err := line.Queued(key, priority, lane.Head)
		if err != nil || !who.ID.IsZero() {
			return who, err
		}
		lane.Head++
	}
	return Queued{}, nil
}
