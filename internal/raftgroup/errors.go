package raftgroup

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// What can become of a proposal. ErrNotLeader, ErrOverloaded and ErrStopped are
// definite: the command was not proposed and may be proposed again anywhere. ErrTooLarge
// is final.
// After ErrUnknownOutcome it may or may not take effect, now or later.
var (
	// ErrNotLeader says that this replica does not lead (any more, or is handing
	// over), so nothing was proposed.
	ErrNotLeader = errors.New("not the leader of the group")
	// ErrOverloaded says that too many proposals wait; nothing was proposed.
	ErrOverloaded = errors.New("too many proposals waiting")
	// ErrStopped says that the group or proposer was stopped before the proposal.
	ErrStopped = errors.New("group stopped")
	// ErrTooLarge says that a command or entry is larger than a log entry may be; nothing
	// was proposed, and proposing it again is pointless. See internal/limits.
	ErrTooLarge = errors.New("too large for a log entry")
	// ErrUnknownOutcome says that the proposal left for the log and nobody knows
	// whether it will be committed. Commands carry a stable id so that asking
	// again is safe.
	ErrUnknownOutcome = errors.New("outcome of proposal unknown")
)

// Why a group does not start or go on.
var (
	// ErrFailed says that the state machine refused an entry. The replica has
	// stopped applying and must be opened again.
	ErrFailed = errors.New("state machine failed")
	// ErrQuarantined says that the replica's data is damaged, incomplete or cannot
	// be interpreted, so that going on would serve wrong data or break promises. A
	// state machine that returns it from Apply quarantines its replica. The replica
	// must be rebuilt from others, or be repaired by an operator.
	ErrQuarantined = errors.New("replica quarantined")
	// ErrNewerFormat says that data was written by a newer version of the server. With
	// ErrQuarantined it means a quarantine without a mark: a start of the newer
	// version ends it.
	ErrNewerFormat = errors.New("written by a newer version of the server")
	// ErrStateBehindSnapshot says that the state misses entries that the log no
	// longer has. The state must be restored from another replica.
	ErrStateBehindSnapshot = errors.New("state is behind the snapshot, restore needed")
	// ErrLeaving says that removing the replica's data was begun and has to be
	// finished first: LogDB.BeginDestroy.
	ErrLeaving = errors.New("data of the replica is being removed")
	// ErrCorrupt says that a checksum on disk or on the wire did not match.
	ErrCorrupt = errors.New("checksum mismatch")
)

// Definite reports whether err, returned for a proposal, guarantees that the
// command was not and will not be applied, and that it may be proposed again. That
// excludes ErrTooLarge.
func Definite(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, ErrOverloaded) || errors.Is(err, ErrStopped)
}

// proposalError sorts the error of a raft future into definite and unknown.
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
