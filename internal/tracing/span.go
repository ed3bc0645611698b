package tracing

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/ids"
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

// Tags of fields below 16, which are one byte.
const (
	bytesTag   = byte(protowire.BytesType)
	varintTag  = byte(protowire.VarintType)
	fixed64Tag = byte(protowire.Fixed64Type)

	pairKeyTag     = fieldPairKey<<3 | bytesTag
	pairValueTag   = fieldPairValue<<3 | bytesTag
	valueStringTag = fieldValueString<<3 | bytesTag
)

// span is a span that is being recorded, encoded as the export protocol's message. An invocation has
// four spans with about thirty attributes; as messages they are a hundred objects that wait for the
// export and are then encoded.
type span struct {
	b      []byte // of the queue, which is locked until the span is recorded
	parent link
}

// head is what all spans have. The second part of the name is the target of the invocation or, if that
// is nil, a text.
type head struct {
	kind       spans.Span_SpanKind
	id         trace.SpanID
	parent     link
	start, end time.Time
	what, of   string
	about      *Invocation
}

// begin begins a span, which must be recorded before the caller does anything else. It is false if
// the span is dropped.
func (t *Tracer) begin(h *head) (s span, ok bool) {
	b, ok := t.queue.Begin()
	if !ok {
		return span{}, false
	}
	b = append(b, fieldSpanTraceID<<3|bytesTag, byte(len(h.parent.trace)))
	b = append(b, h.parent.trace[:]...)
	b = append(b, fieldSpanID<<3|bytesTag, byte(len(h.id)))
	b = append(b, h.id[:]...)
	if h.parent.span != (trace.SpanID{}) {
		b = append(b, fieldSpanParentID<<3|bytesTag, byte(len(h.parent.span)))
		b = append(b, h.parent.span[:]...)
	}
	b = append(b, fieldSpanName<<3|bytesTag)
	if h.about != nil {
		b = protowire.AppendVarint(b, uint64(len(h.what)+1+h.about.targetLen()))
		b = h.about.appendTarget(append(append(b, h.what...), ' '))
	} else {
		of := valid(h.of)
		b = protowire.AppendVarint(b, uint64(len(h.what)+1+len(of)))
		b = append(append(append(b, h.what...), ' '), of...)
	}
	b = append(b, fieldSpanKind<<3|varintTag, byte(h.kind), fieldSpanStart<<3|fixed64Tag)
	start := h.start.UnixNano()
	b = binary.LittleEndian.AppendUint64(b, uint64(start))
	b = append(b, fieldSpanEnd<<3|fixed64Tag)
	b = binary.LittleEndian.AppendUint64(b, uint64(max(h.end.UnixNano(), start)))
	return span{b: b, parent: h.parent}, true
}

// record queues the span, which must not be used after that.
func (t *Tracer) record(s *span) { t.queue.End(s.b) }

func (s *span) bytes(field protowire.Number, v []byte) {
	s.b = protowire.AppendTag(s.b, field, protowire.BytesType)
	s.b = protowire.AppendBytes(s.b, v)
}

func (s *span) text(name, value string) { s.b = appendText(s.b, fieldSpanAttributes, name, value) }

func (s *span) number(name string, value int64) {
	s.b = appendNumber(s.b, fieldSpanAttributes, name, value)
}

// about adds the attributes that all spans of an invocation have.
func (s *span) about(inv *Invocation) {
	s.b = appendPair(s.b, fieldSpanAttributes, "platform.invocation.id", sizeOfString(ids.InvocationLen))
	s.b = inv.ID.AppendText(append(s.b, valueStringTag, byte(ids.InvocationLen)))
	n := inv.targetLen()
	s.b = appendPair(s.b, fieldSpanAttributes, "platform.invocation.target", sizeOfString(n))
	s.b = inv.appendTarget(protowire.AppendVarint(append(s.b, valueStringTag), uint64(n)))
}

// call adds the attributes of spans that stand for a call.
func (s *span) call(inv *Invocation) {
	s.text("rpc.system", "platform")
	s.text("rpc.service", inv.Service)
	s.text("rpc.method", inv.Handler)
	s.about(inv)
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

// appendEvent appends an event with encoded attributes to the events of a span.
func appendEvent(b []byte, name string, at time.Time, attributes []byte) []byte {
	b = protowire.AppendTag(b, fieldSpanEvents, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+8+sizeOfString(len(name))+len(attributes)))
	b = protowire.AppendTag(b, fieldEventTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, uint64(at.UnixNano()))
	b = appendString(b, fieldEventName, name)
	return append(b, attributes...)
}

// appendText appends an attribute to a message that has attributes in a field below 16.
func appendText(b []byte, field protowire.Number, name, value string) []byte {
	value = valid(clip(value))
	b = appendPair(b, field, name, sizeOfString(len(value)))
	b = append(b, valueStringTag)
	return append(protowire.AppendVarint(b, uint64(len(value))), value...)
}

// appendNumber is like appendText.
func appendNumber(b []byte, field protowire.Number, name string, value int64) []byte {
	b = appendPair(b, field, name, 1+protowire.SizeVarint(uint64(value)))
	b = protowire.AppendTag(b, fieldValueInt, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(value))
}

// appendPair appends an attribute up to its value, which has inner bytes. Names are shorter than 128 bytes.
func appendPair(b []byte, field protowire.Number, name string, inner int) []byte {
	b = append(b, byte(field)<<3|bytesTag)
	if n := 2 + len(name) + 2 + inner; n < 128 { // the usual case: all lengths are one byte
		b = append(b, byte(n), pairKeyTag, byte(len(name)))
		return append(append(b, name...), pairValueTag, byte(inner))
	}
	b = protowire.AppendVarint(b, uint64(2+len(name)+1+protowire.SizeBytes(inner)))
	b = append(append(b, pairKeyTag, byte(len(name))), name...)
	return protowire.AppendVarint(append(b, pairValueTag), uint64(inner))
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
