package flowcontrol

// Transition is a change of an invocation's stage.
type Transition struct {
	From, To Stage
	Since    int64 // when it entered From
	// RunnableAt is when it could first have run, 0 if it could not yet.
	RunnableAt int64
	First      bool  // it has never run before
	LockWait   int64 // how long it waited for its key, which it has just acquired
}

// count moves an invocation between stages.
func (s *Scheduler) count(p *path, c Transition) {
	q := &p.queue
	if c.From != Nowhere {
		q.Stages[c.From]--
	} else if q.CreatedAt == 0 {
		q.CreatedAt = s.Now
	}
	if c.To != Nowhere {
		q.Stages[c.To]++
	}
	for l := range p.depth {
		counter := &p.counters[l]
		switch c.From {
		case Running:
			counter.Running--
		case Inbox:
			counter.Waiting--
		}
		switch c.To {
		case Running:
			counter.Running++
		case Inbox:
			counter.Waiting++
		}
	}
	s.measure(q, c)
}

// measure updates the times and averages of a queue.
func (s *Scheduler) measure(q *VQueue, c Transition) {
	if c.LockWait > 0 {
		q.Averages.Lock.add(c.LockWait)
	}
	if c.From == c.To {
		return // from the queue for the key to the queue for a slot
	}
	spent := s.Now - c.Since
	switch c.From {
	case Inbox:
		q.Averages.Inbox.add(spent)
	case Running:
		q.Averages.Run.add(spent)
	case Suspended:
		q.Averages.Suspension.add(spent)
	}
	switch c.To {
	case Inbox:
		q.LastEnqueuedAt = s.Now
	case Running:
		q.LastAttemptAt = s.Now
		if c.First {
			q.LastStartAt = s.Now
			q.Averages.Queue.add(s.Now - c.RunnableAt)
		}
		if c.From != Inbox {
			q.LastEnqueuedAt = s.Now
			q.Averages.Inbox.add(0)
			q.Averages.Rules.add(0)
		}
	case Finished:
		q.LastFinishAt = s.Now
		if c.RunnableAt != 0 {
			q.Averages.EndToEnd.add(s.Now - c.RunnableAt)
		}
	}
}
