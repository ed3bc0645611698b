package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"platform/ingress"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
)

// patience is how long a request waits for a partition without a leader before it
// is refused. A failover takes a fraction of it.
const patience = 10 * time.Second

// router takes requests to the partitions that own them, and asks again, with the
// same ids, while leaders change.
type router struct {
	partitions []*partition.Partition
	opened     chan struct{} // closed once all of them are set
}

func newRouter(count uint32) *router {
	return &router{partitions: make([]*partition.Partition, count), opened: make(chan struct{})}
}

var _ ingress.Invocations = (*router)(nil)

func (r *router) owner(id ids.Invocation) *partition.Partition {
	return r.partitions[machine.PartitionOf(id.PartitionKey(), uint32(len(r.partitions)))]
}

// Send implements ingress.Invocations.
func (r *router) Send(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	p := r.owner(inv.ID)
	inv.Request = newRequest()
	o, err := insist(ctx, p, inv.IdempotencyKey != nil || inv.Target.Type == machine.WorkflowRun, func() (machine.Outcome, error) { return p.Invoke(ctx, inv) })
	if o.Code == machine.Existing && o.Own {
		o.Code = machine.OK // an earlier try got through
	}
	return o, err
}

// Call implements ingress.Invocations.
func (r *router) Call(ctx context.Context, inv *machine.Invoke) (ingress.Answer, error) {
	p := r.owner(inv.ID)
	inv.Request = newRequest()
	return insist(ctx, p, inv.IdempotencyKey != nil, func() (ingress.Answer, error) {
		e, o, err := p.Call(ctx, inv)
		if err == nil && o.Code == machine.Existing && !o.Own && inv.Target.Type == machine.WorkflowRun {
			err = ingress.ErrConflict
		}
		return answer(inv.ID, e), err
	})
}

// Attach implements ingress.Invocations.
func (r *router) Attach(ctx context.Context, id ids.Invocation) (ingress.Answer, error) {
	p := r.owner(id)
	return insist(ctx, p, true, func() (ingress.Answer, error) {
		e, err := p.Await(ctx, id)
		return answer(id, e), err
	})
}

// Output implements ingress.Invocations.
func (r *router) Output(ctx context.Context, id ids.Invocation) (ingress.Answer, error) {
	p := r.owner(id)
	return insist(ctx, p, true, func() (ingress.Answer, error) {
		inv, err := p.Find(ctx, id)
		switch {
		case err != nil:
			return ingress.Answer{}, err
		case inv.Status != machine.Completed:
			return ingress.Answer{}, ingress.ErrNotReady
		}
		return answer(id, partition.Ending{Target: inv.Target, Result: *inv.Result, ExpiresAt: inv.ExpiresAt}), nil
	})
}

// Deliver hands messages to the leader of a partition; it is what outboxes ship
// with, and leaves repeating to them.
func (r *router) Deliver(ctx context.Context, to uint32, d *machine.Deliver) error {
	select {
	case <-r.opened: // a partition may lead before its neighbours are open
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.partitions[to].Deliver(ctx, d)
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

// insist asks a partition until it answers, for as long as patience lasts. Asking
// again is safe because ids are deduplicated; what is safe for the client, who
// would come with a new id, depends on safe and on what happened to the attempts.
func insist[T any](ctx context.Context, p *partition.Partition, safe bool, ask func() (T, error)) (T, error) {
	var limit <-chan time.Time
	definite := true
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		v, err := ask()
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, partition.ErrNotFound):
			return v, ingress.ErrNotFound
		case !raftgroup.Definite(err) && !errors.Is(err, raftgroup.ErrUnknownOutcome):
			return v, err
		}
		definite = definite && raftgroup.Definite(err)
		if limit == nil {
			limit = time.After(patience)
		}
		if errors.Is(err, raftgroup.ErrOverloaded) || !awaitLeader(ctx, p, wait, limit) {
			return v, &ingress.UnavailableError{SafeToRetry: safe || definite, Err: err}
		}
	}
}

// awaitLeader waits a moment and then for the partition's leader; false when the
// limit or ctx came first.
func awaitLeader(ctx context.Context, p *partition.Partition, wait time.Duration, limit <-chan time.Time) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	led := make(chan error, 1)
	go func() { led <- p.WaitLeading(ctx) }()
	select {
	case err := <-led:
		if err != nil {
			return false
		}
	case <-limit:
		return false
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}
