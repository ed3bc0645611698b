package tracing

import (
	"net"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/internal/ids"
)

// Invocation is what spans say about an invocation.
type Invocation struct {
	ID               ids.Invocation
	Service, Handler string // names from the registry
	Keyed            bool   // the target has a key, which may be any text
	Key              string
	Traceparent      string // of the record
	Caller           ids.Invocation
	Linked           bool // it has no waiting caller: it is linked to its cause, too
}

// appendTarget appends the target as users see it: Service/handler or Service/key/handler.
func (inv *Invocation) appendTarget(b []byte) []byte {
	b = append(append(b, inv.Service...), '/')
	if inv.Keyed {
		b = append(append(b, inv.key()...), '/')
	}
	return append(b, inv.Handler...)
}

// targetLen is the length of what appendTarget appends.
func (inv *Invocation) targetLen() int {
	n := len(inv.Service) + 1 + len(inv.Handler)
	if inv.Keyed {
		n += len(inv.key()) + 1
	}
	return n
}

func (inv *Invocation) key() string { return valid(clip(inv.Key)) }

// Request is a request to the ingress that calls a handler.
type Request struct {
	t           *Tracer
	start       time.Time
	parent      link // the caller's span
	span        trace.SpanID
	peer        string
	traceparent string
}

// StartRequest begins the span of a request. traceparent is the caller's, validated, or
// empty; peer is the address of the caller. The result is nil on a nil Tracer.
func (t *Tracer) StartRequest(traceparent, peer string) *Request {
	if t == nil {
		return nil
	}
	r := &Request{t: t, start: time.Now(), span: newSpanID(), peer: peer}
	parent, ok := parse(traceparent)
	if !ok {
		parent.trace = newTraceID()
	}
	if !ok || !t.parentFirst {
		parent.sampled = t.samples(parent.trace)
	}
	r.parent = parent
	r.traceparent = link{trace: parent.trace, span: r.span, sampled: parent.sampled}.traceparent()
	return r
}

// Traceparent is the trace context of what the request causes.
func (r *Request) Traceparent() string { return r.traceparent }

// End records the span. requestID is the client's name for the request, if any; failure is why the
// request failed; empty: it did not.
func (r *Request) End(inv *Invocation, requestID string, status int, failure string) {
	if r == nil {
		return
	}
	end := time.Now()
	if !r.t.keeps(r.parent.sampled, failure != "", end.Sub(r.start)) {
		return
	}
	s, ok := r.t.begin(&head{kind: spans.Span_SPAN_KIND_SERVER, id: r.span, parent: r.parent, start: r.start, end: end, what: "ingress", about: inv})
	if !ok {
		return
	}
	s.call(inv)
	s.number("http.response.status_code", int64(status))
	if requestID != "" {
		s.text("platform.request.id", requestID)
	}
	if host, port, err := net.SplitHostPort(r.peer); err == nil {
		s.text("client.socket.address", host)
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			s.number("client.socket.port", int64(n))
		}
	}
	if failure != "" {
		s.failed(failure)
	}
	r.t.record(&s)
}

// Started records that the first attempt of an invocation begins. Recorded again after a
// failover, the span has the same ID.
func (t *Tracer) Started(inv *Invocation) {
	if t == nil {
		return
	}
	if parent := t.of(inv.ID, inv.Caller, inv.Traceparent); parent.sampled {
		t.started(inv, &parent, time.Now())
	}
}

func (t *Tracer) started(inv *Invocation, parent *link, at time.Time) {
	s, ok := t.begin(&head{kind: spans.Span_SPAN_KIND_INTERNAL, id: spanOf(inv.ID), parent: *parent, start: at, end: at, what: "invocation-start", about: inv})
	if !ok {
		return
	}
	s.call(inv)
	if inv.Linked {
		s.linked()
	}
	t.record(&s)
}

// Ended records the end of an invocation that was due at a time. code and failure say why it
// failed; an empty failure is success.
func (t *Tracer) Ended(inv *Invocation, due, ended time.Time, code uint32, failure string) {
	if t == nil {
		return
	}
	if ended.Before(due) { // it was cancelled
		due = ended
	}
	parent := t.of(inv.ID, inv.Caller, inv.Traceparent)
	if !t.keeps(parent.sampled, failure != "", ended.Sub(due)) {
		return
	}
	if !parent.sampled {
		t.started(inv, &parent, due)
	}
	below := link{trace: parent.trace, span: spanOf(inv.ID)}
	s, ok := t.begin(&head{kind: spans.Span_SPAN_KIND_INTERNAL, id: newSpanID(), parent: below, start: due, end: ended, what: "invocation-end", about: inv})
	if !ok {
		return
	}
	s.about(inv)
	if failure == "" {
		s.text("platform.invocation.result", "success")
	} else {
		s.text("platform.invocation.result", "failure")
		s.text("platform.error.code", strconv.FormatUint(uint64(code), 10))
		s.failed(failure)
	}
	t.record(&s)
}
