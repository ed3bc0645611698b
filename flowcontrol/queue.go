package flowcontrol

import (
	"strings"

	"platform/internal/ids"
)

// QueueKey identifies a vqueue: the invocations of one service that share a scope and a
// limit key.
type QueueKey struct {
	Scope    string
	LimitKey LimitKey
	Service  string
}

// Clone returns a copy with strings of its own, to be kept for longer than what k is a part of.
func (k QueueKey) Clone() QueueKey {
	return QueueKey{
		Scope: strings.Clone(k.Scope), Service: strings.Clone(k.Service),
		LimitKey: LimitKey{L1: strings.Clone(k.LimitKey.L1), L2: strings.Clone(k.LimitKey.L2)},
	}
}

// Counter returns the lowest counter that counts the queue's invocations.
func (k QueueKey) Counter() CounterKey { return CounterKey{k.Scope, k.LimitKey} }

// ID returns the queue's identifier for users.
func (k QueueKey) ID() ids.VQueue {
	return ids.OfVQueue(k.Scope, k.LimitKey.String(), k.Service, "")
}

// Priorities is the number of priorities: from 0, the default, to 9, the most urgent.
const Priorities = 10

// PriorityHeadStart is the advantage of one priority over the next lower one, in
// milliseconds of waiting. The order in the queue is by arrival time minus head start, so
// no invocation is overtaken by one that arrives more than nine head starts later, and
// there is no starvation.
const PriorityHeadStart = 60_000

// Stage is the stage in which an invocation is counted.
type Stage uint8

// The stages, in the order of an invocation's lifecycle.
const (
	Nowhere   Stage = iota
	Scheduled       // its start time has not come
	Inbox           // waits for its key or for a slot
	Running         // holds a slot, also while it backs off
	Suspended
	Paused
	Finished // has ended and is retained
	stages
)

var stageNames = [...]string{"", "scheduled", "inbox", "running", "suspended", "paused", "finished"}

// String returns the stage as shown in tables.
func (s Stage) String() string {
	if int(s) < len(stageNames) {
		return stageNames[s]
	}
	return "unknown"
}

// Lane is the part of a queue with one priority: the sequence numbers Head ≤ n < Tail. An
// invocation that was removed while it waited leaves a gap.
type Lane struct{ Head, Tail uint64 }

// Queued is an entry of a lane: the waiting invocation and since when it waits, in
// milliseconds since 1970.
type Queued struct {
	ID ids.Invocation
	At int64
}

// VQueue is the record of a vqueue. The zero VQueue is empty. Times are partition time in
// milliseconds since 1970.
type VQueue struct {
	Paused bool
	// Pause describes the pause of a queue that is paused; nil if it was paused below
	// feature level 4. It is never changed in place.
	Pause   *QueuePause
	RingSeq uint64 // position in the ring of its counter; 0: not in it
	// Waiting is the number of entries in the lanes: invocations that wait for a slot,
	// without those that still wait for their key.
	Waiting uint64
	Lanes   [Priorities]Lane
	Stages  [stages]uint64 // number of invocations in each; Nowhere is unused

	CreatedAt, LastEnqueuedAt, LastStartAt, LastAttemptAt, LastFinishAt int64
	Averages                                                            Averages
}

// QueuePause says who paused a queue or a scope, when and why.
type QueuePause struct {
	By     string // who requested it; empty if unknown
	Reason string // as the operator gave it; may be empty
	At     int64  // milliseconds since 1970
}

// ready reports whether the queue could use a slot.
func (q *VQueue) ready() bool { return q.Waiting > 0 && !q.Paused }

// Active reports whether the queue is not paused and has invocations that have not ended.
func (q *VQueue) Active() bool {
	return !q.Paused && q.Stages[Scheduled]+q.Stages[Inbox]+q.Stages[Running]+q.Stages[Suspended]+q.Stages[Paused] > 0
}

// idle reports whether the record can be deleted.
func (q *VQueue) idle() bool { return !q.Paused && q.Stages == [stages]uint64{} }

// Averages are moving averages of the durations of a queue's invocations.
type Averages struct {
	Queue      Average // from when it was runnable until its first start
	Inbox      Average // in the inbox, each time
	Run        Average // running, each time
	Suspension Average
	EndToEnd   Average // from when it was runnable until its end
	Rules      Average // in the inbox because of concurrency limits
	Throttling Average // in the inbox because of rates
	Lock       Average // in the inbox because of the key
}

// Average is an exponentially weighted moving average of durations, with a weight of 1/8
// for the newest. The zero Average has no samples. It is an integer, so that all replicas
// agree.
type Average int64

// Micros returns the average in microseconds, and whether there is one.
func (a Average) Micros() (micros int64, known bool) { return int64(a) - 1, a > 0 }

// add adds a sample in milliseconds.
func (a *Average) add(millis int64) {
	sample := min(max(millis, 0), maxSample) * 1000
	if *a == 0 {
		*a = Average(sample + 1)
		return
	}
	*a += Average((sample + 1 - int64(*a)) / 8)
}

// maxSample, a thousand years, prevents overflow of sums of microseconds.
const maxSample = 1000 * 366 * 86_400_000
