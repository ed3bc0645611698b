package node

import (
	"context"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Signal implements ingress.Invocations. That nobody has the id, or has ended, is no
// error: who completes an awakeable cannot know.
func (r *router) Signal(ctx context.Context, s *machine.Signal) error {
	p := r.owner(s.Target)
	s.Request = newRequest()
	_, err := insist(ctx, !s.ID.Repeats(), func() (machine.Outcome, error) { return p.Operate(ctx, s) })
	return err
}

func cancelOf(id ids.Invocation) *machine.Signal {
	return &machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal), Request: newRequest()}
}
