// Package attempts contains the interfaces between the leader of a partition and the
// invoker, so that neither depends on the other. The invoker implements [Session]; the
// partition's leader implements [Partition].
package attempts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"platform/internal/ids"
	"platform/internal/limits"
	"platform/partition/journal"
	"platform/partition/machine"
)

// ErrGone means that an invocation is not Invoked with the requested attempt number.
var ErrGone = errors.New("the invocation no longer has this attempt")

// TooLargeError means that a journal is larger than the caller of Load accepts.
type TooLargeError struct{ Size int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the journal has %d bytes, more than there is memory for", e.Size)
}

// Partition is what attempts need from the partition whose leader they work for.
type Partition interface {
	// Load reads what an attempt replays, consistent at one log index: the record,
	// every journal entry, and as many bytes of the object's state as stateLimit returns
	// for the record (0: no state). It returns ErrGone if the invocation is no longer
	// Invoked with that attempt number, a *TooLargeError if the journal has more than most
	// bytes, and errors of stateLimit.
	Load(id ids.Invocation, attempt uint64, most int, stateLimit func(*machine.Invocation) (int, error)) (*Replay, error)

	// State reads only the object's state, for a first attempt whose journal came
	// with the effect.
	State(o machine.Object, limit int) (entries []machine.StateEntry, partial bool, err error)

	// ValueSize returns the length of a value of an object's state, 0 if there is none.
	ValueSize(o machine.Object, key []byte) (int, error)
	// StateSizes calls visit for the keys of an object's state with the lengths of their
	// values. The key is valid during the call only.
	StateSizes(o machine.Object, visit func(key []byte, size int)) error

	// Propose submits progress of an attempt. Submissions are applied in the order
	// of the calls. done is called once, on a goroutine of the partition, when the
	// progress was applied or failed; it must not block. An error means that the
	// outcome is unknown or that leadership was lost: the attempt must stop.
	Propose(p *machine.Progress, done func(machine.Outcome, error))

	// Confirm returns nil once this node is confirmed as the partition's leader. On an
	// error leadership was lost or could not be confirmed, and the session is closed.
	Confirm(ctx context.Context) error
}

// Session runs the attempts of one partition during one leadership. Only Close blocks. All
// methods are safe for concurrent use.
type Session interface {
	// Run starts an attempt as soon as a slot is free. A known attempt is not started
	// again; one with a newer number replaces it.
	Run(*machine.Run)
	// Notify passes a notification to the attempt that it names.
	Notify(*machine.Notify)
	// Yield ends the attempts of an invocation that is about to be paused.
	Yield(*machine.Yield)
	// Hasten ends the backoff of an invocation.
	Hasten(*machine.Hasten)
	// StateReplaced says that an operator's replacement of the state of an object was applied.
	StateReplaced(machine.Object)
	// Settle waits until the outcome of the last step of an attempt is known, if one is being
	// stored, and reports whether it did.
	Settle(ctx context.Context, id ids.Invocation) bool
	// Abort aborts the attempt of an invocation that has ended.
	Abort(*machine.Abort)
	// Close aborts all attempts and returns when none of them proposes anything.
	Close()
}

// Replay is the input of an attempt.
type Replay struct {
	Invocation *machine.Invocation
	Entries    []journal.Entry
	State      []machine.StateEntry
	Partial    bool  // State is incomplete
	ReadAt     int64 // partition time in milliseconds, as the times of the record; 0 if it was not read from the tables
}

// Size returns what the journal and the state count for the memory of the attempt, in bytes.
func (r *Replay) Size() (n int) {
	for i := range r.Entries {
		n += limits.JournalEntry(len(r.Entries[i].Payload))
	}
	return n + r.StateSize()
}

// StateSize returns what the state counts for its limit.
func (r *Replay) StateSize() (n int) {
	for i := range r.State {
		n += limits.StateEntry(len(r.State[i].Key), len(r.State[i].Value))
	}
	return n
}

// Status is what the leader knows about an invocation's attempts. It is not stored.
type Status struct {
	InFlight    bool // an attempt is open
	RetryCount  int  // failed attempts since the invocation was admitted or resumed
	Unreported  int  // failed attempts that the invocation's record does not count yet
	LastStartAt time.Time
	NextRetryAt time.Time               // zero unless it is backing off
	LastFailure *machine.AttemptFailure // nil: no attempt failed
	// LastFailureAt is when the attempt of LastFailure ended; zero if there is none, and from
	// nodes of earlier releases.
	LastFailureAt time.Time
	Awaiting      *journal.Await // nil: not reported by the handler
	// NoResponseSince is when the request of the open attempt was made, if the endpoint
	// has sent no response headers for the invoker's NoResponseWarning; else zero.
	NoResponseSince time.Time
	// ActiveAt is when something was last sent to or received from the endpoint of the open
	// attempt. SuspendAt is when it is asked to suspend, and AbortAt when it is aborted, unless the
	// endpoint sends something; zero if that is not planned, and from nodes of earlier releases.
	ActiveAt, SuspendAt, AbortAt time.Time
	// ThrottledSince is from when a bound of the node delays the invocation: of the starts of attempts,
	// or while one is open, of its journal commands. Zero if none does, and from nodes of earlier releases.
	ThrottledSince time.Time
	Deployment     ids.Deployment // of the last attempt
	Protocol       uint8
	Server         string // the endpoint's name for itself; empty if it did not send one
}

// FailedAt returns when the last failed attempt ended, or its start if only that is known.
func (s *Status) FailedAt() time.Time {
	if s.LastFailureAt.IsZero() {
		return s.LastStartAt
	}
	return s.LastFailureAt
}

// Started returns the number of attempts that have started since the invocation was
// admitted or resumed, including the open one.
func (s *Status) Started() int {
	if s.InFlight {
		return s.RetryCount + 1
	}
	return s.RetryCount
}
