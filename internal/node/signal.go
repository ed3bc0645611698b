package node

import (
	"context"

	"platform/ingress"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Signal implements ingress.Invocations.
func (r *router) Signal(ctx context.Context, s *machine.Signal) error {
	p := r.owner(s.Target)
	s.Request = newRequest()
	out, err := insist(ctx, !s.ID.Repeats(), func() (machine.Outcome, error) { return p.Operate(ctx, s) })
	switch {
	case err != nil:
		return err
	case out.Code == machine.NotFound:
		return ingress.ErrNotFound
	case out.Code == machine.Ended:
		return ingress.ErrEnded
	}
	return nil
}

func cancelOf(id ids.Invocation) *machine.Signal {
	return &machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal), Request: newRequest()}
}
