package invoker

import (
	"time"

	"platform/internal/stats"
	"platform/internal/tracing"
	"platform/invoker/protocol"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// startSpanLocked begins the span of the attempt.
func (a *attempt) startSpanLocked(inv *machine.Invocation) {
	tracer := a.s.iv.cfg.Tracer
	if tracer == nil {
		return
	}
	pin := a.plan.pin
	to := tracing.Endpoint{Deployment: string(pin.Deployment), Address: a.plan.route.addr.Scheme + "://" + a.plan.route.addr.Authority, Protocol: int(pin.Protocol)}
	about := attempts.Traced(inv.ID, &inv.Target, &inv.Source, &inv.Trace)
	a.span = tracer.StartAttempt(&about, to, uint32(a.t.retry.total), a.t.started)
}

// traceparent is the trace context for the endpoint.
func (a *attempt) traceparent(inv *machine.Invocation) string {
	if a.span == nil {
		return inv.Trace.Parent
	}
	return a.span.Traceparent()
}

// traceCommandLocked records a command of the handler.
func (a *attempt) traceCommandLocked(m *protocol.Message) {
	if a.span.Sampled() {
		a.span.Command(m.Type.Name(), journal.NameOf(journal.Entry{Type: m.Type, Payload: m.Payload}), a.handler.commands)
	}
}

// measureLocked counts and records the attempt, which ends with an event.
func (a *attempt) measureLocked(e event) {
	how, now := a.outcomeLocked(e), time.Now()
	a.reportOutcomeLocked(how, now)
	if inv := a.t.inv; inv != nil {
		a.s.iv.cfg.Stats.Attempted(inv.Target.Service, inv.Target.Handler, how, now.Sub(a.t.started), a.span.TraceID())
	}
	if f := a.failure; how == stats.Failed {
		a.span.End(how, now, f.ErrorCode, f.Message, f.Stacktrace)
	} else {
		a.span.End(how, now, "", "", "")
	}
}

// outcomeLocked returns how the attempt ends with an event.
func (a *attempt) outcomeLocked(e event) stats.Outcome {
	switch {
	case a.failure != nil && e != drop:
		return stats.Failed
	case e != stored:
		return stats.Abandoned
	case a.lastStep == machine.StepSuspend:
		return stats.Suspended
	case a.lastStep == machine.StepEnd:
		return stats.Succeeded
	}
	return stats.Yielded
}
