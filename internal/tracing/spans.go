package tracing

import (
	"net/netip"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/internal/ids"
)

// Invocation is what spans say about an invocation.
type Invocation struct {
	ID                       ids.Invocation
	Target, Service, Handler string // Target as users see it: Service/key/handler
	Traceparent              string // of the record
	Caller                   ids.Invocation
	Linked                   bool // it has no waiting caller: it is linked to its cause, too
}

// about adds the attributes that all spans of an invocation have.
func (s *span) about(inv *Invocation) *span {
	s.text("platform.invocation.id", inv.ID.String())
	s.text("platform.invocation.target", inv.Target)
	return s
}

// call adds the attributes of spans that stand for a call.
func (s *span) call(inv *Invocation) *span {
	s.text("rpc.system", "platform")
	s.text("rpc.service", inv.Service)
	s.text("rpc.method", inv.Handler)
	return s.about(inv)
}

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
	s := newSpan(spans.Span_SPAN_KIND_SERVER, r.span, r.parent, r.start, end, "ingress", inv.Target, 384).call(inv)
	s.number("http.response.status_code", int64(status))
	if requestID != "" {
		s.text("platform.request.id", requestID)
	}
	if peer, err := netip.ParseAddrPort(r.peer); err == nil {
		s.text("client.socket.address", peer.Addr().String())
		s.number("client.socket.port", int64(peer.Port()))
	}
	if failure != "" {
		s.failed(failure)
	}
	r.t.record(s)
}

// Started records that the first attempt of an invocation begins. Recorded again after a
// failover, the span has the same ID.
func (t *Tracer) Started(inv *Invocation) {
	if t == nil {
		return
	}
	if parent := t.of(inv.ID, inv.Caller, inv.Traceparent); parent.sampled {
		t.started(inv, parent, time.Now())
	}
}

func (t *Tracer) started(inv *Invocation, parent link, at time.Time) {
	s := newSpan(spans.Span_SPAN_KIND_INTERNAL, spanOf(inv.ID), parent, at, at, "invocation-start", inv.Target, 256).call(inv)
	if inv.Linked {
		s.linked()
	}
	t.record(s)
}

// Ended records the end of an invocation that was due at a time. code and failure say why it
// failed; an empty failure is success.
func (t *Tracer) Ended(inv *Invocation, due, ended time.Time, code uint32, failure string) {
	if t == nil {
		return
	}
	parent := t.of(inv.ID, inv.Caller, inv.Traceparent)
	if !t.keeps(parent.sampled, failure != "", ended.Sub(due)) {
		return
	}
	if !parent.sampled {
		t.started(inv, parent, due)
	}
	below := link{trace: parent.trace, span: spanOf(inv.ID)}
	s := newSpan(spans.Span_SPAN_KIND_INTERNAL, newSpanID(), below, due, ended, "invocation-end", inv.Target, 128+len(failure)).about(inv)
	if failure == "" {
		s.text("platform.invocation.result", "success")
	} else {
		s.text("platform.invocation.result", "failure")
		s.text("platform.error.code", strconv.FormatUint(uint64(code), 10))
		s.failed(failure)
	}
	t.record(s)
}
