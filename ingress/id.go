package ingress

import (
	"math/rand/v2"
	"time"

	"platform/internal/ids"
	"platform/partition/machine"
)

// newID gives an invocation its id. The run of a workflow and requests with an
// idempotency key have one that follows from them, so that a repetition finds the
// first; any other id is new and cannot be guessed, since who knows it may ask for
// the result. It is given here, before the first try, so that tries can be repeated
// on the way to the partition.
func newID(t machine.Target, idempotencyKey *string, now time.Time) ids.Invocation {
	switch {
	case t.Type == machine.WorkflowRun:
		return ids.OfWorkflow(t.Scope, t.Service, t.Key)
	case idempotencyKey != nil:
		return ids.OfIdempotent(t.Scope, t.Service, t.Key, t.Handler, *idempotencyKey)
	case t.Scope != "" || t.Type.Keyed():
		return ids.NewInvocation(ids.Route(t.Scope, t.Key), newULID(now))
	}
	return ids.NewInvocation(rand.Uint64(), newULID(now))
}

// newULID takes its chance from the runtime's generator: ChaCha8, seeded by the
// operating system, without lock or system call.
func newULID(now time.Time) [16]byte { return ids.OrderedUnique(now.UnixMilli(), rand.Uint64) }
