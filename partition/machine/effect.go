package machine

import (
	"platform/internal/ids"
	"platform/partition/journal"
)

// Effect is something the leader must do because a command was applied: one of the
// types below. Followers drop effects. A new leader derives what is owed from the
// tables, so a lost effect costs time, never work; a repeated one does no harm.
type Effect interface{ effect() }

// Run asks for an attempt of an invocation that has been admitted.
type Run struct {
	// Invocation is a copy of the record, the receiver's to keep.
	Invocation *Invocation
	// Input is the payload of journal entry 0 when that is the whole journal, so
	// that a first attempt need not read it; otherwise nil.
	Input []byte
}

// Notify tells the running attempt of a new notification.
type Notify struct {
	ID      ids.Invocation
	Attempt uint64
	Index   uint32 // place in the journal
	Entry   journal.Entry
}

// Abort asks to cut the attempt of an invocation that has ended, was paused or
// whose attempt has been replaced.
type Abort struct {
	ID      ids.Invocation
	Attempt uint64
}

// Yield asks for the end of the attempts of an invocation that is to pause: the open one
// is asked to suspend, and no other follows.
type Yield struct {
	ID      ids.Invocation
	Attempt uint64
}

// Hasten asks for the next attempt at once if the invocation is backing off. Cancel
// says that it was cancelled: then an attempt that is open now and fails is followed by
// another one, without a delay, which replays the cancel. It takes back a Yield.
type Hasten struct {
	ID      ids.Invocation
	Attempt uint64
	Cancel  bool
}

// Finish tells waiting callers an invocation's result.
type Finish struct {
	ID        ids.Invocation
	Target    Target
	Result    journal.Result
	ExpiresAt int64
}

// SetTimer registers a timer with the leader's clock. Timers are never cancelled
// there: one that fires in vain is ignored when applied.
type SetTimer struct{ Timer Timer }

// Send asks to ship a message of the outbox to another partition.
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

// Code says how a command fared.
type Code uint8

// The codes of outcomes.
const (
	OK       Code = iota
	Stale         // from an older leader epoch or attempt: nothing was changed
	Existing      // Invoke: the id was known; Outcome tells of it
	Conflict      // Invoke of a workflow that already ran, by call
	Invalid       // the command breaks a rule (see check.go): nothing was changed

	// Refusals of what operators ask for; nothing was changed.
	NotFound     // no invocation has the id
	Ended        // it has completed
	NotEnded     // it has not completed yet
	NotStarted   // it is scheduled or inboxed
	Running      // it is being attempted, so its deployment cannot be changed
	NotPinned    // it has no deployment yet that could be changed
	Incompatible // the deployment does not speak the protocol version of the journal
	NoInput      // the journal is not kept any more
	Unsupported  // workflows cannot be restarted
	OutOfRange   // the journal has no entry with that index
	Unanswered   // a command to be copied has no answer yet

	// QueueFull refuses an Invoke of which one more may not wait: nothing was changed.
	QueueFull
)

// Outcome is what a command's proposer learns.
type Outcome struct {
	Code Code
	// Own says, for Existing, that the known invocation came from the same request,
	// which was repeated.
	Own bool
	// For Existing: the known invocation's status and, when completed, result. For
	// what operators ask for: the status afterwards.
	Status    Status
	Result    *journal.Result
	ExpiresAt int64
	StartAt   int64
	// ID is, for an Invoke, the id that the invocation has instead of the one that was
	// asked for; zero: it has that.
	ID ids.Invocation
	// Rule is, for QueueFull, the pattern of the rule that says so.
	Rule string
}
