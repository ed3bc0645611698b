package ingress

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"platform/internal/ids"
	"platform/internal/routing"
	"platform/internal/target"
	"platform/partition/machine"
)

// newID gives an invocation its id. The run of a workflow and requests with an
// idempotency key have one that follows from them, so that a repetition finds the
// first; any other id is new and cannot be guessed, since who knows it may ask for
// the result. It is given here, before the first try, so that tries can be repeated
// on the way to the partition. Where servers of the first release derive another id, it is
// theirs: the leader, which knows what the log may hold, replaces it.
func newID(t machine.Target, idempotencyKey *string, now time.Time) ids.Invocation {
	switch {
	case t.Type == target.WorkflowRun:
		return ids.LegacyOfWorkflow(t.Scope, t.Service, t.Key)
	case idempotencyKey != nil:
		return ids.LegacyOfIdempotent(t.Scope, t.Service, t.Key, t.Handler, *idempotencyKey)
	case t.Scope != "" || t.Type.Keyed():
		return ids.NewInvocation(ids.Route(t.Scope, t.Key), newULID(now))
	}
	return ids.NewInvocation(rand.Uint64(), newULID(now))
}

// knownID is the id of an invocation that is described by what its id follows from. Where
// two ids come into question, it is that of the first release if the invocation was made
// with it.
func (s *Server) knownID(ctx context.Context, t machine.Target, idempotencyKey *string) (ids.Invocation, error) {
	id, legacy, ok := machine.Derived(&t, idempotencyKey)
	if !ok {
		return newID(t, idempotencyKey, time.Time{}), nil
	}
	older, err := s.invocations.Output(ctx, legacy)
	switch {
	case err != nil && !errors.Is(err, routing.ErrNotReady) && !errors.Is(err, routing.ErrNotFound):
		return id, s.explain(ctx, err, id, true)
	case !errors.Is(err, routing.ErrNotFound) && older.Target.SameAs(t):
		return legacy, nil
	}
	return id, nil
}

// newULID takes its chance from the runtime's generator: ChaCha8, seeded by the
// operating system, without lock or system call.
func newULID(now time.Time) [16]byte { return ids.OrderedUnique(now.UnixMilli(), rand.Uint64) }
