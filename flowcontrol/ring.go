package flowcontrol

import "fmt"

// Every invocation takes one slot, so plain round robin is fair: with a quantum and a cost
// of one, no deficit is carried over.

// addToRing appends a child to the ring of a counter.
func (s *Scheduler) addToRing(key CounterKey, ring *Ring, c Child) (seq uint64) {
	if ring.Tail == 0 {
		*ring = Ring{1, 1}
	}
	seq = ring.Tail
	s.Tables.PutChild(key, seq, c)
	ring.Tail++
	return seq
}

// removeFromRing removes a child from the ring of a counter.
func (s *Scheduler) removeFromRing(key CounterKey, ring *Ring, seq *uint64) {
	s.Tables.DeleteChild(key, *seq)
	switch *seq {
	case ring.Head:
		ring.Head++
	case ring.Tail - 1:
		ring.Tail--
	}
	*seq = 0
}

// nextQueue finds the next queue to serve below a counter. Children that cannot use a slot
// leave the ring.
func (s *Scheduler) nextQueue(key CounterKey) (found QueueKey, ok bool, err error) {
	c, err := s.Tables.Counter(key)
	if err != nil || c.Ring.empty() || !c.Free(s.Rules.Match(key.Scope, key.LimitKey)[key.Level()], s.Now) {
		return found, false, err
	}
	before := c
	for !ok && err == nil && !c.Ring.empty() && s.RingRemovals > 0 {
		var child Child
		var seq uint64
		if seq, child, err = s.Tables.FirstChild(key, c.Ring.Head, c.Ring.Tail); err != nil {
			break
		}
		if child == (Child{}) {
			c.Ring.Head = c.Ring.Tail
			break
		}
		c.Ring.Head = seq
		switch {
		case child.Queue:
			found = key.queue(child.Name)
			ok, err = s.tryQueue(key, &c.Ring, found)
		default:
			found, ok, err = s.tryCounter(key, &c.Ring, key.counter(child.Name))
		}
	}
	if c != before {
		s.Tables.PutCounter(key, c)
	}
	return found, ok, err
}

// tryQueue tries the queue at the head of a ring.
func (s *Scheduler) tryQueue(key CounterKey, ring *Ring, child QueueKey) (bool, error) {
	q, err := s.Tables.VQueue(child)
	if err != nil || q.ready() {
		return err == nil, err
	}
	if q.RingSeq != ring.Head {
		return false, fmt.Errorf("ring of %v: queue %v at position %d has recorded position %d", key, child, ring.Head, q.RingSeq)
	}
	s.RingRemovals--
	s.removeFromRing(key, ring, &q.RingSeq)
	s.Tables.PutVQueue(child, q)
	return false, nil
}

// tryCounter tries the counter at the head of a ring.
func (s *Scheduler) tryCounter(key CounterKey, ring *Ring, child CounterKey) (found QueueKey, ok bool, err error) {
	found, ok, err = s.nextQueue(child)
	if ok || err != nil || s.RingRemovals <= 0 {
		return found, ok, err
	}
	s.RingRemovals--
	c, err := s.Tables.Counter(child)
	if err != nil {
		return found, false, err
	}
	if c.RingSeq != ring.Head {
		return found, false, fmt.Errorf("ring of %v: counter %v at position %d has recorded position %d", key, child, ring.Head, c.RingSeq)
	}
	s.removeFromRing(key, ring, &c.RingSeq)
	s.Tables.PutCounter(child, c)
	return found, false, nil
}

// rotate moves the served children, each at the head of its ring, to the end: they leave,
// and store adds them again if they can use another slot. An only child stays, which saves
// two writes.
func (s *Scheduler) rotate(p *path) {
	key := p.key.Counter()
	for l := p.depth - 1; ; l-- {
		seq := &p.queue.RingSeq
		if l < p.depth-1 {
			seq = &p.counters[l+1].RingSeq
		}
		if ring := &p.counters[l].Ring; ring.Tail-ring.Head > 1 {
			s.removeFromRing(key.at(l), ring, seq)
		}
		if l == 0 {
			return
		}
	}
}

// QueuedReader reads single entries of lanes.
type QueuedReader interface {
	// FirstQueued returns the first entry of a lane with a sequence number from ≤ n < before;
	// the zero Queued if there is none. Its cost hardly depends on the number of gaps.
	FirstQueued(q QueueKey, priority uint8, from, before uint64) (seq uint64, entry Queued, err error)
}

// First returns the first entry of a queue: the lane head with the smallest arrival time
// minus head start. It returns the zero Queued if the queue is empty. It advances the lanes
// of q past leading gaps.
func First(line QueuedReader, key QueueKey, q *VQueue) (priority uint8, seq uint64, entry Queued, err error) {
	best := int64(0)
	for i := range q.Lanes {
		lane, n := &q.Lanes[i], uint8(i)
		head, err := headOf(line, key, lane, n)
		if err != nil {
			return 0, 0, entry, err
		}
		if head.ID.IsZero() {
			continue
		}
		rank := head.At - int64(n)*PriorityHeadStart
		if entry.ID.IsZero() || rank <= best { // on a tie, the higher priority
			priority, seq, entry, best = n, lane.Head, head, rank
		}
	}
	return priority, seq, entry, nil
}

// headOf returns the first entry of a lane, or the zero Queued. It skips gaps.
func headOf(line QueuedReader, key QueueKey, lane *Lane, priority uint8) (Queued, error) {
	if lane.Head == lane.Tail {
		return Queued{}, nil
	}
	seq, entry, err := line.FirstQueued(key, priority, lane.Head, lane.Tail)
	if err != nil {
		return Queued{}, err
	}
	if entry.ID.IsZero() {
		seq = lane.Tail
	}
	lane.Head = seq
	return entry, nil
}
