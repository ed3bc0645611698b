package invoker

import (
	"platform/internal/tracing"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
)

// startSpan begins the span of the attempt; t.mu is held.
func (a *attempt) startSpan(inv *machine.Invocation) {
	tracer := a.s.iv.cfg.Tracer
	if tracer == nil {
		return
	}
	pin := a.plan.pin
	to := tracing.Endpoint{Deployment: string(pin.Deployment), Address: a.plan.route.addr.Scheme + "://" + a.plan.route.addr.Authority, Protocol: int(pin.Protocol)}
	a.span = tracer.StartAttempt(traced(inv), to, uint32(a.t.retry.total))
}

// traced is what spans say about an invocation.
func traced(inv *machine.Invocation) *tracing.Invocation {
	about := &tracing.Invocation{
		ID: inv.ID, Target: inv.Target.String(), Service: inv.Target.Service, Handler: inv.Target.Handler,
		Traceparent: inv.Trace.Parent,
	}
	if inv.Source.Kind == machine.FromService {
		about.Caller = inv.Source.Caller
	}
	return about
}

// traceparent is the trace context for the endpoint.
func (a *attempt) traceparent(inv *machine.Invocation) string {
	if a.span == nil {
		return inv.Trace.Parent
	}
	return a.span.Traceparent()
}

// traceCommand records a command of the handler.
func (a *attempt) traceCommand(m *protocol.Message) {
	if a.span.Sampled() {
		a.span.Command(m.Type.Name(), journal.NameOf(journal.Entry{Type: m.Type, Payload: m.Payload}), a.commands)
	}
}

// endSpan records the attempt, which ends with an event; t.mu is held.
func (a *attempt) endSpan(e event) {
	if a.span == nil {
		return
	}
	how := tracing.Abandoned
	code, message, stack := "", "", ""
	switch {
	case a.failure != nil && e != drop:
		how, code, message, stack = tracing.Failed, a.failure.ErrorCode, a.failure.Message, a.failure.Stacktrace
	case e != stored:
	case a.last == machine.StepSuspend:
		how = tracing.Suspended
	case a.last == machine.StepEnd:
		how = tracing.Completed
	default:
		how = tracing.Yielded
	}
	a.span.End(how, code, message, stack)
}
