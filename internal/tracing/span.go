package tracing

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
)

// span is a span to record. It becomes a message of the export protocol directly: with the
// span of the OpenTelemetry SDK, which is read and copied before it is converted to that
// message, an invocation costs three times as much.
type span struct {
	spans.Span
	size int // in bytes, approximate
}

func newSpan(kind spans.Span_SpanKind, id trace.SpanID, parent link, start, end time.Time, name ...string) *span {
	s := &span{Span: spans.Span{
		TraceId: parent.trace[:], SpanId: id[:], Name: strings.Join(name, " "), Kind: kind,
		StartTimeUnixNano: uint64(start.UnixNano()), EndTimeUnixNano: uint64(max(end.UnixNano(), start.UnixNano())),
		Attributes: make([]*common.KeyValue, 0, 16),
	}}
	if parent.span != (trace.SpanID{}) {
		s.ParentSpanId = parent.span[:]
	}
	s.size = 256 + len(s.Name)
	return s
}

func (s *span) text(name, value string) {
	kv := text(name, value)
	s.Attributes = append(s.Attributes, kv)
	s.size += 128 + len(kv.Value.GetStringValue())
}

func (s *span) number(name string, value int64) {
	s.Attributes = append(s.Attributes, number(name, value))
	s.size += 128
}

// failed marks the span as failed.
func (s *span) failed(message string) {
	message = clip(message)
	s.Status = &spans.Status{Code: spans.Status_STATUS_CODE_ERROR, Message: message}
	s.text("error.message", message)
}

// linked links the span to its parent, too.
func (s *span) linked() {
	if s.ParentSpanId != nil {
		s.Links = []*spans.Span_Link{{TraceId: s.TraceId, SpanId: s.ParentSpanId}}
	}
}

func (t *Tracer) record(s *span) { t.queue.Add(&s.Span, s.size) }

// text is an attribute, allocated as one object. Invalid UTF-8 is replaced, which the
// encoding would reject.
func text(name, value string) *common.KeyValue {
	a := &struct {
		pair  common.KeyValue
		value common.AnyValue
		text  common.AnyValue_StringValue
	}{}
	a.text.StringValue = strings.ToValidUTF8(clip(value), "\uFFFD")
	a.value.Value = &a.text
	a.pair.Key, a.pair.Value = name, &a.value
	return &a.pair
}

func number(name string, value int64) *common.KeyValue {
	a := &struct {
		pair   common.KeyValue
		value  common.AnyValue
		number common.AnyValue_IntValue
	}{}
	a.number.IntValue = value
	a.value.Value = &a.number
	a.pair.Key, a.pair.Value = name, &a.value
	return &a.pair
}

func clip(s string) string { return s[:min(len(s), maxText)] }
