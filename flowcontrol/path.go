package flowcontrol

// path is a queue and the counters above it, from the scope down, while they are modified.
// Without a queue it ends at a counter.
type path struct {
	key         QueueKey
	hasQueue    bool
	queue       VQueue
	oldQueue    VQueue // the record as read
	depth       Level  // number of counters
	counters    [Levels]Counter
	oldCounters [Levels]Counter // the records as read
	rules       Match
}

// load reads the path of a queue. The result is valid until the next load.
func (s *Scheduler) load(key QueueKey) (*path, error) {
	p, err := s.loadCounters(key.Counter())
	if err != nil {
		return nil, err
	}
	p.key, p.hasQueue = key, true
	p.queue, err = s.Tables.VQueue(key)
	p.oldQueue = p.queue
	return p, err
}

// loadCounters reads a counter and those above it.
func (s *Scheduler) loadCounters(key CounterKey) (*path, error) {
	p := &s.path
	p.key, p.hasQueue = key.queue(""), false
	p.depth = key.Level() + 1
	p.rules = s.Rules.Match(key.Scope, key.LimitKey)
	for l := range p.depth {
		c, err := s.Tables.Counter(key.at(l))
		if err != nil {
			return nil, err
		}
		p.counters[l], p.oldCounters[l] = c, c
	}
	return p, nil
}

// store updates the rings, from the bottom up, and writes what has changed.
func (s *Scheduler) store(p *path) {
	key := p.key.Counter()
	if p.hasQueue {
		s.updateQueueRing(p, key)
		if p.queue != p.oldQueue {
			if p.queue.idle() {
				p.queue = VQueue{}
			}
			s.Tables.PutVQueue(p.key, p.queue)
		}
	}
	for l := p.depth - 1; ; l-- {
		s.updateCounterRing(p, key, l)
		if l == 0 {
			break
		}
	}
	for l := range p.depth {
		if p.counters[l] != p.oldCounters[l] {
			s.Tables.PutCounter(key.at(l), p.counters[l])
		}
	}
}

// updateQueueRing adds the queue to the ring above it if it can use a slot, and removes it
// if it is empty.
func (s *Scheduler) updateQueueRing(p *path, above CounterKey) {
	q, ring := &p.queue, &p.counters[p.depth-1].Ring
	switch {
	case q.RingSeq == 0 && q.ready():
		q.RingSeq = s.addToRing(above, ring, Child{p.key.Service, true})
	case q.RingSeq != 0 && q.Waiting == 0:
		s.removeFromRing(above, ring, &q.RingSeq)
	}
}

// updateCounterRing does the same for a counter, and sets a timer if it waits for a token.
func (s *Scheduler) updateCounterRing(p *path, lowest CounterKey, l Level) {
	c, r, key := &p.counters[l], p.rules[l], lowest.at(l)
	if c.Waiting == 0 {
		c.Ring = Ring{} // there are no waiting invocations below, so there are only gaps
	}
	if c.Bucket.fullAt() <= s.Now {
		c.Bucket = 0
	}
	if l > 0 {
		above, ring := lowest.at(l-1), &p.counters[l-1].Ring
		switch {
		case c.RingSeq == 0 && !c.Ring.empty() && c.Free(r, s.Now):
			c.RingSeq = s.addToRing(above, ring, Child{Name: key.name()})
		case c.RingSeq != 0 && c.Waiting == 0:
			s.removeFromRing(above, ring, &c.RingSeq)
		}
	}
	switch {
	case r != nil && r.Limits.Rate != nil && !c.Ring.empty() && c.below(r):
		if next := c.Bucket.next(*r.Limits.Rate, s.Now); next > s.Now {
			s.wakeAt(key, c, next)
		}
	case c.Bucket != 0 && c.Running == 0 && c.Waiting == 0:
		s.wakeAt(key, c, c.Bucket.fullAt()) // to delete the record
	}
	if c.idle() {
		*c = Counter{}
	}
}

// wakeAt sets a timer unless there is one that is early enough.
func (s *Scheduler) wakeAt(key CounterKey, c *Counter, at int64) {
	if c.WakeAt == 0 || c.WakeAt > at {
		c.WakeAt = at
		s.Wake(key, at)
	}
}
