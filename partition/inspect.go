package partition

import (
	"context"
	"fmt"

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
