package flowcontrol

// Cause is the reason why the head of a queue does not run.
type Cause uint8

// The causes. If there are several, the first one in this order is reported.
const (
	NotBlocked    Cause = iota // it may run, and is about to
	ByPause                    // an operator has paused the queue
	ByKey                      // all waiting invocations wait for their keys
	ByConcurrency              // a counter is at the limit of its rule
	ByRate                     // a counter has no token left
	ByScopePause               // an operator has paused the scope; reported before ByKey
)

var causeNames = [...]string{"", "paused", "lock", "limit-key-concurrency", "throttling-rules", "scope-paused"}

// String returns the cause as shown in tables, empty for none.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "unknown"
}

// Blocked explains why the head of a queue does not run.
type Blocked struct {
	Cause   Cause
	Counter CounterKey // for ByConcurrency and ByRate
	Rule    *Rule      // for ByConcurrency and ByRate: the limiting rule
	Used    uint64     // for ByConcurrency: how many run there
	Until   int64      // for ByRate: when there is a token, partition time in milliseconds
}

// CounterReader reads counters.
type CounterReader interface {
	// Counter returns the zero Counter for one without a record.
	Counter(CounterKey) (Counter, error)
}

// Explain returns why no invocation of a queue with waiting ones is started, at a time in
// milliseconds since 1970.
func (m *Matcher) Explain(in CounterReader, key QueueKey, q *VQueue, now int64) (Blocked, error) {
	if q.Paused {
		return Blocked{Cause: ByPause}, nil
	}
	lowest, rules := key.Counter(), m.Match(key.Scope, key.LimitKey)
	switch scope, err := in.Counter(lowest.at(LevelScope)); {
	case err != nil:
		return Blocked{}, err
	case scope.Pause != nil:
		return Blocked{Cause: ByScopePause, Counter: lowest.at(LevelScope)}, nil
	case q.Waiting == 0:
		return Blocked{Cause: ByKey}, nil
	}
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
