package ingress

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
)

// newID assigns an id to an invocation. The id of a workflow run or a request with an idempotency
// key is derived from its keys, so that a repetition finds the first invocation. Any other id is
// random and cannot be guessed, since a client that knows it may request the result. It is assigned
// before the first attempt, so that attempts can be retried on the way to the partition. If the
// first release derives a different id, that one is used: the leader, which knows what the log may
// contain, replaces it.
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

// knownID returns the id of an invocation from the keys that it is derived from. If there are two
// candidates, it is that of the first release if the invocation was created with it.
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

// newULID takes its randomness from the runtime's generator: ChaCha8, seeded by the operating
// system, without lock or system call.
func newULID(now time.Time) [16]byte { return ids.OrderedUnique(now.UnixMilli(), rand.Uint64) }
