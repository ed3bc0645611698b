package raftgroup

import "context"

// Position names one entry of a group's log.
type Position struct {
	Index uint64
	Term  uint64
}

// Entry is one committed command entry. Data is what was proposed; the state
// machine must not change it and must copy what it keeps after Apply returns.
type Entry struct {
	Index uint64
	Term  uint64
	Data  []byte
}

// StateMachine is what the log drives. Apply, Flush and Importer.Commit are called
// from one goroutine at a time; everything else may be called from any goroutine
// at any time. There is at most one Importer at a time.
//
// Only command entries reach the state machine. Entries that Raft writes for
// itself (configurations, barriers) have indexes too, so the indexes it sees grow
// but may have gaps.
type StateMachine interface {
	// Apply interprets committed entries in log order and returns one result per
	// entry; a Proposer[R] expects the result of an entry to be a []R with one
	// element per command. Entries at or below Applied are never handed in
	// again. The position of the last entry must become part of the state in the
	// same write as its data, so that after a crash the log is replayed from
	// exactly there.
	//
	// An error means that this replica cannot go on: the group fails and stops,
	// it never skips an entry.
	Apply(entries []Entry) ([]any, error)

	// Applied returns the position of the last applied entry, the zero Position
	// when nothing was applied.
	Applied() Position

	// Flush begins to make everything applied so far durable. It must be quick,
	// because nothing is applied meanwhile; the returned wait blocks until the
	// state is durable.
	Flush() (wait func(context.Context) error, err error)

	// Export opens a consistent view of the whole state for a follower that the
	// log cannot help any more.
	Export() (Exporter, error)

	// Import prepares to replace the whole state by one that another replica
	// exported. The old state stays in use until Commit.
	Import() (Importer, error)
}

// Exporter is a consistent view of a state machine's state.
type Exporter interface {
	// Applied is the position of the last entry this view contains.
	Applied() Position
	// Each calls emit for all pairs in ascending order of key. The slices are
	// valid during the call only. It stops with the first error of emit.
	Each(ctx context.Context, emit func(key, value []byte) error) error
	// Close gives the view up.
	Close() error
}

// Importer receives the state of another replica beside the state in use. It is
// ended by either Commit or Abort.
type Importer interface {
	// Put stores one pair; keys arrive in ascending order. The slices are valid
	// during the call only. It is called while the old state still applies
	// entries.
	Put(key, value []byte) error
	// Commit makes the received state durable and switches to it in one step;
	// Applied is at afterwards. When it fails the old state is still in use.
	Commit(at Position) error
	// Abort throws the received pairs away.
	Abort() error
}
