package invoker

import (
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Partition is what attempts need from the partition whose leader they work for.
type Partition interface {
	// Load reads what an attempt replays, consistent at one log index: the record,
	// every journal entry, and the object's state up to stateLimit bytes (0: no
	// state). It returns ErrGone if the invocation is not Invoked with that attempt
	// number any more.
	Load(id ids.Invocation, attempt uint64, stateLimit int) (*Replay, error)

	// State reads only the object's state, for a first attempt whose journal came
	// with the effect.
	State(o machine.Object, limit int) (entries []machine.StateEntry, partial bool, err error)

	// Propose submits progress of an attempt. Submissions are applied in the order
	// of the calls. done is called once, on a goroutine of the partition, when the
	// progress was applied or failed; it must not block. An error means that the
	// outcome is unknown or that leadership was lost: the attempt must stop.
	Propose(p *machine.Progress, done func(machine.Outcome, error))
}

// Replay is what an attempt starts from.
type Replay struct {
	Invocation *machine.Invocation
	Entries    []journal.Entry
	State      []machine.StateEntry
	Partial    bool // State does not hold everything
}
