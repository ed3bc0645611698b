package backend

import (
	"fmt"

	"platform/admin"
	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// describe converts an invocation for users.
func describe(r partition.Record) *admin.Invocation {
	inv, t := r.Invocation, &r.Target
	out := &admin.Invocation{
		ID:                    inv.ID.String(),
		Target:                t.String(),
		TargetServiceName:     t.Service,
		TargetServiceKey:      t.Key,
		TargetHandlerName:     t.Handler,
		TargetServiceType:     query.ServiceType(t.Type),
		Scope:                 t.Scope,
		LimitKey:              inv.LimitKey,
		Status:                admin.Status(query.StatusOf(r)),
		CreatedAt:             rest.Timestamp(inv.CreatedAt),
		ModifiedAt:            rest.Timestamp(inv.ModifiedAt),
		ScheduledStartAt:      rest.Timestamp(inv.StartAt),
		RunningAt:             rest.Timestamp(inv.RunningAt),
		CompletedAt:           rest.Timestamp(inv.CompletedAt),
		PurgeAt:               rest.Timestamp(inv.ExpiresAt),
		IdempotencyKey:        inv.IdempotencyKey,
		InvokedBy:             query.SourceName(inv.Source.Kind),
		InvokedByTarget:       inv.Source.CallerTarget,
		PinnedDeploymentID:    inv.Pin.Deployment,
		PinnedProtocolVersion: int(inv.Pin.Protocol),
		JournalSize:           inv.Length,
		PauseRequested:        inv.Pausing,
		CancelRequestedAt:     rest.Timestamp(inv.CancelRequestedAt),
	}
	if p := inv.LastPause; p != nil {
		out.LastPause = &admin.Pause{Cause: query.PauseCause(p.Cause), By: p.By, Reason: p.Reason, Attempts: p.Attempts, At: rest.Timestamp(p.At), ResumedAt: rest.Timestamp(p.ResumedAt)}
	}
	if inv.Flow != nil {
		out.VQueueID = inv.VQueue().ID().String()
	}
	if inv.Source.Kind == machine.FromService {
		out.InvokedByID = inv.Source.Caller.String()
	}
	if inv.Result != nil {
		out.CompletionResult = "success"
		if f := inv.Result.Failure; f != nil {
			out.CompletionResult, out.CompletionFailure = "failure", query.FailureText(f.Code, f.Message, "", f.Metadata)
		}
	}
	out.AwaitingOn, out.AwaitingSince = awaited(r)
	describeAttempts(r, out)
	return out
}

// describeAttempts adds the state of attempts: from the leader for running invocations, from the
// record for paused ones.
func describeAttempts(r partition.Record, out *admin.Invocation) {
	failure := r.Failure
	if attempts := r.Attempts; attempts != nil {
		out.RetryCount = uint64(attempts.Started())
		out.LastAttemptDeployment, out.LastAttemptServer = attempts.Deployment, attempts.Server
		if !attempts.LastStartAt.IsZero() {
			out.LastStartAt = rest.Timestamp(attempts.LastStartAt.UnixMilli())
		}
		if !attempts.NextRetryAt.IsZero() {
			out.NextRetryAt = rest.Timestamp(attempts.NextRetryAt.UnixMilli())
		}
		if !attempts.NoResponseSince.IsZero() {
			out.NoResponseSince = rest.Timestamp(attempts.NoResponseSince.UnixMilli())
			out.AbortAt = rest.Timestamp(attempts.AbortAt.UnixMilli())
		}
		failure = attempts.LastFailure
	}
	if failure != nil {
		out.LastFailure = query.FailureText(failure.Code, failure.Message, failure.Stacktrace, nil)
		out.LastFailureErrorCode = failure.ErrorCode
	}
}

// journalDescriber converts a journal for users, entry by entry, and retains no payloads.
type journalDescriber struct {
	entries []admin.Entry
	calls   map[int]uint32    // by entry, the completion with the ID of the called invocation
	callees map[uint32]string // by completion; it follows later than the call
}

func (d *journalDescriber) add(e journal.Entry) {
	i := len(d.entries)
	d.entries = append(d.entries, admin.Entry{
		Index: uint32(i), Type: e.Type.String(), Name: journal.NameOf(e),
		AppendedAt: rest.Timestamp(e.AppendedAt), RawLength: len(e.Payload),
	})
	d.describe(i, e)
}

// done returns the entries with the invocations that they have called.
func (d *journalDescriber) done() []admin.Entry {
	for i, completion := range d.calls {
		d.entries[i].InvokedID = d.callees[completion]
	}
	return d.entries
}

// describe adds what only some entries have.
func (d *journalDescriber) describe(i int, e journal.Entry) {
	out := &d.entries[i]
	switch e.Type {
	case journal.CallInvocationIDCompletion:
		if n, err := journal.ParseNotification(e.Payload); err == nil {
			d.callees[n.ID.Index] = n.InvocationID
		}
	case journal.Signal:
		if n, err := journal.ParseNotification(e.Payload); err == nil {
			out.Name = signalName(n.ID)
		}
	case journal.SendSignal:
		if c, err := journal.ParseSendSignal(e.Payload); err == nil {
			out.Name, out.InvokedID = signalName(c.ID), c.Target.String()
		}
	case journal.CompleteAwakeable:
		if c, err := journal.ParseCompleteAwakeable(e.Payload); err == nil {
			out.Name, out.InvokedID = signalName(c.ID), c.Target.String()
		}
	case journal.AttachInvocation, journal.GetInvocationOutput:
		if c, err := journal.ParseAttach(e.Type, e.Payload); err == nil {
			out.InvokedID = c.Target.String()
		}
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		if c, err := journal.ParsePromise(e.Type, e.Payload); err == nil {
			out.Name = c.Key
		}
	case journal.GetLazyState, journal.SetState, journal.ClearState:
		if c, err := journal.ParseState(e.Type, e.Payload); err == nil {
			out.Name = string(c.Key)
		}
	case journal.GetEagerState:
		var m service.GetEagerStateCommandMessage
		if err := m.UnmarshalVTUnsafe(e.Payload); err == nil {
			out.Name = string(m.Key)
		}
	case journal.Sleep:
		if c, err := journal.ParseSleep(e.Payload); err == nil {
			out.SleepWakeupAt = rest.Timestamp(c.WakeUpTime)
		}
	case journal.Call:
		if c, err := journal.ParseCall(e.Payload); err == nil {
			out.InvokedTarget, d.calls[i] = targetText(&c.Request), c.IDCompletion
		}
	case journal.OneWayCall:
		if c, err := journal.ParseOneWayCall(e.Payload); err == nil {
			out.InvokedTarget, d.calls[i] = targetText(&c.Request), c.IDCompletion
		}
	}
}

// signalName returns the name of a signal for users.
func signalName(id journal.NotificationID) string {
	switch {
	case id.Name != "":
		return id.Name
	case id == journal.NumberedSignal(journal.CancelSignal):
		return "cancel"
	case id.Index >= ids.FirstAwakeable:
		return fmt.Sprintf("awakeable %d", id.Index)
	}
	return fmt.Sprintf("signal %d", id.Index)
}

func targetText(r *journal.Request) string {
	if r.Key != "" {
		return r.Service + "/" + r.Key + "/" + r.Handler
	}
	return r.Service + "/" + r.Handler
}
