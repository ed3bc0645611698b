package raftgroup

import (
	"context"

	"platform/internal/raftgroup/logstore"
)

// Position identifies one entry of a group's log.
type Position = logstore.Position

// Entry is one committed command entry. Data is what was proposed. It is never modified and
// its memory is never reused, so a state machine may retain parts of it.
type Entry struct {
	Index uint64
	Term  uint64
	Data  []byte
}

// StateMachine applies the log. Apply, Flush and Importer.Commit are called from one
// goroutine at a time; everything else may be called concurrently. There is at most one
// Importer at a time.
//
// Only command entries reach the state machine. Entries that Raft writes for itself
// (configurations, barriers) have indexes too, so the indexes that it sees grow but may
// have gaps.
type StateMachine interface {
	// Apply interprets committed entries in log order and returns one result per entry; a
	// Proposer[R] expects the result of an entry to be a []R with one element per command.
	// Entries at or below Applied are never passed in again. The position of the last entry
	// must become part of the state in the same write as its data, so that after a crash
	// the log is replayed from exactly there.
	//
	// An error means that this replica cannot continue: the group fails and stops, it never
	// skips an entry.
	Apply(entries []Entry) ([]any, error)

	// Applied returns the position of the last applied entry, the zero Position if nothing
	// was applied.
	Applied() Position

	// Flush starts making everything applied so far durable. It must not wait for that, because
	// nothing is applied meanwhile; the returned wait blocks until the state is durable.
	Flush() (wait func(context.Context) error, err error)

	// Export opens a consistent view of the whole state, for a follower that needs entries
	// that the log no longer has.
	Export() (Exporter, error)

	// Import prepares to replace the whole state by one that another replica exported. The
	// old state stays in use until Commit. It is called only when the previous Importer has
	// ended.
	Import() (Importer, error)
}

// Exporter is a consistent view of a state machine's state.
type Exporter interface {
	// Applied returns the position of the last entry that this view contains.
	Applied() Position
	// Each calls emit for all pairs in ascending order of key. The slices are valid during
	// the call only. It stops at the first error of emit.
	Each(ctx context.Context, emit func(key, value []byte) error) error
	// Close releases the view.
	Close() error
}

// Importer receives the state of another replica while the current state is in use. It ends
// with either Commit or Abort.
type Importer interface {
	// Put stores one pair; keys arrive in ascending order. The slices are valid during the
	// call only. It is called while the old state still applies entries.
	Put(key, value []byte) error
	// Commit durably and atomically switches to the received state; Applied is at
	// afterwards. If it fails the old state is still in use. ctx ends when the replica is
	// stopped. Then Commit need not wait until the state is durable: it may fail although the
	// next start finds the received state.
	Commit(ctx context.Context, at Position) error
	// Abort discards the received pairs.
	Abort() error
}
