package routing

import (
	"errors"

	"platform/internal/cluster/fabric"
	"platform/internal/raftgroup"
)

// QueueFullError means that an invocation was rejected because its queue is full.
type QueueFullError struct {
	Rule string // pattern of the rule with the limit
}

// Error returns a message that names the rule.
func (e *QueueFullError) Error() string {
	return "as many invocations wait as the rule '" + e.Rule + "' allows (queue_limit)"
}

// Errors of requests for a result.
var (
	// ErrNotFound means that no invocation has the ID, or that its retention has ended.
	ErrNotFound = errors.New("invocation not found")
	// ErrNotReady means that the invocation exists but has no result yet.
	ErrNotReady = errors.New("the invocation exists but has not completed yet")
	// ErrEnded means that the invocation has completed and accepts no signals.
	ErrEnded = errors.New("the invocation has ended")
	// ErrSignalsFull means that the journal of the invocation has as many signals as it may.
	ErrSignalsFull = errors.New("the invocation accepts no more signals: those in its journal have 256 MiB, of which each counts at least 4 KiB")
	// ErrConflict means that the called workflow already ran or is running.
	ErrConflict = errors.New("the workflow was already invoked with this key")
)

// ErrTooLarge means that an invocation exceeds the maximum size; it was not created.
var ErrTooLarge = errors.New("the request is larger than what can be stored")

// UnavailableError means that the owning partition could not be reached, or did not
// report the outcome of the request in time.
type UnavailableError struct {
	// SafeToRetry is true if the request is known to have had no effect, or is
	// idempotent.
	SafeToRetry bool
	// Err is the cause. It may be nil.
	Err error
}

// Error returns a message that names the cause.
func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return "unavailable"
	}
	return "unavailable: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// clientError has a message for clients. The wrapped error, with addresses and network
// details, is for logs.
type clientError struct {
	text string
	err  error
}

func (e *clientError) Error() string { return e.text }

func (e *clientError) Unwrap() error { return e.err }

// Explain replaces an error about an unavailable partition by one for clients.
func Explain(err error) error {
	if unserved, ok := errors.AsType[*fabric.UnservedError](err); ok {
		return unserved
	}
	switch {
	case errors.Is(err, raftgroup.ErrOverloaded): // names the exhausted resource
	case errors.Is(err, raftgroup.ErrUnknownOutcome):
		return &clientError{"its leader failed before it responded, and no other leader has responded since", err}
	case raftgroup.Definite(err):
		return &clientError{"this node finds no leader for it (see GET /cluster-health of the admin API)", err}
	}
	return err
}
