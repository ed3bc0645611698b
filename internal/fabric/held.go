package fabric

import (
	"errors"
	"time"
)

// heldTime is how long a node must have had a request for the request to count as
// accepted by a leader. It is longer than a replica that has just won an election lets
// requests wait before it refuses them, and than a leader without a quorum keeps its
// lease.
const heldTime = 2 * time.Second

// heldError is the failure of a request that a leader held before it went away.
type heldError struct{ error }

func (e heldError) Unwrap() error { return e.error }

// WasHeld reports whether a leader had accepted the request and kept it for a while
// before it failed with err. The time without a leader began with that failure, not
// with the request.
func WasHeld(err error) bool {
	_, held := errors.AsType[heldError](err)
	return held
}

// markHeld marks the failure of a request that a leader had for d, if that is at least
// least.
func markHeld(err error, d, least time.Duration) error {
	if err == nil || d < least {
		return err
	}
	return heldError{err}
}
