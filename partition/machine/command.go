package machine

import (
	"bytes"
	"cmp"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
)

// Header is the part of a log entry that is common to its commands.
type Header struct {
	Epoch uint64 // leader epoch of the proposer; older ones are refused
	Time  int64  // proposer's clock, milliseconds since 1970; partition time is the largest value seen
	// Level is the feature level at which the entry was written. Use Machine.level, which
	// never decreases, instead.
	Level feature.Level
	// Command is the position of the command within its log entry. It is not encoded: the
	// caller of Apply counts.
	Command int
}

// Command is a log command: one of the types below.
type Command interface{ command() }

// Lead announces a new leader epoch, from which on entries of older epochs are refused. It
// is refused itself unless its epoch is newer than the current one.
type Lead struct {
	Epoch uint64
	Node  string
	// Flow means that flow control is enabled, and that the leader found this to be
	// possible.
	Flow bool
	// Recovered means that the replica has been recovered without data that others may know
	// of. Numbers that may have been used are then skipped; from feature level 4 on.
	Recovered bool
}

// Invoke creates an invocation, or finds the one that already has its ID. It is also a
// message between partitions, with a Sink for calls.
type Invoke struct {
	ID             ids.Invocation
	Request        uint64 // random for each request, unchanged by retries; 0: none
	Target         Target
	Input          []byte // payload of the Input entry
	Source         Source
	Sink           *Sink // where the result goes; nil for ingress and sends
	IdempotencyKey *string
	LimitKey       string
	Trace          Trace
	StartAt        int64 // 0: now
	// Delay is the time from the proposal to the start, in milliseconds; 0: StartAt
	// applies. The leader converts it to StartAt before proposing, so that only its own
	// clock matters.
	Delay         int64
	Retention     Retention
	ServerVersion string
	Priority      uint8 // 0 to flowcontrol.Priorities-1; used only with a scope
	// Fresh means that no invocation has the ID, so that it need not be looked up; from feature
	// level 4 on. The ingress sets it if it has just generated the ID at random. The log contains
	// it if the leader has proved it by means of Since.
	Fresh bool
	// Since is a moment that was read before the ID was first sent to the leader, zero if there is
	// none. Requests to the leader contain it, the log does not.
	Since Moment
}

// Moment is a point in the sequence of invocations that one leadership proposes.
type Moment struct {
	Leadership uint64 // random; 0: none
	Number     uint64
}

// Progress is what an attempt achieved, in order. All steps are refused if the attempt is
// not the invocation's current one.
type Progress struct {
	ID      ids.Invocation
	Attempt uint64
	Pin     Pin
	Steps   []Step
	Errors  uint32 // failed attempts since the previous progress, as far as known
	// Failed replaces the counts of the record, unless it is zero; from feature level 4 on. They
	// include Errors.
	Failed FailedAttempts
}

// StepKind determines which fields of a Step are used.
type StepKind uint8

// The kinds of steps.
const (
	StepCommand       StepKind = iota // Type, Payload, Callee for calls: append a journal command
	StepRunCompletion                 // Payload: append the RunCompletion notification, unless one is there
	StepSuspend                       // Await: suspend until it is over
	StepEnd                           // end with the last Output
	StepPause                         // Failure: pause until an operator resumes
	StepFail                          // Failure: end with this failure
	StepYield                         // Failure, if any: pause as requested by an operator, or start a new attempt if that was withdrawn
	StepRetry                         // Failure: record that an attempt failed, which will be retried; from feature level 4 on
)

// Step is one achievement of an attempt.
type Step struct {
	Kind    StepKind
	Type    journal.Type
	Payload []byte
	// Completion is the completion ID of a StepRunCompletion.
	Completion uint32
	// Callee is the resolved target of a Call or OneWayCall.
	Callee  *Callee
	Await   *journal.Future
	Failure *AttemptFailure
	// Unretryable means that a StepPause follows from the failure alone, regardless of the
	// attempts that the retry policy still allows; from feature level 3 on.
	Unretryable bool
	// Attempts is the number of attempts that have failed before a StepPause, StepFail or
	// StepRetry, since the invocation was admitted; from feature level 4 on.
	Attempts uint32
	// Cause identifies the cause of Failure, so that failures with the same cause have the
	// same one; 0: unknown. From feature level 4 on.
	Cause uint64
}

// Callee is the resolved target of a call: what Invoke needs in addition to the payload of
// the call command.
type Callee struct {
	ID        ids.Invocation
	Type      target.Type
	Retention Retention
}

// FireTimers fires timers that are due. Each is ignored unless it is registered and due by
// partition time.
type FireTimers struct{ Timers []Timer }

// TimerKind determines what a timer does.
type TimerKind uint8

// The kinds of timers.
const (
	TimerSleep        TimerKind = iota // completes the Sleep with the timer's completion ID
	TimerStart                         // starts a scheduled invocation
	TimerPurge                         // purges a completed invocation
	TimerPurgeJournal                  // deletes the journal of a completed invocation
	TimerQueue                         // re-evaluates the counter named by the timer; ID is zero
	TimerAnswer                        // answers further waiters of a completed invocation
	TimerPromise                       // answers further waiters of the promise named by the timer; ID is zero
	TimerKill                          // kills an invocation whose caller was killed, or continues a kill
	TimerUpdate                        // applies a state update that holds its key
	TimerDropSleeps                    // deletes further sleeps of a completed invocation
	TimerRules                         // re-evaluates further counters after a change of the rules, from the named one on; ID is zero
)

// Timer is a registered timer; all its fields are its key.
type Timer struct {
	At         int64
	Kind       TimerKind
	ID         ids.Invocation
	Completion uint32 // of a sleep; otherwise the journal entry from which a kill continues, or up to which sleeps are deleted
	Name       string // of a counter (flowcontrol.CounterKey), empty for the first one, or of a promise; empty for the other kinds
}

// Compare orders timers by time and then by their other fields.
func (t Timer) Compare(other Timer) int {
	if t.At != other.At {
		return cmp.Compare(t.At, other.At)
	}
	return cmp.Or(cmp.Compare(t.Kind, other.Kind), bytes.Compare(t.ID[:], other.ID[:]),
		cmp.Compare(t.Completion, other.Completion), cmp.Compare(t.Name, other.Name))
}

// Deliver delivers messages of another partition's outbox, in order. A message whose
// sequence number is not above the last delivered one is dropped, and a gap before the first
// one is refused. Without messages it means that the sender has deleted all messages before
// FirstSeq; from feature level 4 on.
type Deliver struct {
	From     uint32 // sending partition
	FirstSeq uint64 // sequence number of the first message; the rest follow
	Messages []Message
}

// Acknowledge records that a partition has received all messages of this one up to a sequence number.
type Acknowledge struct {
	To   uint32
	Upto uint64
}

// Message travels between partitions: *Invoke, *Complete, *Signal, *Kill or *Attach.
type Message interface{ message() }

// Complete is the response to a call, an attach or a request for the output of an
// invocation.
type Complete struct {
	Sink   Sink
	Result journal.Result
	Void   bool // instead of Result: there is none yet
}

func (*Lead) command()        {}
func (*Invoke) command()      {}
func (*Progress) command()    {}
func (*FireTimers) command()  {}
func (*Deliver) command()     {}
func (*Acknowledge) command() {}

func (*Invoke) message()   {}
func (*Complete) message() {}
