package routing

import (
	"errors"

	"platform/internal/raftgroup"
)

// QueueFullError means that an invocation was refused because its queue is full.
type QueueFullError struct {
	Rule string // pattern of the rule that says so
}

// Error names the rule.
func (e *QueueFullError) Error() string {
	return "as many invocations wait as the rule '" + e.Rule + "' allows (queue_limit)"
}

// The reasons why there is no result.
var (
	// ErrNotFound means that no invocation has the id, or that its result is no
	// longer kept.
	ErrNotFound = errors.New("invocation not found")
	// ErrNotReady means that the invocation exists and has no result yet.
	ErrNotReady = errors.New("the invocation exists but has not completed yet")
	// ErrEnded means that the invocation has completed and accepts no signals.
	ErrEnded = errors.New("the invocation has ended")
	// ErrConflict means that the workflow of a call already ran or is running.
	ErrConflict = errors.New("the workflow method was already invoked")
)

// ErrTooLarge means that an invocation is larger than what can be stored; it was not created.
var ErrTooLarge = errors.New("the request is larger than what can be stored")

// ErrUnavailable is wrapped by every UnavailableError, for errors.Is.
var ErrUnavailable = errors.New("unavailable")

// UnavailableError means that the owning partition could not be reached, or did not
// report the outcome of the request in time.
type UnavailableError struct {
	// SafeToRetry is true if the request certainly had no effect, or if repeating it
	// cannot have a second one.
	SafeToRetry bool
	// Err is the cause; may be nil.
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

// wordedError is an error in words for whoever sent a request. What it wraps names
// addresses and what the network said about them, which is for logs.
type wordedError struct {
	text string
	err  error
}

func (e *wordedError) Error() string { return e.text }

func (e *wordedError) Unwrap() error { return e.err }

// Explain says why a partition was not to be had.
func Explain(err error) error {
	switch {
	case errors.Is(err, raftgroup.ErrOverloaded): // says what there is too much of
	case errors.Is(err, raftgroup.ErrUnknownOutcome):
		return &wordedError{"its leader went away before it answered, and no other one has", err}
	case raftgroup.Definite(err):
		return &wordedError{"this node finds no leader of it (GET /cluster-health of the admin API tells what is missing)", err}
	}
	return err
}
