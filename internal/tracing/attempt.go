package tracing

import (
	"time"

	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/internal/stats"
)

// Attempt is one attempt of an invocation. The methods of a nil *Attempt do nothing. It is
// not safe for concurrent use.
type Attempt struct {
	t           *Tracer
	inv         Invocation
	cause       link // the parent of the invocation
	span        trace.SpanID
	start       time.Time
	events      []byte    // encoded, see appendEvent
	room        [192]byte // of the first events
	count       int       // of them
	more        uint32    // events beyond the limit
	endpoint    Endpoint
	retries     uint32
	traceparent string
	over        bool
}

// Endpoint is what an attempt is sent to.
type Endpoint struct {
	Deployment, Address string
	Protocol            int // version of the service protocol
}

// StartAttempt begins the span of an attempt that started at a time and follows failed ones. The result
// is nil on a nil Tracer.
func (t *Tracer) StartAttempt(inv *Invocation, to Endpoint, failed uint32, start time.Time) *Attempt {
	if t == nil {
		return nil
	}
	a := &Attempt{t: t, inv: *inv, cause: t.of(inv.ID, inv.Caller, inv.Traceparent), start: start, endpoint: to, retries: failed, span: newSpanID()}
	a.traceparent = link{trace: a.cause.trace, span: a.span, sampled: a.cause.sampled}.traceparent()
	return a
}

// Traceparent is the trace context for the endpoint.
func (a *Attempt) Traceparent() string { return a.traceparent }

// TraceID returns the trace of the attempt if it is recorded; otherwise it is empty.
func (a *Attempt) TraceID() string {
	if !a.Sampled() {
		return ""
	}
	return TraceID(a.traceparent)
}

// Sampled reports whether events are recorded.
func (a *Attempt) Sampled() bool { return a != nil && a.cause.sampled }

// Command records that the handler sent a journal command, with its name if it has one.
func (a *Attempt) Command(kind, name string, index uint32) {
	if !a.admits() {
		return
	}
	var room [256]byte
	b := appendText(room[:0], fieldEventAttributes, "platform.journal.command.type", kind)
	b = appendNumber(b, fieldEventAttributes, "platform.journal.command.index", int64(index))
	if name != "" {
		b = appendText(b, fieldEventAttributes, "platform.journal.command.name", name)
	}
	a.event("platform.invocation.lifecycle.new_command", time.Now(), b)
}

// RunEnded records that the handler proposed the result of a run.
func (a *Attempt) RunEnded(completion uint32) {
	if a.admits() {
		var room [64]byte
		b := appendNumber(room[:0], fieldEventAttributes, "platform.journal.completion.id", int64(completion))
		a.event("platform.invocation.lifecycle.run_ended", time.Now(), b)
	}
}

// admits reports whether an event is to be recorded.
func (a *Attempt) admits() bool {
	if !a.Sampled() {
		return false
	}
	if a.count < maxEvents {
		return true
	}
	a.more++
	return false
}

func (a *Attempt) event(name string, at time.Time, attributes []byte) {
	if a.events == nil {
		a.events = a.room[:0]
	}
	a.events = appendEvent(a.events, name, at, attributes)
	a.count++
}

// End records the span of an attempt that ended at a time. code, message and stack describe the failure
// of a failed attempt.
func (a *Attempt) End(how stats.Outcome, end time.Time, code, message, stack string) {
	if a == nil || a.over {
		return
	}
	a.over = true
	if !a.t.keeps(a.cause.sampled, how == stats.Failed, 0) {
		return
	}
	if !a.cause.sampled && a.retries == 0 {
		a.t.started(&a.inv, &a.cause, a.start)
	}
	switch how {
	case stats.Suspended:
		a.event("platform.invocation.lifecycle.suspended", end, nil)
	case stats.Yielded:
		a.event("platform.invocation.lifecycle.yielded", end, nil)
	}
	below := link{trace: a.cause.trace, span: spanOf(a.inv.ID)}
	s, ok := a.t.begin(&head{kind: spans.Span_SPAN_KIND_CLIENT, id: a.span, parent: below, start: a.start, end: end, what: "invocation-attempt", about: &a.inv})
	if !ok {
		return
	}
	s.call(&a.inv)
	s.text("platform.deployment.id", a.endpoint.Deployment)
	s.text("platform.deployment.address", a.endpoint.Address)
	s.number("platform.deployment.service_protocol_version", int64(a.endpoint.Protocol))
	s.number("platform.attempt.failed_before", int64(a.retries))
	s.text("platform.attempt.outcome", how.String())
	s.events(a.events, a.more)
	if how == stats.Failed {
		s.text("platform.error.code", code)
		s.failed(message)
		if stack != "" {
			s.text("exception.stacktrace", stack)
		}
	}
	a.t.record(&s)
}
