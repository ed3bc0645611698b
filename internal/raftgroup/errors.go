package raftgroup

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/hardstate"
)

// Errors of proposals. ErrNotLeader, ErrOverloaded and ErrStopped are definite: the command
// was not proposed and may be proposed again anywhere. ErrTooLarge is final. After
// ErrUnknownOutcome the command may or may not take effect, now or later.
var (
	// ErrNotLeader means that this replica does not lead, no longer leads, or is
	// transferring leadership; nothing was proposed.
	ErrNotLeader = errors.New("not the leader of the group")
	// ErrOverloaded means that too many proposals are waiting; nothing was proposed.
	ErrOverloaded = errors.New("too many proposals waiting")
	// ErrStopped means that the group or proposer was stopped before the proposal.
	ErrStopped = errors.New("group stopped")
	// ErrTooLarge means that a command or entry exceeds the maximum size of a log entry;
	// nothing was proposed, and a retry is pointless. See internal/limits.
	ErrTooLarge = errors.New("too large for a log entry")
	// ErrUnknownOutcome means that the proposal was sent to the log and may or may not be
	// committed. Commands have a stable ID so that a retry is safe.
	ErrUnknownOutcome = errors.New("outcome of proposal unknown")
)

// Reasons why a group does not start or continue.
var (
	// errFailed means that the state machine rejected an entry. The replica has stopped
	// applying and must be reopened.
	errFailed = errors.New("state machine failed")

	// What a start or a state machine finds in the data of a replica is described in package
	// hardstate.

	ErrQuarantined         = hardstate.ErrQuarantined
	ErrNewerFormat         = hardstate.ErrNewerFormat
	ErrStateBehindSnapshot = hardstate.ErrStateBehindSnapshot
	ErrLeaving             = hardstate.ErrLeaving
)

// Definite reports whether err, returned for a proposal, guarantees that the command was
// not and will not be applied, and that it may be proposed again. That excludes
// ErrTooLarge.
func Definite(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, ErrOverloaded) || errors.Is(err, ErrStopped)
}

// proposalError classifies the error of a raft future as definite or unknown.
func proposalError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", ErrOverloaded, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
}
