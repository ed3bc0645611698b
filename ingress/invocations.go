package ingress

import (
	"context"
	"errors"
	"time"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Invocations is where requests go: the owning partition's leader, wherever it is.
// Its methods may be called concurrently. They retry by themselves while a retry
// is safe, until ctx ends or their own budget is spent; then they return
// ErrUnavailable. When ctx ends they only stop waiting.
//
// What is handed in belongs to the implementation from then on; what is handed out
// is shared and never modified.
type Invocations interface {
	// Send makes the invocation durable, or finds the one that has its id: then the
	// outcome's code is machine.Existing, also for a workflow that already ran.
	Send(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error)
	// Call makes the invocation durable, or finds the one that has its id, and waits
	// for the result. A workflow that already ran is ErrConflict. Send and Call can fail
	// with a *QueueFullError.
	Call(ctx context.Context, inv *machine.Invoke) (Answer, error)
	// Attach waits for the result of a known invocation; ErrNotFound.
	Attach(ctx context.Context, id ids.Invocation) (Answer, error)
	// Output is the result if there is one; ErrNotReady, with the target, or ErrNotFound.
	Output(ctx context.Context, id ids.Invocation) (Answer, error)
	// Signal makes a signal durable; ErrNotFound, ErrEnded.
	Signal(ctx context.Context, s *machine.Signal) error
}

// Answer is the result of an invocation.
type Answer struct {
	ID        ids.Invocation
	Target    machine.Target
	Result    journal.Result
	ExpiresAt time.Time // until when the result can be asked for; zero: not known
}

// QueueFullError says that an invocation was refused because too many wait already.
type QueueFullError struct {
	Rule string // pattern of the rule that says so
}

// Error names the rule.
func (e *QueueFullError) Error() string {
	return "as many invocations wait as the rule '" + e.Rule + "' allows (queue_limit)"
}

// What Invocations answers besides results.
var (
	// ErrNotFound says that no invocation has the id, or that its result is no
	// longer kept.
	ErrNotFound = errors.New("invocation not found")
	// ErrNotReady says that the invocation exists and has no result yet.
	ErrNotReady = errors.New("the invocation exists but has not completed yet")
	// ErrEnded says that the invocation has its result and takes no signals.
	ErrEnded = errors.New("the invocation has ended")
	// ErrConflict says that the workflow of a call already ran or is running.
	ErrConflict = errors.New("the workflow method was already invoked")
)

// ErrTooLarge says that an invocation is larger than what can be stored; it was not made.
var ErrTooLarge = errors.New("the request is larger than what can be stored")

// ErrUnavailable is wrapped by every UnavailableError, for errors.Is.
var ErrUnavailable = errors.New("unavailable")

// UnavailableError says that the owning partition could not be reached, or did not
// say in time what became of the request.
type UnavailableError struct {
	// SafeToRetry is true when the request certainly had no effect, or when sending
	// it again cannot have a second one.
	SafeToRetry bool
	// Err is why; nil for no more to say.
	Err error
}

// Error names the cause.
func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return ErrUnavailable.Error()
	}
	return ErrUnavailable.Error() + ": " + e.Err.Error()
}

// Unwrap returns ErrUnavailable and the cause.
func (e *UnavailableError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Err}
}
