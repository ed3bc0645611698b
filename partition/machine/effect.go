package machine

import (
	"platform/internal/ids"
	"platform/partition/journal"
)

// Effect is an action that the leader must take because a command was applied: one of the
// types below. Followers drop effects. A new leader derives pending work from the tables,
// so a lost effect costs time, never work; a repeated one is harmless.
type Effect interface{ effect() }

// Run starts an attempt of an admitted invocation.
type Run struct {
	// Invocation is a copy of the record, owned by the receiver.
	Invocation *Invocation
	// Input is the payload of journal entry 0 if that is the whole journal, so that a first
	// attempt need not read it; otherwise nil.
	Input []byte
}

// Notify passes a new notification to the running attempt.
type Notify struct {
	ID      ids.Invocation
	Attempt uint64
	Index   uint32 // index in the journal
	Entry   journal.Entry
}

// Abort aborts the attempt of an invocation that has ended, was paused, or has a newer
// attempt.
type Abort struct {
	ID      ids.Invocation
	Attempt uint64
}

// Yield requests the end of the attempts of an invocation that is to pause: the open one is
// asked to suspend, and no other follows.
type Yield struct {
	ID      ids.Invocation
	Attempt uint64
}

// Hasten starts the next attempt immediately if the invocation is backing off. Cancel says
// that it was cancelled: if the attempt that is open now fails, another one follows without
// delay and replays the cancel. Hasten withdraws a Yield.
type Hasten struct {
	ID      ids.Invocation
	Attempt uint64
	Cancel  bool
}

// Finish passes an invocation's result to waiting callers.
type Finish struct {
	ID        ids.Invocation
	Request   uint64 // of the Invoke that created it
	Target    Target
	Source    Source
	Trace     Trace
	Result    journal.Result
	Stopped   bool // see Invocation.Stopped
	ExpiresAt int64
	DueAt     int64 // when it was created or, if delayed, to start
	EndedAt   int64
}

// SetTimer registers a timer with the leader's timer queue. Timers are never removed there:
// one that is no longer registered in the tables is ignored when it fires.
type SetTimer struct{ Timer Timer }

// Send sends a message of the outbox to another partition.
type Send struct {
	To      uint32
	Seq     uint64
	Message Message
}

func (*Run) effect()      {}
func (*Notify) effect()   {}
func (*Abort) effect()    {}
func (*Yield) effect()    {}
func (*Hasten) effect()   {}
func (*Finish) effect()   {}
func (*SetTimer) effect() {}
func (*Send) effect()     {}

// Code classifies the outcome of a command.
type Code uint8

// The codes of outcomes.
const (
	OK       Code = iota
	Stale         // from an older leader epoch or attempt: nothing was changed
	Existing      // Invoke: the ID was known; Outcome describes the invocation
	Conflict      // call of a workflow that has already run
	Invalid       // the command breaks a rule (see check.go): nothing was changed

	// Refusals of operator commands; nothing was changed.
	NotFound     // no invocation has the ID
	Ended        // it has completed
	NotEnded     // it has not completed yet
	NotStarted   // it is scheduled or inboxed
	Running      // an attempt is running, so its deployment cannot be changed
	NotPinned    // it has no deployment yet
	Incompatible // the deployment does not speak the protocol version of the journal
	NoInput      // the journal is no longer kept
	Unsupported  // workflows cannot be restarted
	OutOfRange   // the journal has no entry with that index
	Unanswered   // a command to be copied has no completion yet

	// QueueFull refuses an Invoke, or the rest of an Ingest, because its vqueue is full; nothing was
	// changed by what it refuses.
	QueueFull

	// Gap refuses an Ingest because records before it are missing; no record was stored.
	Gap
	// Superseded refuses an Ingest of an earlier routing, and Forgotten one of an incarnation
	// that has ended; nothing was changed.
	Superseded
	Forgotten
	// DeadLettersFull refuses a SetAside for lack of room; nothing was changed.
	DeadLettersFull
	// TooLarge is how the leader refuses a Restart that would copy too much.
	TooLarge
	// SignalsFull refuses a Signal because the journal has as many as it may; nothing was
	// changed.
	SignalsFull
)

// Outcome is the result of a command for its proposer.
type Outcome struct {
	Code Code
	// Own says, for Existing, that the known invocation came from the same request, which
	// was retried.
	Own bool
	// For Existing: the known invocation's status and, when completed, result. For operator
	// commands: the status afterwards.
	Status    Status
	Result    *journal.Result
	ExpiresAt int64
	StartAt   int64
	// ID is, for an Invoke, the ID of the invocation if it differs from the requested one;
	// otherwise zero.
	ID ids.Invocation
	// Rule is, for QueueFull, the pattern of the rule that limits the vqueue.
	Rule string
	// Last is, for Ingest, the offset of the last stored record, NoOffset if there is none;
	// for PutPosition, the stored position.
	Last int64
}
