package partition

import (
	"context"
	"fmt"
	"iter"

	"platform/internal/ids"
	"platform/invoker"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Record is an invocation as it is stored, and what its leader knows of its attempts.
type Record struct {
	*machine.Invocation
	Attempts *invoker.AttemptStatus // nil: none is under way or will be made again
}

func (p *Partition) record(inv *machine.Invocation) Record {
	if inv == nil || inv.Status != machine.Invoked {
		return Record{Invocation: inv}
	}
	attempts, known := p.invoker.Status(inv.ID)
	if !known {
		return Record{Invocation: inv}
	}
	return Record{inv, &attempts}
}

// Records yields the records of the partition as this replica has them, those not
// completed first. They are the caller's to keep.
func (p *Partition) Records(_ context.Context, completed bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if _, err := p.leader(); err != nil {
			yield(Record{}, err)
			return
		}
		view := p.tables.View()
		defer view.Close()
		for inv, err := range view.Live() {
			if !yield(p.record(inv), err) || err != nil {
				return
			}
		}
		if !completed {
			return
		}
		for inv, err := range view.Done() {
			if !yield(p.record(inv), err) || err != nil {
				return
			}
		}
	}
}

// Inspect reads an invocation and, if asked for, its journal; ErrNotFound if there
// is none.
func (p *Partition) Inspect(_ context.Context, id ids.Invocation, withJournal bool) (Record, []journal.Entry, error) {
	if _, err := p.leader(); err != nil {
		return Record{}, nil, err
	}
	view := p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(id)
	if err != nil {
		return Record{}, nil, fmt.Errorf("read %s: %w", id, err)
	}
	if inv == nil {
		return Record{}, nil, ErrNotFound
	}
	if !withJournal {
		return p.record(inv), nil, nil
	}
	entries, err := view.Journal(id, inv.Length)
	return p.record(inv), entries, err
}
