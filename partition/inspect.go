package partition

import (
	"context"
	"fmt"
	"iter"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Records yields the records of the partition as this replica has them, those not
// completed first. They are the caller's to keep.
func (p *Partition) Records(_ context.Context, completed bool) iter.Seq2[*machine.Invocation, error] {
	return func(yield func(*machine.Invocation, error) bool) {
		if _, err := p.leader(); err != nil {
			yield(nil, err)
			return
		}
		view := p.tables.View()
		defer view.Close()
		for inv, err := range view.Live() {
			if !yield(inv, err) || err != nil {
				return
			}
		}
		if !completed {
			return
		}
		for inv, err := range view.Done() {
			if !yield(inv, err) || err != nil {
				return
			}
		}
	}
}

// Inspect reads an invocation and, if asked for, its journal; ErrNotFound if there
// is none.
func (p *Partition) Inspect(_ context.Context, id ids.Invocation, withJournal bool) (*machine.Invocation, []journal.Entry, error) {
	if _, err := p.leader(); err != nil {
		return nil, nil, err
	}
	view := p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(id)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", id, err)
	}
	if inv == nil {
		return nil, nil, ErrNotFound
	}
	if !withJournal {
		return inv, nil, nil
	}
	entries, err := view.Journal(id, inv.Length)
	return inv, entries, err
}
