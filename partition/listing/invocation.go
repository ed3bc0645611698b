package listing

import (
	"platform/internal/ids"
	"platform/partition/machine"
)

// Status is the status of an invocation as shown to users.
type Status uint8

// The statuses.
const (
	Scheduled Status = iota + 1
	Pending
	Ready
	Running
	BackingOff
	Suspended
	Paused
	Completed
)

// Statuses is the number of statuses and the invalid one.
const Statuses = int(Completed) + 1

// statusNames are the names that users see.
var statusNames = [Statuses]string{"", "scheduled", "pending", "ready", "running", "backing-off", "suspended", "paused", "completed"}

func (s Status) String() string { return statusNames[s] }

// Live is what the leader knows of the attempts of an Invoked invocation.
type Live struct {
	Status  Status                  // Ready, Running or BackingOff
	Failure *machine.AttemptFailure // of the last attempt; nil if none failed
	At      int64                   // when it failed, milliseconds since 1970
}

// LiveFunc returns what the leader knows of the attempts of an Invoked invocation.
type LiveFunc func(ids.Invocation) Live

// StatusOf returns the status of an invocation; live is used only if it is Invoked.
func StatusOf(inv *machine.Invocation, live Live) Status {
	if inv.Status == machine.Invoked {
		return live.Status
	}
	return stored[inv.Status]
}

// stored maps stored statuses to those shown to users; Invoked ones depend on attempts.
var stored = [machine.Completed + 1]Status{
	machine.Scheduled: Scheduled, machine.Inboxed: Pending, machine.Suspended: Suspended, machine.Paused: Paused, machine.Completed: Completed,
}

// Result describes how an invocation ended.
type Result uint8

// The results.
const (
	NoResult Result = iota // it has not completed
	Success
	Failure
	Cancelled // it failed with code 409 after its cancellation was requested, or was cancelled before it started
	Killed
)

// Results is the number of results, including NoResult.
const Results = int(Killed) + 1

// resultNames are the names that users see.
var resultNames = [Results]string{"", "success", "failure", "cancelled", "killed"}

func (r Result) String() string { return resultNames[r] }

// resultOf returns how an invocation ended.
func resultOf(inv *machine.Invocation) Result {
	switch {
	case inv.Status != machine.Completed || inv.Result == nil:
		return NoResult
	case inv.Result.Failure == nil:
		return Success
	case !inv.Stopped():
		return Failure
	case inv.Killed && inv.Result.Failure.Message == machine.KilledMessage:
		return Killed
	}
	return Cancelled
}

// code is why an invocation failed, as a number and as a code of the error catalogue.
type code struct {
	number    uint32
	catalogue string
}

// failing is the current failure of an invocation.
type failing struct {
	code
	message string
	at      int64
}

// failureOf returns the failure of an invocation that ended with one, is paused after one or
// has a failed attempt; nil if there is none. A cancelled or killed invocation has one too.
func failureOf(inv *machine.Invocation, live Live) *failing {
	switch {
	case inv.Status == machine.Completed:
		if inv.Result == nil || inv.Result.Failure == nil {
			return nil
		}
		return &failing{code{inv.Result.Failure.Code, ""}, inv.Result.Failure.Message, inv.CompletedAt}
	case inv.Status == machine.Paused && inv.Failure != nil:
		return attemptFailing(inv.Failure, inv.ModifiedAt)
	case inv.Status == machine.Invoked && live.Failure != nil:
		return attemptFailing(live.Failure, live.At)
	}
	return nil
}

func attemptFailing(f *machine.AttemptFailure, at int64) *failing {
	return &failing{code{f.Code, f.ErrorCode}, f.Message, at}
}
