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

// Each method tries the local replica first if it leads, which adds no allocation to
// calling it directly.

// Invoke implements Replica.
func (h *Handle) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	if p := h.localLeader(); p != nil {
		if o, err := p.Invoke(ctx, inv); err == nil || !canRetryElsewhere(err) {
			return o, err
		}
	}
	return onLeader(ctx, h, func(r Replica) (machine.Outcome, error) { return r.Invoke(ctx, inv) })
}

// callResult is the result of Call.
type callResult struct {
	ending  partition.Ending
	outcome machine.Outcome
}

// Call implements Replica.
func (h *Handle) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	var waited time.Duration
	if p := h.localLeader(); p != nil {
		begin := time.Now()
		e, o, err := p.Call(ctx, inv)
		waited = time.Since(begin)
		if err == nil || !canRetryElsewhere(err) {
			return e, o, markAccepted(err, waited, acceptedAfter)
		}
	}
	c, err := onLeader(ctx, h, func(r Replica) (c callResult, err error) {
		c.ending, c.outcome, err = r.Call(ctx, inv)
		return c, err
	})
	return c.ending, c.outcome, markAccepted(err, waited, acceptedAfter)
}

// Await implements Replica.
func (h *Handle) Await(ctx context.Context, id ids.Invocation) (partition.Ending, error) {
	var waited time.Duration
	if p := h.localLeader(); p != nil {
		begin := time.Now()
		e, err := p.Await(ctx, id)
		waited = time.Since(begin)
		if err == nil || !canRetryElsewhere(err) {
			return e, markAccepted(err, waited, acceptedAfter)
		}
	}
	e, err := onLeader(ctx, h, func(r Replica) (partition.Ending, error) { return r.Await(ctx, id) })
	return e, markAccepted(err, waited, acceptedAfter)
}

// Operate implements Replica.
func (h *Handle) Operate(ctx context.Context, c machine.Operation) (machine.Outcome, error) {
	if p := h.localLeader(); p != nil {
		if o, err := p.Operate(ctx, c); err == nil || !canRetryElsewhere(err) {
			return o, err
		}
	}
	return onLeader(ctx, h, func(r Replica) (machine.Outcome, error) { return r.Operate(ctx, c) })
}

// Deliver implements Replica.
func (h *Handle) Deliver(ctx context.Context, d *machine.Deliver) error {
	if p := h.localLeader(); p != nil {
		if err := p.Deliver(ctx, d); err == nil || !canRetryElsewhere(err) {
			return err
		}
	}
	_, err := onLeaderWithin(ctx, h, deliverLookupTimeout, func(r Replica) (struct{}, error) { return struct{}{}, r.Deliver(ctx, d) })
	return err
}

// Ingest implements Replica.
func (h *Handle) Ingest(ctx context.Context, c *machine.Ingest) (machine.Outcome, error) {
	if p := h.localLeader(); p != nil {
		if o, err := p.Ingest(ctx, c); err == nil || !canRetryElsewhere(err) {
			return o, err
		}
	}
	return onLeader(ctx, h, func(r Replica) (machine.Outcome, error) { return r.Ingest(ctx, c) })
}

// Find implements Replica.
func (h *Handle) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	if p := h.localLeader(); p != nil {
		if inv, err := p.Find(ctx, id); err == nil || !canRetryElsewhere(err) {
			return inv, err
		}
	}
	return onLeader(ctx, h, func(r Replica) (*machine.Invocation, error) { return r.Find(ctx, id) })
}

// inspectResult is the result of Inspect.
type inspectResult struct {
	record  partition.Record
	entries []journal.Entry
}

// Inspect implements Replica.
func (h *Handle) Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error) {
	i, err := onLeader(ctx, h, func(r Replica) (i inspectResult, err error) {
		i.record, i.entries, err = r.Inspect(ctx, id, withJournal)
		return i, err
	})
	return i.record, i.entries, err
}

// stateResult is the result of State.
type stateResult struct {
	entries  []machine.StateEntry
	complete bool
}

// State implements Replica.
func (h *Handle) State(ctx context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	c, err := onLeader(ctx, h, func(r Replica) (c stateResult, err error) {
		c.entries, c.complete, err = r.State(ctx, o, limit)
		return c, err
	})
	return c.entries, c.complete, err
}

// Records implements Replica. It retries on another replica only before the first record
// has been yielded.
func (h *Handle) Records(ctx context.Context, completed bool) iter.Seq2[partition.Record, error] {
	return func(yield func(partition.Record, error) bool) {
		begun := false
		_, err := onLeader(ctx, h, func(r Replica) (struct{}, error) {
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
