package tracing

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
	"go.opentelemetry.io/otel/trace"

	"platform/internal/ids"
)

// Seeds of derived identifiers. They must not change: nodes of different versions export
// spans of the same invocation.
const (
	spanSeed  = 0x7370616e // of the span of an invocation
	traceSeed = 0x74726163 // of the trace of an invocation without a caller's trace

	recordSeed = 0x72656364 // of the span of the record that became an invocation
)

// link is a position in a trace: the parent of a span.
type link struct {
	trace   trace.TraceID
	span    trace.SpanID // zero: the root
	sampled bool
}

// parse reads a traceparent that has been validated, see ingress.
func parse(traceparent string) (l link, ok bool) {
	if len(traceparent) < 55 {
		return link{}, false
	}
	traceID, err := trace.TraceIDFromHex(traceparent[3:35])
	if err != nil {
		return link{}, false
	}
	spanID, err := trace.SpanIDFromHex(traceparent[36:52])
	if err != nil {
		return link{}, false
	}
	// The flag is the lowest bit of a hexadecimal digit.
	last := traceparent[54]
	if last >= 'a' {
		last -= 'a' - 10
	}
	return link{trace: traceID, span: spanID, sampled: last&1 == 1}, true
}

// TraceID returns the trace that a valid traceparent names; empty if there is none.
func TraceID(traceparent string) string {
	if len(traceparent) < 55 {
		return ""
	}
	return traceparent[3:35]
}

// SampledTraceID returns the trace that a valid traceparent names if it is recorded.
func SampledTraceID(traceparent string) string {
	if l, ok := parse(traceparent); !ok || !l.sampled {
		return ""
	}
	return TraceID(traceparent)
}

// traceparent is the text form of a link (W3C trace context).
func (l link) traceparent() string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	for _, c := range l.trace {
		b = append(b, hex[c>>4], hex[c&15])
	}
	b = append(b, '-')
	for _, c := range l.span {
		b = append(b, hex[c>>4], hex[c&15])
	}
	if l.sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// spanOf is the ID of the invocation-start span of an invocation.
func spanOf(id ids.Invocation) (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], max(xxh3.HashSeed(id[:], spanSeed), 1))
	return s
}

// traceOf is the ID of the trace of an invocation that belongs to no other trace.
func traceOf(id ids.Invocation) (t trace.TraceID) {
	h := xxh3.Hash128Seed(id[:], traceSeed)
	binary.BigEndian.PutUint64(t[:8], h.Hi)
	binary.BigEndian.PutUint64(t[8:], max(h.Lo, 1))
	return t
}
