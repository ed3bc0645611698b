package partition

import (
	"context"
	"errors"
	"fmt"

	"platform/internal/failpoint"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

// fsm adapts the pure machine to the Raft group: it decodes entries, applies their commands
// in one write batch, commits that with the applied index, and passes the effects to the
// leader.
type fsm struct {
	p        *Partition
	machine  *machine.Machine
	tables   *store.Partition
	flush    func() (wait func(context.Context) error, err error)
	effects  []machine.Effect // reused between batches
	statuses statusRecorder

	digests []*machine.Digest // of the last applied entry
	epoch   uint64            // of that entry
}

var _ raftgroup.StateMachine = (*fsm)(nil)

// Bounds of one write batch. At startup the log may contain hundreds of entries that each
// wake a thousand invocations.
const (
	maxBatchRows  = 16 << 10
	maxBatchBytes = 16 << 20 // of entries and of their writes
)

// Apply implements raftgroup.StateMachine. The result of an entry is a []machine.Outcome,
// one per command.
func (f *fsm) Apply(entries []raftgroup.Entry) ([]any, error) {
	results := make([]any, 0, len(entries))
	for len(results) < len(entries) {
		var err error
		if results, err = f.batch(entries[len(results):], results); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// batch applies the entries that fit into one write batch, and appends their results.
func (f *fsm) batch(entries []raftgroup.Entry, results []any) ([]any, error) {
	failpoint.Pause(failpoint.Application)
	txn := f.tables.Begin()
	commands, size := 0, 0
	f.effects = f.effects[:0]
	st := f.recordingStatuses(txn)
	var last *raftgroup.Entry
	for i := range entries {
		last = &entries[i]
		outcomes, err := f.entry(st, last)
		if err != nil {
			txn.Discard()
			return nil, entryError(last, err)
		}
		results = append(results, outcomes)
		commands += len(outcomes)
		f.p.digests.applied()
		size += len(last.Data)
		txn.Hold(len(last.Data))
		if txn.Bytes() > maxBatchBytes || txn.Rows() > maxBatchRows || len(f.digests) > 0 { // a digest needs exactly this state
			break
		}
	}
	if err := txn.Commit(last.Index, last.Term); err != nil {
		return nil, fmt.Errorf("commit entry %d: %w", last.Index, err)
	}
	for _, c := range f.digests {
		f.p.digests.apply(f.epoch, c)
	}
	f.p.commands.Add(uint64(commands))
	f.p.logBytes.Add(uint64(size))
	failpoint.Pause(failpoint.Effects)
	if lead := f.p.role.leadership(); lead != nil {
		lead.handle(f.effects)
		lead.logStatuses(f.statuses.changes)
	}
	clear(f.effects)
	clear(f.statuses.changes)
	return results, nil
}

// entryError classifies the reasons why an entry cannot be applied. An error that follows
// from the entry and the tables would recur at each start, so it quarantines this replica;
// a disk error fails the replica, and the next start replays the log.
func entryError(e *raftgroup.Entry, err error) error {
	switch {
	case errors.Is(err, codec.ErrVersion), errors.Is(err, codec.ErrUnknownCommand):
		err = fmt.Errorf("%w: %w", raftgroup.ErrNewerFormat, err)
	case store.Failed(err):
		return fmt.Errorf("apply entry %d: %w", e.Index, err)
	}
	return &raftgroup.EntryError{Index: e.Index, Term: e.Term, Size: len(e.Data), Err: err}
}

func (f *fsm) entry(st machine.State, e *raftgroup.Entry) ([]machine.Outcome, error) {
	header, commands, err := codec.Decode(e.Data)
	if err != nil {
		return nil, err
	}
	f.digests, f.epoch = f.digests[:0], header.Epoch
	outcomes := make([]machine.Outcome, len(commands))
	for i, c := range commands {
		header.Command = i
		outcomes[i], f.effects, err = f.machine.Apply(st, header, c, f.effects)
		if err != nil {
			return nil, fmt.Errorf("command %d (%T): %w", i, c, err)
		}
		if outcomes[i].Code != machine.OK {
			continue
		}
		switch c := c.(type) {
		case *machine.Lead:
			f.p.role.enter(c.Epoch, e.Term)
			f.effects = f.effects[:0] // these belong to the previous epoch
			f.statuses.changes = f.statuses.changes[:0]
		case *machine.Digest:
			f.digests = append(f.digests, c)
		}
	}
	return outcomes, nil
}

// Applied implements raftgroup.StateMachine.
func (f *fsm) Applied() raftgroup.Position { return position(f.tables.Applied()) }

// Flush implements raftgroup.StateMachine. It makes all partitions of the node
// durable, since they share a database.
func (f *fsm) Flush() (wait func(context.Context) error, err error) {
	if err := f.tables.Settle(); err != nil {
		return nil, fmt.Errorf("write the tables: %w", err)
	}
	return f.flush()
}

// Export implements raftgroup.StateMachine.
func (f *fsm) Export() (raftgroup.Exporter, error) {
	e, err := f.tables.Export()
	if err != nil {
		return nil, err
	}
	return exporter{e}, nil
}

// Import implements raftgroup.StateMachine.
func (f *fsm) Import() (raftgroup.Importer, error) {
	i, err := f.tables.Import()
	if err != nil {
		return nil, err
	}
	return importer{i, f.p}, nil
}

type exporter struct{ *store.Export }

// Applied implements raftgroup.Exporter.
func (e exporter) Applied() raftgroup.Position { return position(e.Export.Applied()) }

type importer struct {
	*store.Import
	p *Partition
}

// Commit implements raftgroup.Importer.
func (i importer) Commit(ctx context.Context, at raftgroup.Position) error {
	i.p.digests.replaced()
	i.p.role.follow()
	return i.Import.Commit(ctx, at.Index, at.Term)
}

func position(index, term uint64) raftgroup.Position {
	return raftgroup.Position{Index: index, Term: term}
}
