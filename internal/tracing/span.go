package tracing

import (
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of opentelemetry/proto/trace/v1/trace.proto and common.proto.
const (
	fieldSpanTraceID       = 1
	fieldSpanID            = 2
	fieldSpanParentID      = 4
	fieldSpanName          = 5
	fieldSpanKind          = 6
	fieldSpanStart         = 7
	fieldSpanEnd           = 8
	fieldSpanAttributes    = 9
	fieldSpanEvents        = 11
	fieldSpanDroppedEvents = 12
	fieldSpanLinks         = 13
	fieldSpanStatus        = 15

	fieldEventTime       = 1
	fieldEventName       = 2
	fieldEventAttributes = 3

	fieldLinkTraceID = 1
	fieldLinkSpanID  = 2

	fieldStatusMessage = 2
	fieldStatusCode    = 3

	fieldPairKey   = 1
	fieldPairValue = 2

	fieldValueString = 1
	fieldValueInt    = 3

	fieldScopeSpans = 2 // the spans of a ScopeSpans
)

// span is a span to record, encoded as the export protocol's message while it is made. An
// invocation has four spans with about thirty attributes; as messages they are a hundred
// objects that wait for the export and are then encoded.
type span struct {
	b      []byte
	parent link
}

// newSpan begins a span with a name of two parts. size is the expected size of the
// attributes beside those of the target.
func newSpan(kind spans.Span_SpanKind, id trace.SpanID, parent link, start, end time.Time, what, of string, size int) *span {
	s := &span{b: make([]byte, 0, 320+3*len(of)+size), parent: parent}
	s.bytes(fieldSpanTraceID, parent.trace[:])
	s.bytes(fieldSpanID, id[:])
	if parent.span != (trace.SpanID{}) {
		s.bytes(fieldSpanParentID, parent.span[:])
	}
	of = valid(of)
	s.b = protowire.AppendTag(s.b, fieldSpanName, protowire.BytesType)
	s.b = protowire.AppendVarint(s.b, uint64(len(what)+1+len(of)))
	s.b = append(append(append(s.b, what...), ' '), of...)
	s.b = protowire.AppendTag(s.b, fieldSpanKind, protowire.VarintType)
	s.b = protowire.AppendVarint(s.b, uint64(kind))
	s.b = protowire.AppendTag(s.b, fieldSpanStart, protowire.Fixed64Type)
	s.b = protowire.AppendFixed64(s.b, uint64(start.UnixNano()))
	s.b = protowire.AppendTag(s.b, fieldSpanEnd, protowire.Fixed64Type)
	s.b = protowire.AppendFixed64(s.b, uint64(max(end.UnixNano(), start.UnixNano())))
	return s
}

func (s *span) bytes(field protowire.Number, v []byte) {
	s.b = protowire.AppendTag(s.b, field, protowire.BytesType)
	s.b = protowire.AppendBytes(s.b, v)
}

func (s *span) text(name, value string) { s.b = appendText(s.b, fieldSpanAttributes, name, value) }

func (s *span) number(name string, value int64) {
	s.b = appendNumber(s.b, fieldSpanAttributes, name, value)
}

// failed marks the span as failed.
func (s *span) failed(message string) {
	message = valid(clip(message))
	s.b = protowire.AppendTag(s.b, fieldSpanStatus, protowire.BytesType)
	s.b = protowire.AppendVarint(s.b, uint64(sizeOfString(len(message))+2))
	s.b = appendString(s.b, fieldStatusMessage, message)
	s.b = protowire.AppendTag(s.b, fieldStatusCode, protowire.VarintType)
	s.b = protowire.AppendVarint(s.b, uint64(spans.Status_STATUS_CODE_ERROR))
	s.text("error.message", message)
}

// linked links the span to its parent, too.
func (s *span) linked() {
	if s.parent.span == (trace.SpanID{}) {
		return
	}
	s.b = protowire.AppendTag(s.b, fieldSpanLinks, protowire.BytesType)
	s.b = protowire.AppendVarint(s.b, uint64(sizeOfString(len(s.parent.trace))+sizeOfString(len(s.parent.span))))
	s.bytes(fieldLinkTraceID, s.parent.trace[:])
	s.bytes(fieldLinkSpanID, s.parent.span[:])
}

// events adds encoded events, see appendEvent, and the number of those that were dropped.
func (s *span) events(encoded []byte, dropped uint32) {
	s.b = append(s.b, encoded...)
	if dropped > 0 {
		s.b = protowire.AppendTag(s.b, fieldSpanDroppedEvents, protowire.VarintType)
		s.b = protowire.AppendVarint(s.b, uint64(dropped))
	}
}

func (t *Tracer) record(s *span) { t.queue.Add(s.b, cap(s.b)) }

// appendEvent appends an event with encoded attributes to the events of a span.
func appendEvent(b []byte, name string, at time.Time, attributes []byte) []byte {
	b = protowire.AppendTag(b, fieldSpanEvents, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+8+sizeOfString(len(name))+len(attributes)))
	b = protowire.AppendTag(b, fieldEventTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, uint64(at.UnixNano()))
	b = appendString(b, fieldEventName, name)
	return append(b, attributes...)
}

// appendText appends an attribute to a message that has attributes in a field.
func appendText(b []byte, field protowire.Number, name, value string) []byte {
	value = valid(clip(value))
	inner := sizeOfString(len(value))
	b = appendPair(b, field, name, inner)
	return appendString(b, fieldValueString, value)
}

// appendNumber is like appendText.
func appendNumber(b []byte, field protowire.Number, name string, value int64) []byte {
	b = appendPair(b, field, name, 1+protowire.SizeVarint(uint64(value)))
	b = protowire.AppendTag(b, fieldValueInt, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(value))
}

// appendPair appends an attribute up to its value, which has inner bytes.
func appendPair(b []byte, field protowire.Number, name string, inner int) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(sizeOfString(len(name))+1+protowire.SizeBytes(inner)))
	b = appendString(b, fieldPairKey, name)
	b = protowire.AppendTag(b, fieldPairValue, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(inner))
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// sizeOfString is the size of a field below 16 with a string or bytes of a length.
func sizeOfString(n int) int { return 1 + protowire.SizeBytes(n) }

// valid replaces invalid UTF-8, which receivers reject.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func clip(s string) string { return s[:min(len(s), maxText)] }
