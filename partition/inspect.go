package partition

import (
	"context"
	"fmt"
	"iter"

	"platform/internal/ids"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Record is an invocation as it is stored, and what its leader knows of its attempts.
type Record struct {
	*machine.Invocation
	Attempts *attempts.Status // nil: none is under way or will be made again
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

// Records yields the records of the partition, those not completed first, as they were
// at one moment that is at most an election time-out before the call. They are the
// caller's to keep; their times are times of day.
func (p *Partition) Records(_ context.Context, completed bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l, err := p.leader()
		if err != nil {
			yield(Record{}, err)
			return
		}
		view := p.tables.View()
		defer view.Close()
		if err := l.holdsLease(); err != nil {
			yield(Record{}, err)
			return
		}
		shown := l.shown()
		for inv, err := range view.Live() {
			shown.invocation(inv)
			if !yield(p.record(inv), err) || err != nil {
				return
			}
		}
		if !completed {
			return
		}
		for inv, err := range view.Done() {
			shown.invocation(inv)
			if !yield(p.record(inv), err) || err != nil {
				return
			}
		}
	}
}

// Inspect reads an invocation and, if asked for, its journal; ErrNotFound if there
// is none. It is linearizable.
func (p *Partition) Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (Record, []journal.Entry, error) {
	l, err := p.leader()
	if err != nil {
		return Record{}, nil, err
	}
	view := p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(id)
	if err != nil {
		return Record{}, nil, fmt.Errorf("read %s: %w", id, err)
	}
	var entries []journal.Entry
	if inv != nil && withJournal {
		if entries, err = view.Journal(id, inv.Length); err != nil {
			return Record{}, nil, fmt.Errorf("read journal of %s: %w", id, err)
		}
	}
	record := p.record(inv)
	if err := l.confirm(ctx); err != nil {
		return Record{}, nil, err
	}
	if inv == nil {
		return Record{}, nil, ErrNotFound
	}
	shown := l.shown()
	shown.invocation(record.Invocation)
	for i := range entries {
		shown.entry(&entries[i])
	}
	return record, entries, nil
}
