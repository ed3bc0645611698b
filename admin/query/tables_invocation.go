package query

import (
	"strings"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

type row = partition.Row

var invocationSource = scanned(partition.Invocations, func(r *row, b []byte) []byte { return append(b, r.Record.ID[:]...) }).owned(byTargetOwner, ownerOfInvocation)

// Columns of several tables.
var (
	partitionKeyColumn = column[row]{"partition_key", U64, "shard key of the row, numeric; sort and route helper",
		func(r *row) value { return number(rowOwner(r)) }, byPartitionKey, false}
	invocationIDColumn = column[row]{"id", Text, "invocation id", func(r *row) value { return r.Record.ID.String() }, byID, false}
)

// rowOwner returns the partition key of the owner of a row.
func rowOwner(r *row) uint64 {
	switch {
	case r.Record.Invocation != nil:
		return r.Record.ID.PartitionKey()
	case r.Object != machine.Object{}:
		return ids.Route(r.Object.Scope, r.Object.Key)
	}
	return r.ID.PartitionKey()
}

// of returns a column of the stored invocation.
func of(name string, typ Type, about string, value func(*machine.Invocation) value, f ...field) column[row] {
	c := column[row]{name: name, typ: typ, about: about, value: func(r *row) any { return value(r.Record.Invocation) }, heavy: true}
	for _, one := range f {
		c.field = one
	}
	return c
}

// head marks a column that can be computed from the head of a row.
func head(c column[row]) column[row] {
	c.heavy = false
	return c
}

var statusColumn = column[row]{"status", Text, "scheduled, pending, ready, running, backing-off, suspended, paused or completed",
	func(r *row) value { return StatusOf(r.Record) }, byStatus, false}

var storedStatusColumn = column[row]{"status", Text, "inboxed, scheduled, invoked, suspended, paused or completed",
	func(r *row) value { return storedStatus(r.Record.Status) }, byStoredStatus, false}

// resultColumns describe the result of an invocation.
var resultColumns = []column[row]{
	of("completion_result", Text, "success or failure once completed", completionResult, whenCompleted),
	of("completion_failure", Text, "terminal error, [code name] message", func(inv *machine.Invocation) value { return resultFailure(inv.Result) }, whenCompleted),
}

func completionResult(inv *machine.Invocation) value {
	switch {
	case inv.Result == nil:
		return nil
	case inv.Result.Failure != nil:
		return "failure"
	}
	return "success"
}

// targetColumns describe the target.
var targetColumns = []column[row]{
	head(of("target", Text, "Service/handler or Service/key/handler", func(inv *machine.Invocation) value { return inv.Target.String() }, byTarget)),
	head(of("target_service_name", Text, "service", func(inv *machine.Invocation) value { return inv.Target.Service }, byService)),
	head(of("target_service_key", Text, "object key or workflow id", targetKey, byObject)),
	head(of("target_handler_name", Text, "handler", func(inv *machine.Invocation) value { return inv.Target.Handler }, byHandler)),
	head(of("target_service_ty", Text, "service, virtual_object or workflow", func(inv *machine.Invocation) value { return ServiceType(inv.Target.Type) })),
	head(of("scope", Text, "scope, if scoped", func(inv *machine.Invocation) value { return text(inv.Target.Scope) }, byScope)),
	of("limit_key", Text, "limit key, if given", func(inv *machine.Invocation) value { return text(inv.LimitKey) }),
	of("idempotency_key", Text, "key given or generated", idempotencyKey),
}

func targetKey(inv *machine.Invocation) value {
	if !inv.Target.Type.Keyed() {
		return nil
	}
	return inv.Target.Key
}

func idempotencyKey(inv *machine.Invocation) value {
	if inv.IdempotencyKey == nil {
		return nil
	}
	return *inv.IdempotencyKey
}

// sourceColumns describe the origin of the invocation.
var sourceColumns = []column[row]{
	of("invoked_by", Text, "ingress, service, subscription or restart_as_new", func(inv *machine.Invocation) value { return SourceName(inv.Source.Kind) }),
	of("invoked_by_service_name", Text, "calling service", func(inv *machine.Invocation) value {
		service, _, _ := strings.Cut(inv.Source.CallerTarget, "/")
		return text(service)
	}),
	of("invoked_by_id", Text, "calling invocation", func(inv *machine.Invocation) value {
		if inv.Source.Kind != machine.FromService {
			return nil
		}
		return invocationText(inv.Source.Caller)
	}),
	of("invoked_by_subscription_id", Text, "subscription", func(inv *machine.Invocation) value { return text(inv.Source.Subscription) }),
	of("invoked_by_target", Text, "target of the caller", func(inv *machine.Invocation) value { return text(inv.Source.CallerTarget) }),
	of("restarted_from", Text, "original invocation of a restart", func(inv *machine.Invocation) value { return invocationText(inv.RestartedFrom) }),
}

// SourceNames are the sources of invocations as shown to users, by machine.SourceKind.
var SourceNames = []string{"ingress", "service", "subscription", "restart_as_new"}

// SourceName returns the source of an invocation as shown to users.
func SourceName(k machine.SourceKind) string {
	if int(k) >= len(SourceNames) {
		return "unknown"
	}
	return SourceNames[k]
}

func invocationText(id ids.Invocation) value {
	if id.IsZero() {
		return nil
	}
	return id.String()
}

// progressColumns describe the deployment and the progress.
var progressColumns = []column[row]{
	of("pinned_deployment_id", Text, "deployment pinned with the first stored entry", func(inv *machine.Invocation) value { return text(string(inv.Pin.Deployment)) }),
	of("pinned_service_protocol_version", U32, "protocol version pinned with the first stored entry", func(inv *machine.Invocation) value { return positive(inv.Pin.Protocol) }),
	of("trace_id", Text, "W3C trace id", func(inv *machine.Invocation) value { return traceID(inv.Trace.Parent) }),
	of("journal_size", U32, "stored entries", func(inv *machine.Invocation) value { return number(inv.Length) }),
	of("journal_commands_size", U32, "stored commands", func(inv *machine.Invocation) value { return number(inv.Commands) }),
}

// traceID returns the second part of a traceparent.
func traceID(parent string) value {
	_, rest, _ := strings.Cut(parent, "-")
	id, _, _ := strings.Cut(rest, "-")
	return text(id)
}

var pausingColumn = of("pause_requested", Bool, "an operator has requested a pause, which takes effect when the open attempt ends", func(inv *machine.Invocation) value { return boolean(inv.Pausing) })

// requestColumns describe the requests of operators.
var requestColumns = []column[row]{
	of("cancel_requested_at", Timestamp, "when its cancellation was requested after it had started", func(inv *machine.Invocation) value { return millis(inv.CancelRequestedAt) }),
	pause("last_paused_at", Timestamp, "when its last pause was requested or decided", func(p *machine.PauseRecord) value { return millis(p.At) }),
	pause("last_pause_cause", Text, "operator, attempts-used-up, unretryable-failure, or deployment-change: an operator continued it on another deployment, whose id is the reason", func(p *machine.PauseRecord) value { return PauseCause(p.Cause) }),
	pause("last_pause_by", Text, "network address of the client that requested it", func(p *machine.PauseRecord) value { return text(p.By) }),
	pause("last_pause_reason", Text, "reason that the operator gave", func(p *machine.PauseRecord) value { return text(p.Reason) }),
	pause("last_pause_attempts", U32, "attempts that had failed before it", func(p *machine.PauseRecord) value {
		if p.Attempts == 0 {
			return nil
		}
		return number(p.Attempts)
	}),
	pause("last_resumed_at", Timestamp, "when its last pause ended", func(p *machine.PauseRecord) value { return millis(p.ResumedAt) }),
}

// pause returns a column of the last pause.
func pause(name string, typ Type, about string, value func(*machine.PauseRecord) value) column[row] {
	return of(name, typ, about, func(inv *machine.Invocation) any {
		if inv.LastPause == nil {
			return nil
		}
		return value(inv.LastPause)
	})
}

// PauseCause returns the cause of a pause as shown to users.
func PauseCause(c machine.PauseCause) string {
	switch c {
	case machine.PausedByOperator:
		return "operator"
	case machine.AttemptsUsedUp:
		return "attempts-used-up"
	case machine.FailedUnretryably:
		return "unretryable-failure"
	case machine.BeforeRepin:
		return "deployment-change"
	}
	return "unknown"
}

// timeColumns contain the times of events.
var timeColumns = []column[row]{
	of("created_at", Timestamp, "arrival", func(inv *machine.Invocation) value { return millis(inv.CreatedAt) }),
	of("created_using_platform_version", Text, "server version that accepted it", func(inv *machine.Invocation) value { return text(inv.ServerVersion) }),
	of("modified_at", Timestamp, "last change of status", func(inv *machine.Invocation) value { return millis(inv.ModifiedAt) }),
	of("inboxed_at", Timestamp, "entered the queue", func(inv *machine.Invocation) value { return millis(inv.InboxedAt) }),
	of("scheduled_at", Timestamp, "was scheduled", func(inv *machine.Invocation) value { return millis(inv.ScheduledAt) }),
	of("scheduled_start_at", Timestamp, "planned start of a delayed one", func(inv *machine.Invocation) value { return millis(inv.StartAt) }),
	of("running_at", Timestamp, "first start", func(inv *machine.Invocation) value { return millis(inv.RunningAt) }),
	of("completed_at", Timestamp, "end", func(inv *machine.Invocation) value { return millis(inv.CompletedAt) }, unlessCompletedAt),
	of("completion_retention", Duration, "retention of the result after completion", func(inv *machine.Invocation) value { return number(inv.Retention.Completion) }),
	of("journal_retention", Duration, "retention of the journal after completion", func(inv *machine.Invocation) value { return number(inv.Retention.Journal) }),
}
