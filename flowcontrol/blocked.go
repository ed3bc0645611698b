package flowcontrol

// Cause is why the head of a queue does not run.
type Cause uint8

// The causes. Where there are several the first of the list counts.
const (
	NotBlocked    Cause = iota // it may run, and is going to
	ByPause                    // an operator has paused the queue
	ByKey                      // others hold the keys of all that wait
	ByConcurrency              // a counter is at the limit of its rule
	ByRate                     // a counter has no token left
)

var causeNames = [...]string{"", "paused", "lock", "limit-key-concurrency", "throttling-rules"}

// String is the cause in the words of tables, empty for none.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "unknown"
}

// Blocked is why the head of a queue does not run.
type Blocked struct {
	Cause   Cause
	Counter CounterKey // ByConcurrency, ByRate: where
	Rule    *Rule      // ByConcurrency, ByRate: the rule that says so
	Used    uint64     // ByConcurrency: how many run there
	Until   int64      // ByRate: when there is a token, partition time in milliseconds
}

// CounterReader is where counters can be looked up.
type CounterReader interface {
	// Counter is the zero Counter where nobody counts.
	Counter(CounterKey) (Counter, error)
}

// Explain tells why nobody of a queue in which some wait is started, at a time in
// milliseconds since 1970.
func (m *Matcher) Explain(in CounterReader, key QueueKey, q *VQueue, now int64) (Blocked, error) {
	switch {
	case q.Paused:
		return Blocked{Cause: ByPause}, nil
	case q.Waiting == 0:
		return Blocked{Cause: ByKey}, nil
	}
	lowest, rules := key.Counter(), m.Match(key.Scope, key.LimitKey)
	for l := range lowest.Level() + 1 {
		r := rules[l]
		if r == nil {
			continue
		}
		c, err := in.Counter(lowest.at(l))
		switch {
		case err != nil:
			return Blocked{}, err
		case !c.below(r):
			return Blocked{Cause: ByConcurrency, Counter: lowest.at(l), Rule: r, Used: c.Running}, nil
		case !c.Free(r, now):
			return Blocked{Cause: ByRate, Counter: lowest.at(l), Rule: r, Until: c.Bucket.next(*r.Limits.Rate, now)}, nil
		}
	}
	return Blocked{}, nil
}
