package fabric

import (
	"context"
	"iter"
	"time"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Each method asks the local replica first, if that leads, which costs nothing more
// than asking it directly.

// Invoke implements Replica.
func (h *Handle) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	if p := h.leading(); p != nil {
		if o, err := p.Invoke(ctx, inv); err == nil || !elsewhere(err) {
			return o, err
		}
	}
	return seek(ctx, h, func(r Replica) (machine.Outcome, error) { return r.Invoke(ctx, inv) })
}

// called is what Call returns.
type called struct {
	ending  partition.Ending
	outcome machine.Outcome
}

// Call implements Replica.
func (h *Handle) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	var waited time.Duration
	if p := h.leading(); p != nil {
		begin := time.Now()
		e, o, err := p.Call(ctx, inv)
		waited = time.Since(begin)
		if err == nil || !elsewhere(err) {
			return e, o, markHeld(err, waited, heldTime)
		}
	}
	c, err := seek(ctx, h, func(r Replica) (c called, err error) {
		c.ending, c.outcome, err = r.Call(ctx, inv)
		return c, err
	})
	return c.ending, c.outcome, markHeld(err, waited, heldTime)
}

// Await implements Replica.
func (h *Handle) Await(ctx context.Context, id ids.Invocation) (partition.Ending, error) {
	var waited time.Duration
	if p := h.leading(); p != nil {
		begin := time.Now()
		e, err := p.Await(ctx, id)
		waited = time.Since(begin)
		if err == nil || !elsewhere(err) {
			return e, markHeld(err, waited, heldTime)
		}
	}
	e, err := seek(ctx, h, func(r Replica) (partition.Ending, error) { return r.Await(ctx, id) })
	return e, markHeld(err, waited, heldTime)
}

// Operate implements Replica.
func (h *Handle) Operate(ctx context.Context, c machine.Command) (machine.Outcome, error) {
	if p := h.leading(); p != nil {
		if o, err := p.Operate(ctx, c); err == nil || !elsewhere(err) {
			return o, err
		}
	}
	return seek(ctx, h, func(r Replica) (machine.Outcome, error) { return r.Operate(ctx, c) })
}

// Deliver implements Replica.
func (h *Handle) Deliver(ctx context.Context, d *machine.Deliver) error {
	if p := h.leading(); p != nil {
		if err := p.Deliver(ctx, d); err == nil || !elsewhere(err) {
			return err
		}
	}
	_, err := seek(ctx, h, func(r Replica) (struct{}, error) { return struct{}{}, r.Deliver(ctx, d) })
	return err
}

// Find implements Replica.
func (h *Handle) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	if p := h.leading(); p != nil {
		if inv, err := p.Find(ctx, id); err == nil || !elsewhere(err) {
			return inv, err
		}
	}
	return seek(ctx, h, func(r Replica) (*machine.Invocation, error) { return r.Find(ctx, id) })
}

// inspection is what Inspect returns.
type inspection struct {
	record  partition.Record
	entries []journal.Entry
}

// Inspect implements Replica.
func (h *Handle) Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error) {
	i, err := seekToRead(ctx, h, func(r Replica) (i inspection, err error) {
		i.record, i.entries, err = r.Inspect(ctx, id, withJournal)
		return i, err
	})
	return i.record, i.entries, err
}

// contents is what State returns.
type contents struct {
	entries  []machine.StateEntry
	complete bool
}

// State implements Replica.
func (h *Handle) State(ctx context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	c, err := seek(ctx, h, func(r Replica) (c contents, err error) {
		c.entries, c.complete, err = r.State(ctx, o, limit)
		return c, err
	})
	return c.entries, c.complete, err
}

// Records implements Replica. It moves on to another replica only as long as none has
// told of a record.
func (h *Handle) Records(ctx context.Context, completed bool) iter.Seq2[partition.Record, error] {
	return func(yield func(partition.Record, error) bool) {
		begun := false
		_, err := seekToRead(ctx, h, func(r Replica) (struct{}, error) {
			for rec, err := range r.Records(ctx, completed) {
				if err != nil && !begun {
					return struct{}{}, err
				}
				begun = true
				if !yield(rec, err) || err != nil {
					break
				}
			}
			return struct{}{}, nil
		})
		if err != nil {
			yield(partition.Record{}, err)
		}
	}
}
