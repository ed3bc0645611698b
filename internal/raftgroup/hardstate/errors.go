package hardstate

import "errors"

// Reasons why a replica is not started.
var (
	// ErrQuarantined means that the replica's data is damaged, incomplete or cannot be
	// interpreted, so that continuing would serve wrong data or violate its term or vote. A
	// state machine that returns it from Apply quarantines its replica. The replica must be
	// rebuilt from others, or repaired by an operator.
	ErrQuarantined = errors.New("replica quarantined")
	// ErrNewerFormat means that data was written by a newer version of the server. With
	// ErrQuarantined it means a quarantine without a mark, which ends when the newer
	// version is started.
	ErrNewerFormat = errors.New("written by a newer version of the server")
	// ErrStateBehindSnapshot means that the state lacks entries that the log no longer has.
	// The state must be restored from another replica.
	ErrStateBehindSnapshot = errors.New("state is behind the snapshot, restore needed")
	// ErrLeaving means that the removal of the replica's data was started and has to be
	// finished first: logstore.DB.BeginDestroy.
	ErrLeaving = errors.New("data of the replica is being removed")
)
