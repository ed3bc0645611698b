package ingress

import (
	"context"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/machine"
)

// Invocations sends requests to the leader of the owning partition, on any node. Its methods may be
// called concurrently. They retry while a retry is safe, until ctx ends or their own time limit is
// reached; then they return routing.ErrUnavailable. When ctx ends they only stop waiting.
//
// The implementation takes ownership of arguments; results are shared and never modified.
type Invocations interface {
	// Send makes the invocation durable, or finds the one that has its id: then the outcome's code
	// is machine.Existing, also for a workflow that already ran.
	Send(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error)
	// Call makes the invocation durable, or finds the one that has its id, and waits for the
	// result. A workflow that already ran is routing.ErrConflict. Send and Call can fail with a
	// *routing.QueueFullError. Call may set inv.Input to nil and call stored once the input is no
	// longer needed.
	Call(ctx context.Context, inv *machine.Invoke, stored func()) (routing.Response, error)
	// Attach waits for the result of a known invocation; routing.ErrNotFound.
	Attach(ctx context.Context, id ids.Invocation) (routing.Response, error)
	// Output is the result if there is one; routing.ErrNotReady, with the target, or routing.ErrNotFound.
	Output(ctx context.Context, id ids.Invocation) (routing.Response, error)
	// Signal makes a signal durable; routing.ErrNotFound, routing.ErrEnded.
	Signal(ctx context.Context, s *machine.Signal) error
}
