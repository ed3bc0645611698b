package cli

import (
	"context"
	"errors"
	"time"

	"platform/cmd/platform/internal/client"
)

const (
	// noticeDelay is the time after which a command that waits for a result reports on
	// stderr what it waits for.
	noticeDelay = 4 * time.Second
	// settleTime is how long pause waits for attempts that were asked to suspend.
	settleTime     = time.Second
	settleInterval = 100 * time.Millisecond
)

// noticeLater calls notice after the notice delay. The caller ends the
// wait with stop, which returns when notice has returned.
func (a *app) noticeLater(ctx context.Context, notice func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(a.noticeDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
			notice(ctx)
		case <-ctx.Done():
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// sayWaiting reports on stderr what an invocation waits for. It ignores errors, since the
// request for the result reports them.
func (a *app) sayWaiting(ctx context.Context, ref client.InvocationRef) {
	if ref.ID == "" {
		_, err := a.client.Output(ctx, ref)
		waits, ok := errors.AsType[*client.APIError](err)
		if !ok || !client.IsNotReady(err) || waits.InvocationID == "" {
			return
		}
		ref.ID = waits.InvocationID
	}
	e, err := a.explained(ctx, ref.ID)
	if err != nil {
		return
	}
	a.say("%s", a.hint.Dim("Waiting for "+e.ID+" ("+e.Target+"), which is "+e.Status+":"))
	for _, line := range e.Why {
		a.say("  %s", a.hint.Dim(indented(line)))
	}
	a.say("%s", a.hint.Dim("`platform explain "+e.ID+"` says what to do."))
}
