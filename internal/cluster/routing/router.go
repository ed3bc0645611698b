package routing

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Router sends requests to the partitions that own them, and retries them, with the same
// IDs, during leader failovers. It is safe for concurrent use.
type Router struct {
	replicas  []atomic.Pointer[partition.Partition] // replicas on this node; nil if there is none
	directory *fabric.Directory
	locality  locality
}

// New returns the router of a cluster with count partitions. cfg configures the connections
// to other nodes; New sets its field Local.
func New(count uint32, cfg fabric.DirectoryConfig) *Router {
	r := &Router{replicas: make([]atomic.Pointer[partition.Partition], count)}
	cfg.Local = r.local
	r.directory = fabric.NewDirectory(count, cfg)
	return r
}

// local returns this node's replica of a partition, nil if it has none.
func (r *Router) local(id uint32) fabric.Local {
	if p := r.Replica(id); p != nil {
		return p
	}
	return nil
}

// Set registers this node's replica of a partition; nil removes it.
func (r *Router) Set(id uint32, p *partition.Partition) { r.replicas[id].Store(p) }

// Count returns the number of partitions of the cluster.
func (r *Router) Count() uint32 { return uint32(r.directory.Partitions()) }

// Partition returns a handle for a partition.
func (r *Router) Partition(id uint32) *fabric.Handle { return r.directory.Partition(id) }

// Partitions returns a handle for each partition of the cluster.
func (r *Router) Partitions() iter.Seq[*fabric.Handle] {
	return func(yield func(*fabric.Handle) bool) {
		for id := range r.Count() {
			if !yield(r.directory.Partition(id)) {
				return
			}
		}
	}
}

// Replica returns this node's replica of a partition, nil if it has none.
func (r *Router) Replica(id uint32) *partition.Partition { return r.replicas[id].Load() }

// Replicas returns the replicas on this node.
func (r *Router) Replicas() iter.Seq[*partition.Partition] {
	return func(yield func(*partition.Partition) bool) {
		for id := range r.replicas {
			if p := r.replicas[id].Load(); p != nil && !yield(p) {
				return
			}
		}
	}
}

// Owner returns a handle for the partition that owns an invocation.
func (r *Router) Owner(id ids.Invocation) *fabric.Handle {
	return r.directory.Partition(machine.PartitionOf(id.PartitionKey(), uint32(r.directory.Partitions())))
}

// Send implements ingress.Invocations.
func (r *Router) Send(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	p := r.Owner(inv.ID)
	prepare(p, inv)
	o, err := retry(ctx, inv.IdempotencyKey != nil || inv.Target.Type == target.WorkflowRun, func(ctx context.Context) (machine.Outcome, error) { return p.Invoke(ctx, inv) })
	switch {
	case err == nil && o.Code == machine.QueueFull:
		err = &QueueFullError{Rule: o.Rule}
	case o.Code == machine.Existing && o.Own:
		o.Code = machine.OK // created by an earlier attempt of this request
	}
	return o, err
}

// prepare sets the fields that all attempts of a request for a new invocation share. It must be
// called before the first attempt is sent, because Since must be read before any other node has
// the ID.
func prepare(p *fabric.Handle, inv *machine.Invoke) {
	inv.Request = NewRequest()
	if inv.Fresh {
		inv.Fresh, inv.Since = false, p.Moment()
	}
}

// largeInput is the size from which an input is not kept while its call waits, and from which
// invocations do not share partitions.
const largeInput = 16 << 10

// Call implements ingress.Invocations.
func (r *Router) Call(ctx context.Context, inv *machine.Invoke, stored func()) (Response, error) {
	if len(inv.Input) >= largeInput && !inv.ShortRetention() {
		return r.callLarge(ctx, inv, stored)
	}
	p := r.Owner(inv.ID)
	prepare(p, inv)
	return retry(ctx, inv.IdempotencyKey != nil, func(ctx context.Context) (Response, error) {
		e, o, err := p.Call(ctx, inv)
		if err == nil && o.Code == machine.QueueFull {
			err = &QueueFullError{Rule: o.Rule}
		}
		if err == nil && o.Code == machine.Existing && !o.Own && inv.Target.Type == target.WorkflowRun {
			err = ErrConflict
		}
		id := inv.ID
		if !o.ID.IsZero() {
			id = o.ID
		}
		return responseOf(id, e), err
	})
}

// callLarge is Call in two requests: one that stores the invocation, and one that waits for
// its end without the input.
func (r *Router) callLarge(ctx context.Context, inv *machine.Invoke, stored func()) (Response, error) {
	o, err := r.Send(ctx, inv)
	id := inv.ID
	if !o.ID.IsZero() {
		id = o.ID
	}
	switch {
	case err != nil:
		return Response{}, err
	case o.Code == machine.Existing && inv.Target.Type == target.WorkflowRun:
		return Response{ID: id}, ErrConflict
	case o.Result != nil:
		return responseOf(id, partition.Ending{Target: inv.Target, Result: *o.Result, ExpiresAt: o.ExpiresAt}), nil
	}
	inv.Input = nil
	stored()
	p := r.Owner(id)
	a, err := retry(ctx, inv.IdempotencyKey != nil, func(ctx context.Context) (Response, error) {
		e, err := p.Await(ctx, id)
		return responseOf(id, e), err
	})
	if errors.Is(err, ErrNotFound) { // there was no leader for longer than results are kept
		err = &UnavailableError{Err: errors.New("the invocation was stored, but its result is not kept any longer")}
	}
	if down, ok := errors.AsType[*UnavailableError](err); ok && inv.IdempotencyKey == nil {
		// It is safe to wait again, but not to repeat the call: that would be another invocation.
		err = &UnavailableError{Err: down.Err}
	}
	return a, err
}

// Attach implements ingress.Invocations.
func (r *Router) Attach(ctx context.Context, id ids.Invocation) (Response, error) {
	p := r.Owner(id)
	return retry(ctx, true, func(ctx context.Context) (Response, error) {
		e, err := p.Await(ctx, id)
		return responseOf(id, e), err
	})
}

// Output implements ingress.Invocations.
func (r *Router) Output(ctx context.Context, id ids.Invocation) (Response, error) {
	p := r.Owner(id)
	return retry(ctx, true, func(ctx context.Context) (Response, error) {
		inv, err := p.Find(ctx, id)
		switch {
		case err != nil:
			return Response{}, err
		case inv.Status != machine.Completed:
			return Response{ID: id, Target: inv.Target, IdempotencyKey: inv.IdempotencyKey}, ErrNotReady
		}
		response := responseOf(id, partition.Ending{Target: inv.Target, Result: *inv.Result, ExpiresAt: inv.ExpiresAt})
		response.IdempotencyKey = inv.IdempotencyKey
		return response, nil
	})
}

// Deliver sends messages of an outbox to the leader of a partition. It does not retry; the
// outbox does.
func (r *Router) Deliver(ctx context.Context, to uint32, d *machine.Deliver) error {
	return r.directory.Partition(to).Deliver(ctx, d)
}

// Ingest passes records of an event stream to the leader of a partition. It does not retry;
// the reader of the stream does.
func (r *Router) Ingest(ctx context.Context, to uint32, c *machine.Ingest) (machine.Outcome, error) {
	return r.directory.Partition(to).Ingest(ctx, c)
}

// AwaitEnd returns when an invocation has ended, or is no longer known.
func (r *Router) AwaitEnd(ctx context.Context, id ids.Invocation) error {
	_, err := r.Owner(id).Await(ctx, id)
	if errors.Is(err, partition.ErrNotFound) {
		return nil
	}
	return err
}

// NewRequest returns a request ID, by which partitions recognize retries.
func NewRequest() uint64 { return rand.Uint64() | 1 }

// Response is the result of an invocation, as returned to callers.
type Response struct {
	ID        ids.Invocation
	Target    machine.Target
	Result    journal.Result
	ExpiresAt time.Time // end of the retention of the result; zero if unknown
	// IdempotencyKey of the request; only Output returns it.
	IdempotencyKey *string
}

func responseOf(id ids.Invocation, e partition.Ending) Response {
	a := Response{ID: id, Target: e.Target, Result: e.Result}
	if e.ExpiresAt > 0 {
		a.ExpiresAt = time.UnixMilli(e.ExpiresAt)
	}
	return a
}

// Signal implements ingress.Invocations.
func (r *Router) Signal(ctx context.Context, s *machine.Signal) error {
	p := r.Owner(s.Target)
	s.Request = NewRequest()
	out, err := retry(ctx, !s.ID.Repeats(), func(ctx context.Context) (machine.Outcome, error) { return p.Operate(ctx, s) })
	switch {
	case err != nil:
		return err
	case out.Code == machine.NotFound:
		return ErrNotFound
	case out.Code == machine.Ended:
		return ErrEnded
	case out.Code == machine.SignalsFull:
		return ErrSignalsFull
	}
	return nil
}

// Operate proposes a command about an invocation. repeated reports that an earlier attempt
// may have taken effect.
func (r *Router) Operate(ctx context.Context, id ids.Invocation, c machine.Operation) (out machine.Outcome, repeated bool, err error) {
	p := r.Owner(id)
	uncertain := false
	out, err = retry(ctx, false, func(ctx context.Context) (machine.Outcome, error) {
		repeated = uncertain
		o, err := p.Operate(ctx, c)
		uncertain = uncertain || errors.Is(err, raftgroup.ErrUnknownOutcome)
		return o, err
	})
	return out, repeated, err
}

// State reads up to limit bytes of an object's state; complete reports whether that is the
// entire state.
func (r *Router) State(ctx context.Context, o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	p := r.Owner(ids.NewInvocation(ids.Route(o.Scope, o.Key), [16]byte{}))
	entries, err = retry(ctx, true, func(ctx context.Context) (entries []machine.StateEntry, err error) {
		entries, complete, err = p.State(ctx, o, limit)
		return entries, err
	})
	return entries, complete, err
}

// Find reads a record from the leader of its partition.
func (r *Router) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	p := r.Owner(id)
	return retry(ctx, true, func(ctx context.Context) (*machine.Invocation, error) { return p.Find(ctx, id) })
}
