package node

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"platform/ingress"
	"platform/internal/fabric"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
)

// failoverBudget is how long a request is retried without any leader accepting it. Each
// failover has a budget of its own, and takes a fraction of it.
const failoverBudget = 7 * time.Second

// The pause between two tries doubles from firstRetry to lastRetry. Up to half of it is
// left out at random.
const (
	firstRetry = 2 * time.Millisecond
	lastRetry  = 200 * time.Millisecond
)

// router takes requests to the partitions that own them, and asks again, with the
// same ids, while leaders change.
type router struct {
	partitions []atomic.Pointer[partition.Partition] // this node's replicas, nil for those of others
	directory  *fabric.Directory
}

// newRouter returns the router of a cluster with that many partitions. where says how
// to reach other nodes.
func newRouter(count uint32, where fabric.DirectoryConfig) *router {
	r := &router{partitions: make([]atomic.Pointer[partition.Partition], count)}
	where.Local = r.local
	r.directory = fabric.NewDirectory(count, where)
	return r
}

var _ ingress.Invocations = (*router)(nil)

// local is this node's replica of a partition, nil if it has none.
func (r *router) local(id uint32) fabric.Local {
	if p := r.replica(id); p != nil {
		return p
	}
	return nil
}

// replica is this node's replica of a partition, nil if it has none.
func (r *router) replica(id uint32) *partition.Partition { return r.partitions[id].Load() }

// replicas are those that this node has now.
func (r *router) replicas() iter.Seq[*partition.Partition] {
	return func(yield func(*partition.Partition) bool) {
		for id := range r.partitions {
			if p := r.partitions[id].Load(); p != nil && !yield(p) {
				return
			}
		}
	}
}

func (r *router) owner(id ids.Invocation) *fabric.Handle {
	return r.directory.Partition(machine.PartitionOf(id.PartitionKey(), uint32(r.directory.Partitions())))
}

// Send implements ingress.Invocations.
func (r *router) Send(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	p := r.owner(inv.ID)
	inv.Request = newRequest()
	o, err := insist(ctx, inv.IdempotencyKey != nil || inv.Target.Type == machine.WorkflowRun, func() (machine.Outcome, error) { return p.Invoke(ctx, inv) })
	switch {
	case err == nil && o.Code == machine.QueueFull:
		err = &ingress.QueueFullError{Rule: o.Rule}
	case o.Code == machine.Existing && o.Own:
		o.Code = machine.OK // an earlier try got through
	}
	return o, err
}

// Call implements ingress.Invocations.
func (r *router) Call(ctx context.Context, inv *machine.Invoke) (ingress.Answer, error) {
	p := r.owner(inv.ID)
	inv.Request = newRequest()
	return insist(ctx, inv.IdempotencyKey != nil, func() (ingress.Answer, error) {
		e, o, err := p.Call(ctx, inv)
		if err == nil && o.Code == machine.QueueFull {
			err = &ingress.QueueFullError{Rule: o.Rule}
		}
		if err == nil && o.Code == machine.Existing && !o.Own && inv.Target.Type == machine.WorkflowRun {
			err = ingress.ErrConflict
		}
		id := inv.ID
		if !o.ID.IsZero() {
			id = o.ID
		}
		return answer(id, e), err
	})
}

// Attach implements ingress.Invocations.
func (r *router) Attach(ctx context.Context, id ids.Invocation) (ingress.Answer, error) {
	p := r.owner(id)
	return insist(ctx, true, func() (ingress.Answer, error) {
		e, err := p.Await(ctx, id)
		return answer(id, e), err
	})
}

// Output implements ingress.Invocations.
func (r *router) Output(ctx context.Context, id ids.Invocation) (ingress.Answer, error) {
	p := r.owner(id)
	return insist(ctx, true, func() (ingress.Answer, error) {
		inv, err := p.Find(ctx, id)
		switch {
		case err != nil:
			return ingress.Answer{}, err
		case inv.Status != machine.Completed:
			return ingress.Answer{ID: id, Target: inv.Target}, ingress.ErrNotReady
		}
		return answer(id, partition.Ending{Target: inv.Target, Result: *inv.Result, ExpiresAt: inv.ExpiresAt}), nil
	})
}

// Deliver hands messages to the leader of a partition; it is what outboxes ship
// with, and leaves repeating to them.
func (r *router) Deliver(ctx context.Context, to uint32, d *machine.Deliver) error {
	return r.directory.Partition(to).Deliver(ctx, d)
}

// newRequest marks a request, so that its repetitions are known as such.
func newRequest() uint64 { return rand.Uint64() | 1 }

func answer(id ids.Invocation, e partition.Ending) ingress.Answer {
	a := ingress.Answer{ID: id, Target: e.Target, Result: e.Result}
	if e.ExpiresAt > 0 {
		a.ExpiresAt = time.UnixMilli(e.ExpiresAt)
	}
	return a
}

// insist sends a request to a partition until it is answered. It gives up once no leader
// has accepted the request for failoverBudget; a request that waits at a leader may wait
// indefinitely and through any number of failovers. Retries are safe because ids are
// deduplicated. Whether the client may send the request anew, with a new id, depends on
// safe and on what happened to the tries.
func insist[T any](ctx context.Context, safe bool, ask func() (T, error)) (T, error) {
	var limit <-chan time.Time
	definite, accepted := true, false
	wait := firstRetry
	for {
		v, err := ask()
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, partition.ErrNotFound):
			return v, ingress.ErrNotFound
		case errors.Is(err, raftgroup.ErrTooLarge):
			return v, ingress.ErrTooLarge
		case !raftgroup.Definite(err) && !errors.Is(err, raftgroup.ErrUnknownOutcome):
			return v, err
		}
		definite = definite && raftgroup.Definite(err)
		if fabric.WasHeld(err) {
			accepted, limit, wait = true, nil, firstRetry
		}
		if limit == nil {
			limit = time.After(failoverBudget)
		}
		// All who waited for a leader come to its successor at the same time; those that
		// had been accepted are not turned away by the queue that this makes.
		refused := errors.Is(err, raftgroup.ErrOverloaded) && !accepted
		if refused || !pause(ctx, wait-rand.N(wait/2), limit) {
			return v, &ingress.UnavailableError{SafeToRetry: safe || definite, Err: inWords(err)}
		}
		wait = min(2*wait, lastRetry)
	}
}

// wordedError is an error in words for whoever sent a request. What it wraps names
// addresses and what the network said about them, which is for logs.
type wordedError struct {
	text string
	err  error
}

func (e *wordedError) Error() string { return e.text }

func (e *wordedError) Unwrap() error { return e.err }

// inWords says why a partition was not to be had.
func inWords(err error) error {
	switch {
	case errors.Is(err, raftgroup.ErrOverloaded): // says what there is too much of
	case errors.Is(err, raftgroup.ErrUnknownOutcome):
		return &wordedError{"its leader went away before it answered, and no other one has", err}
	case raftgroup.Definite(err):
		return &wordedError{"this node finds no leader of it (GET /cluster-health of the admin API tells what is missing)", err}
	}
	return err
}

// pause waits a moment; false when the limit or the end of ctx came first.
func pause(ctx context.Context, wait time.Duration, limit <-chan time.Time) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-limit:
		return false
	case <-ctx.Done():
		return false
	}
}
