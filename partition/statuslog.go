package partition

import (
	"context"
	"log/slog"
	"time"

	"platform/internal/ids"
	"platform/internal/tracing"
	"platform/partition/machine"
)

// statusRecorder is the state that commands access; it also records how they change the statuses
// of invocations.
type statusRecorder struct {
	machine.State
	changes []statusChange
}

// statusChange is a change of the status of an invocation.
type statusChange struct {
	id   ids.Invocation
	from machine.Status      // 0: it was created
	inv  *machine.Invocation // nil: it was deleted
}

// PutInvocation implements machine.State.
func (r *statusRecorder) PutInvocation(inv *machine.Invocation) {
	from := machine.Status(0)
	// An error ends the batch: the command has read the same record.
	if before, err := r.State.Invocation(inv.ID); err == nil && before != nil {
		from = before.Status
	}
	if from != inv.Status {
		r.changes = append(r.changes, statusChange{inv.ID, from, inv})
	}
	r.State.PutInvocation(inv)
}

// DeleteInvocation implements machine.State.
func (r *statusRecorder) DeleteInvocation(id ids.Invocation) {
	r.changes = append(r.changes, statusChange{id: id})
	r.State.DeleteInvocation(id)
}

// recordingStatuses returns the state for the commands of a batch. Statuses are recorded only if
// this replica leads, which logs them, and only at the debug level.
func (f *fsm) recordingStatuses(st machine.State) machine.State {
	f.statuses.changes = f.statuses.changes[:0]
	if f.p.role.leadership() == nil || !f.p.log.Enabled(context.Background(), slog.LevelDebug) {
		return st
	}
	f.statuses.State = st
	return &f.statuses
}

// logStatuses logs what happened to invocations. It contains no payloads and no messages of
// failures.
func (l *leadership) logStatuses(changes []statusChange) {
	for _, c := range changes {
		if c.inv == nil {
			l.log.Debug("invocation removed", "invocation_id", c.id)
			continue
		}
		if c.from == 0 {
			l.log.Debug("invocation created", c.fields()...)
		}
		l.logStatus(&c)
	}
}

// logStatus logs the status that an invocation has now.
func (l *leadership) logStatus(c *statusChange) {
	inv, fields := c.inv, c.fields()
	if c.from == machine.Paused && inv.Status != machine.Completed {
		l.log.Debug("invocation resumed", fields...)
	}
	switch inv.Status {
	case machine.Scheduled:
		l.log.Debug("invocation scheduled", append(fields, "start_at", time.UnixMilli(inv.StartAt).UTC())...)
	case machine.Inboxed:
		l.log.Debug("invocation queued", fields...)
	case machine.Invoked:
		l.log.Debug("invocation admitted", fields...)
	case machine.Suspended:
		l.log.Debug("invocation suspended", fields...)
	case machine.Paused:
		l.log.Debug("invocation paused", fields...)
	case machine.Completed:
		l.logEnd(inv, fields)
	}
}

// logEnd logs how an invocation ended.
func (l *leadership) logEnd(inv *machine.Invocation, fields []any) {
	result := "success"
	if inv.Result != nil && inv.Result.Failure != nil {
		result = "failure"
		fields = append(fields, "failure_code", inv.Result.Failure.Code)
	}
	fields = append(fields, "result", result)
	if inv.Killed {
		l.log.Debug("invocation killed", fields...)
		return
	}
	l.log.Debug("invocation completed", fields...)
}

func (c *statusChange) fields() []any {
	fields := []any{"invocation_id", c.id, "target", c.inv.Target.String()}
	if d := c.inv.Pin.Deployment; d != "" {
		fields = append(fields, "deployment_id", d)
	}
	if id := tracing.TraceID(c.inv.Trace.Parent); id != "" {
		fields = append(fields, "trace_id", id)
	}
	return fields
}
