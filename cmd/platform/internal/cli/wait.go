package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"platform/cmd/platform/internal/client"
)

const (
	// noticeDelay is the time after which a command that waits for a result reports on
	// stderr what it waits for.
	noticeDelay = 4 * time.Second
	// statusInterval is how often such a command checks whether the invocation is paused.
	statusInterval = 10 * time.Second
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

// sayWaitingRef is sayWaiting for an invocation that may be named by what its id follows from.
func (a *app) sayWaitingRef(ctx context.Context, ref client.InvocationRef) {
	if ref.ID == "" {
		_, err := a.Client.Output(ctx, ref)
		waits, ok := errors.AsType[*client.APIError](err)
		if !ok || !client.IsNotReady(err) || waits.InvocationID == "" {
			return
		}
		ref.ID = waits.InvocationID
	}
	a.sayWaiting(ctx, ref.ID)
}

// sayWaitingCall is sayWaiting for the invocation of a call, which lasts for elapsed and whose
// response with the id has not arrived.
func (a *app) sayWaitingCall(ctx context.Context, call client.Call, elapsed time.Duration) {
	sql := "SELECT id FROM sys_invocation WHERE target = " + client.Quote(call.Target.String()) + " AND invoked_by = 'ingress' AND status <> 'completed'"
	if call.Scope != "" {
		sql += " AND scope = " + client.Quote(call.Scope)
	}
	if key := call.Header.Get("Idempotency-Key"); key != "" {
		sql += " AND idempotency_key = " + client.Quote(key)
	} else {
		sql += fmt.Sprintf(" AND created_at >= now() - interval '%d seconds'", int(elapsed.Seconds())+1)
	}
	answer, err := a.Client.Query(ctx, sql+" LIMIT 2")
	switch {
	case ctx.Err() != nil:
	case err == nil && len(answer.Rows) == 1:
		a.sayWaiting(ctx, answer.Rows[0].Text("id"))
	default:
		a.Say("%s", a.Hint.Dim("Waiting for the result. `platform invocations list "+word(call.Target.String())+" --active` shows the status of the invocation."))
	}
}

// sayWaiting prints on stderr what the result of an invocation waits for: now, and whenever the
// invocation becomes paused until ctx ends. Errors are left to the request that waits.
func (a *app) sayWaiting(ctx context.Context, id string) {
	status := a.sayStatus(ctx, id)
	for {
		select {
		case <-time.After(a.statusInterval):
		case <-ctx.Done():
			return
		}
		answer, err := a.Client.Query(ctx, "SELECT status FROM sys_invocation WHERE id = "+client.Quote(id))
		if err != nil || len(answer.Rows) == 0 {
			continue
		}
		before := status
		if status = answer.Rows[0].Text("status"); status == "paused" && before != status {
			a.sayStatus(ctx, id)
		}
	}
}

// sayStatus prints on stderr the status of an invocation and its reason. It returns the status.
func (a *app) sayStatus(ctx context.Context, id string) string {
	e, err := a.explained(ctx, id)
	if err != nil {
		return ""
	}
	a.Say("%s", a.Hint.Dim("Waiting for "+e.ID+" ("+e.Target+"), which is "+e.Status+":"))
	for _, line := range a.reasons(e) {
		a.Say("  %s", a.Hint.Dim(line))
	}
	a.Say("%s", a.Hint.Dim("`platform explain "+e.ID+"` says what to do."))
	return e.Status
}
