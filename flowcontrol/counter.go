package flowcontrol

// CounterKey identifies a counter: a scope, or a scope and a part of a limit key in it.
type CounterKey struct {
	Scope    string
	LimitKey LimitKey
}

// Level returns the level of the last part.
func (k CounterKey) Level() Level {
	switch {
	case k.LimitKey.L2 != "":
		return Level2
	case k.LimitKey.L1 != "":
		return Level1
	}
	return LevelScope
}

// String returns "scope", "scope/l1" or "scope/l1/l2".
func (k CounterKey) String() string {
	return Pattern{k.Scope, k.LimitKey.L1, k.LimitKey.L2}.String()
}

// at returns the counter above k at a level, or k itself.
func (k CounterKey) at(level Level) CounterKey {
	if level < Level2 {
		k.LimitKey.L2 = ""
	}
	if level < Level1 {
		k.LimitKey.L1 = ""
	}
	return k
}

// counter returns the counter with a name below k.
func (k CounterKey) counter(name string) CounterKey {
	if k.LimitKey.L1 == "" {
		k.LimitKey.L1 = name
	} else {
		k.LimitKey.L2 = name
	}
	return k
}

// queue returns the vqueue of a service at k.
func (k CounterKey) queue(service string) QueueKey {
	return QueueKey{k.Scope, k.LimitKey, service}
}

// name returns the last part, which identifies k in the counter above it.
func (k CounterKey) name() string {
	if k.LimitKey.L2 != "" {
		return k.LimitKey.L2
	}
	return k.LimitKey.L1
}

// Counter is the record of a counter. The zero Counter counts nothing.
type Counter struct {
	Running uint64 // invocations that hold a slot
	Waiting uint64 // invocations in the inbox, including those that wait for their key
	RingSeq uint64 // position in the ring of the counter above; 0: not in it
	Ring    Ring
	Bucket  Bucket
	WakeAt  int64 // when a timer re-evaluates it, partition time in milliseconds; 0: no timer
	// Pause means that an operator has paused the scope: none of its queues starts anything. It is
	// nil for other counters, and never changed in place.
	Pause *QueuePause
}

// Ring is the round-robin order of the children of a counter (queues and counters below
// it): the sequence numbers Head ≤ n < Tail, some of which are gaps. Sequence number 0 is
// never used.
type Ring struct{ Head, Tail uint64 }

func (r Ring) empty() bool { return r.Head == r.Tail }

// Child is an entry of a ring. The zero Child is a gap.
type Child struct {
	Name  string // of the service, or the part of the limit key
	Queue bool   // a queue, not a counter
}

// NamedCounter is a counter and its key.
type NamedCounter struct {
	Key CounterKey
	Counter
}

// Free reports whether the limits of a rule, and a pause, allow one more invocation now, in
// milliseconds.
func (c *Counter) Free(r *Rule, now int64) bool {
	return c.Pause == nil && (r == nil || c.below(r) && (r.Limits.Rate == nil || c.Bucket.has(*r.Limits.Rate, now)))
}

func (c *Counter) below(r *Rule) bool {
	return r.Limits.Concurrency == 0 || c.Running < uint64(r.Limits.Concurrency)
}

// idle reports whether the record can be deleted.
func (c *Counter) idle() bool {
	return c.Running == 0 && c.Waiting == 0 && c.Bucket == 0 && c.Pause == nil
}
