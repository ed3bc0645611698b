package fabric

import (
	"errors"
	"time"
)

// acceptedAfter is how long a node must have kept a request for the request to count as
// accepted by a leader. It exceeds the time for which a newly elected replica queues
// requests before it rejects them, and the lease of a leader that has lost its quorum.
const acceptedAfter = 2 * time.Second

// acceptedError is the error of a request that a leader had accepted before it failed.
type acceptedError struct{ error }

func (e acceptedError) Unwrap() error { return e.error }

// WasAccepted reports whether a leader had accepted the request before it failed with err.
// The time without a leader then began with that failure, not with the request.
func WasAccepted(err error) bool {
	_, accepted := errors.AsType[acceptedError](err)
	return accepted
}

// markAccepted wraps the error of a request that a leader kept for at least threshold.
func markAccepted(err error, held, threshold time.Duration) error {
	if err == nil || held < threshold {
		return err
	}
	return acceptedError{err}
}

// interruptedError is the error of a request that may have been waiting on a leader before:
// the request was sent, and there was no response.
type interruptedError struct{ error }

func (e interruptedError) Unwrap() error { return e.error }

// WasInterrupted reports whether an earlier leader may have known what the request is about,
// although err says that the last one does not. Its result may have expired in between.
func WasInterrupted(err error) bool {
	_, interrupted := errors.AsType[interruptedError](err)
	return interrupted
}
