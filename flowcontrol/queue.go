package flowcontrol

import "platform/internal/ids"

// QueueKey names a vqueue: the invocations of one service that share a scope and a
// limit key.
type QueueKey struct {
	Scope    string
	LimitKey LimitKey
	Service  string
}

// Counter is the lowest counter that the queue's invocations count at.
func (k QueueKey) Counter() CounterKey { return CounterKey{k.Scope, k.LimitKey} }

// ID is the queue's identifier for users.
func (k QueueKey) ID() ids.VQueue {
	return ids.OfVQueue(k.Scope, k.LimitKey.String(), k.Service, "")
}

// Priorities is how many priorities there are: 0, which is that of those who ask for
// none, to 9, the most urgent.
const Priorities = 10

// PriorityHeadStart is what one more priority is worth, in milliseconds of waiting. A
// place in the queue follows from the time of arrival less the head starts, so nobody
// is overtaken by those who come more than nine head starts later, and nobody starves.
const PriorityHeadStart = 60_000

// Stage is where an invocation is counted.
type Stage uint8

// The stages, in the order of an invocation's life.
const (
	Nowhere   Stage = iota
	Scheduled       // its start time has not come
	Inbox           // waits for its key or for a slot
	Running         // has a slot, also while it backs off
	Suspended
	Paused
	Finished // has ended and is still kept
	stages
)

var stageNames = [...]string{"", "scheduled", "inbox", "running", "suspended", "paused", "finished"}

// String is the stage in the words of tables.
func (s Stage) String() string {
	if int(s) < len(stageNames) {
		return stageNames[s]
	}
	return "unknown"
}

// Lane is the part of a queue with one priority: the places Head ≤ n < Tail. Those who
// leave while they wait leave a gap.
type Lane struct{ Head, Tail uint64 }

// Queued is who waits at a place of a lane, and since when (milliseconds since 1970).
type Queued struct {
	ID ids.Invocation
	At int64
}

// VQueue is the record of a vqueue. The zero VQueue is one that nobody is in.
// Times are partition time in milliseconds since 1970.
type VQueue struct {
	Paused bool
	// Pause describes the pause of a queue that is paused; nil if it was paused below
	// feature level 4. It is never changed in place.
	Pause *QueuePause
	Turn  uint64 // place in the ring of its counter; 0: in none
	// Waiting is how many stand in the lanes: all that wait for a slot, not those that
	// still wait for their key.
	Waiting uint64
	Lanes   [Priorities]Lane
	Stages  [stages]uint64 // how many invocations are in each; none Nowhere

	CreatedAt, LastEnqueuedAt, LastStartAt, LastAttemptAt, LastFinishAt int64
	Averages                                                            Averages
}

// QueuePause says who paused a queue, when and why.
type QueuePause struct {
	By     string // who requested it; empty if unknown
	Reason string // as the operator gave it; may be empty
	At     int64  // milliseconds since 1970
}

// ready reports whether the queue could use a slot.
func (q *VQueue) ready() bool { return q.Waiting > 0 && !q.Paused }

// Active reports whether the queue has invocations that have not ended and may start
// some.
func (q *VQueue) Active() bool {
	return !q.Paused && q.Stages[Scheduled]+q.Stages[Inbox]+q.Stages[Running]+q.Stages[Suspended]+q.Stages[Paused] > 0
}

// idle reports whether the record says nothing worth keeping.
func (q *VQueue) idle() bool { return !q.Paused && q.Stages == [stages]uint64{} }

// Averages are moving averages of how long the invocations of a queue take.
type Averages struct {
	Queue      Average // from when it could run until its first start
	Inbox      Average // in the inbox, each time
	Run        Average // running, each time
	Suspension Average
	EndToEnd   Average // from when it could run until its end
	Rules      Average // in the inbox for concurrency limits
	Throttling Average // in the inbox for rates
	Lock       Average // in the inbox for the key
}

// Average is an exponentially moving average of durations, an eighth of the weight on
// the newest. The zero Average has seen none. Whole numbers, so that all replicas
// agree.
type Average int64

// Micros is the average in microseconds, and whether there is one.
func (a Average) Micros() (micros int64, known bool) { return int64(a) - 1, a > 0 }

// add takes a duration in milliseconds into account.
func (a *Average) add(millis int64) {
	sample := min(max(millis, 0), maxSample) * 1000
	if *a == 0 {
		*a = Average(sample + 1)
		return
	}
	*a += Average((sample + 1 - int64(*a)) / 8)
}

// maxSample keeps sums of microseconds far from overflowing: a thousand years.
const maxSample = 1000 * 366 * 86_400_000
