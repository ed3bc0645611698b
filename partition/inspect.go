package partition

import (
	"context"
	"fmt"
	"iter"
	"math"

	"platform/internal/ids"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// Record is an invocation as stored, and what the leader knows of its attempts.
type Record struct {
	*machine.Invocation
	Attempts *attempts.Status // nil: no attempt is running or scheduled
}

func (p *Partition) record(inv *machine.Invocation) Record {
	if inv == nil || inv.Status != machine.Invoked {
		return Record{Invocation: inv}
	}
	attempts, known := p.cfg.Invoker.Status(inv.ID)
	if !known {
		return Record{Invocation: inv}
	}
	return Record{inv, &attempts}
}

// Records yields the records of the partition, incomplete ones first, as of one moment that
// is at most an election timeout before the call. The caller owns them; their times are
// wall-clock times.
func (p *Partition) Records(ctx context.Context, completed bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l, err := p.leader()
		if err != nil {
			yield(Record{}, err)
			return
		}
		view := p.tables.View()
		defer view.Close()
		if err := l.verify(ctx, leased); err != nil {
			yield(Record{}, err)
			return
		}
		offset := l.clock.Offset()
		for inv, err := range untilDone(ctx, view.Live()) {
			offset.invocation(inv)
			if !yield(p.record(inv), err) || err != nil {
				return
			}
		}
		if !completed {
			return
		}
		for inv, err := range untilDone(ctx, view.Done()) {
			offset.invocation(inv)
			if !yield(p.record(inv), err) || err != nil {
				return
			}
		}
	}
}

// untilDone yields the elements of seq until ctx ends, and then its error.
func untilDone[T any](ctx context.Context, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for element, err := range seq {
			if err == nil {
				err = ctx.Err()
			}
			if !yield(element, err) || err != nil {
				return
			}
		}
	}
}

// Inspect reads an invocation and optionally its journal; ErrNotFound if there is none. It
// is linearizable.
func (p *Partition) Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (Record, []journal.Entry, error) {
	var record Record
	var entries []journal.Entry
	l, err := p.read(ctx, linearizable, func(view *store.View) error {
		inv, err := view.Invocation(id)
		if err != nil {
			return fmt.Errorf("read %s: %w", id, err)
		}
		if inv != nil && withJournal {
			if entries, _, err = view.Journal(id, inv.Length, math.MaxInt); err != nil {
				return fmt.Errorf("read journal of %s: %w", id, err)
			}
		}
		record = p.record(inv)
		return nil
	})
	if err != nil {
		return Record{}, nil, err
	}
	if record.Invocation == nil {
		return Record{}, nil, ErrNotFound
	}
	offset := l.clock.Offset()
	offset.invocation(record.Invocation)
	for i := range entries {
		offset.entry(&entries[i])
	}
	return record, entries, nil
}
