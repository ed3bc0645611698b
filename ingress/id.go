package ingress

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
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
//
// An idempotency key belongs to the principal that uses it: another one that guesses the key gets an
// invocation of its own. The key of a workflow identifies the workflow, which all callers share.
func newID(t machine.Target, idempotencyKey *string, principal string, key func() uint64, now time.Time) ids.Invocation {
	switch {
	case t.Type == target.WorkflowRun:
		return ids.LegacyOfWorkflow(t.Scope, t.Service, t.Key)
	case idempotencyKey != nil && principal != "":
		return ids.OfPrivate(principal, t.Scope, t.Service, t.Key, t.Handler, *idempotencyKey)
	case idempotencyKey != nil:
		return ids.LegacyOfIdempotent(t.Scope, t.Service, t.Key, t.Handler, *idempotencyKey)
	case t.Scope != "" || t.Type.Keyed():
		return ids.NewInvocation(ids.Route(t.Scope, t.Key), newULID(now))
	}
	return ids.NewInvocation(key(), newULID(now))
}

// knownID returns the id of an invocation from the keys that it is derived from. If there are two
// candidates, it is that of the first release if the invocation was created with it.
func (s *Server) knownID(ctx context.Context, t machine.Target, idempotencyKey *string) (ids.Invocation, error) {
	principal := s.ownerOfKeys(ctx)
	id, legacy, ok := machine.Derived(&t, idempotencyKey)
	if !ok || idempotencyKey != nil && principal != "" {
		return newID(t, idempotencyKey, principal, rand.Uint64, time.Time{}), nil
	}
	older, err := s.invocations.Output(ctx, legacy)
	switch {
	case err != nil && !errors.Is(err, routing.ErrNotReady) && !errors.Is(err, routing.ErrNotFound):
		return id, invocationProblem(ctx, err, id, true)
	case !errors.Is(err, routing.ErrNotFound) && older.Target.SameAs(t):
		return legacy, nil
	}
	return id, nil
}

// ownerOfKeys returns the principal that idempotency keys of a request belong to; empty if they are
// shared by all clients. The name remains the same when a token is replaced. Below level 4, other
// nodes would derive another id for the same request.
func (s *Server) ownerOfKeys(ctx context.Context) string {
	if s.cfg.Level() < feature.Level4 {
		return ""
	}
	return access.From(ctx).Name
}

// owns reports whether a principal may read the result of an invocation, as far as that depends on
// who made it: the result of a request with an idempotency key belongs to the principal whose key it
// is. Clients without credentials, and handlers, share their keys.
func owns(p *access.Principal, response *routing.Response) bool {
	t, key := &response.Target, response.IdempotencyKey
	if key == nil || p.Allows(access.Payloads) {
		return true
	}
	return slices.Contains([]ids.Invocation{
		ids.OfIdempotent(t.Scope, t.Service, t.Key, t.Handler, *key),
		ids.LegacyOfIdempotent(t.Scope, t.Service, t.Key, t.Handler, *key),
	}, response.ID) || p.Name != "" && response.ID == ids.OfPrivate(p.Name, t.Scope, t.Service, t.Key, t.Handler, *key)
}

// newULID takes its randomness from the runtime's generator: ChaCha8, seeded by the operating
// system, without lock or system call.
func newULID(now time.Time) [16]byte { return ids.OrderedUnique(now.UnixMilli(), rand.Uint64) }
