package partition

import (
	"context"
	"fmt"

	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

// fsm adapts the pure machine to the Raft group: it decodes entries, applies their
// commands on one write batch, commits that with the applied index, and hands the
// effects to the leader.
type fsm struct {
	p       *Partition
	machine *machine.Machine
	tables  *store.Partition
	flush   func() (wait func(context.Context) error, err error)
	effects []machine.Effect // reused between batches
}

var _ raftgroup.StateMachine = (*fsm)(nil)

// Apply implements raftgroup.StateMachine. The result of an entry is a
// []machine.Outcome, one per command.
func (f *fsm) Apply(entries []raftgroup.Entry) ([]any, error) {
	txn := f.tables.Begin()
	results := make([]any, len(entries))
	commands := 0
	f.effects = f.effects[:0]
	for i := range entries {
		outcomes, err := f.entry(txn, &entries[i])
		if err != nil {
			return nil, fmt.Errorf("apply entry %d: %w", entries[i].Index, err)
		}
		results[i] = outcomes
		commands += len(outcomes)
	}
	last := entries[len(entries)-1]
	if err := txn.Commit(last.Index, last.Term); err != nil {
		return nil, fmt.Errorf("commit entry %d: %w", last.Index, err)
	}
	f.p.commands.Add(uint64(commands))
	if lead := f.p.lead.Load(); lead != nil {
		lead.handle(f.effects)
	}
	clear(f.effects)
	return results, nil
}

func (f *fsm) entry(txn *store.Txn, e *raftgroup.Entry) ([]machine.Outcome, error) {
	header, commands, err := codec.Decode(e.Data)
	if err != nil {
		return nil, err
	}
	outcomes := make([]machine.Outcome, len(commands))
	for i, c := range commands {
		outcomes[i], f.effects, err = f.machine.Apply(txn, header, c, f.effects)
		if err != nil {
			return nil, fmt.Errorf("command %d (%T): %w", i, c, err)
		}
		if announced, ok := c.(*machine.Lead); ok && outcomes[i].Code == machine.OK {
			f.p.enter(announced.Epoch)
			f.effects = f.effects[:0] // what an older epoch's leader would have done
		}
	}
	return outcomes, nil
}

// Applied implements raftgroup.StateMachine.
func (f *fsm) Applied() raftgroup.Position { return position(f.tables.Applied()) }

// Flush implements raftgroup.StateMachine. It makes all partitions of the node
// durable, since they share a database.
func (f *fsm) Flush() (wait func(context.Context) error, err error) { return f.flush() }

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
	return importer{i}, nil
}

type exporter struct{ *store.Export }

// Applied implements raftgroup.Exporter.
func (e exporter) Applied() raftgroup.Position { return position(e.Export.Applied()) }

type importer struct{ *store.Import }

// Commit implements raftgroup.Importer.
func (i importer) Commit(at raftgroup.Position) error {
	return i.Import.Commit(context.Background(), at.Index, at.Term)
}

func position(index, term uint64) raftgroup.Position {
	return raftgroup.Position{Index: index, Term: term}
}
