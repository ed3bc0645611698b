package tracing

import (
	"encoding/binary"
	"strings"

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

// maxTraceparent bounds what later versions of W3C trace context may append to a traceparent.
const maxTraceparent = 256

// Valid reports whether a text is version-traceid-parentid-flags in lower-case hexadecimal digits, with
// neither ID zero (W3C trace context). Later versions may append other text, which must be suitable for
// a header.
func Valid(traceparent string) bool {
	s := traceparent
	if len(s) < 55 || (len(s) > 55 && (s[:2] == "00" || s[55] != '-')) || s[:2] == "ff" {
		return false
	}
	if len(s) > maxTraceparent || strings.ContainsFunc(s[55:], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	for i := range 55 {
		dash := i == 2 || i == 35 || i == 52
		digit := '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'f'
		if dash != (s[i] == '-') || !dash && !digit {
			return false
		}
	}
	return strings.Trim(s[3:35], "0") != "" && strings.Trim(s[36:52], "0") != ""
}

// parse reads a valid traceparent.
func parse(traceparent string) (l link, ok bool) {
	if len(traceparent) < 55 {
		return link{}, false
	}
	if !unhex(l.trace[:], traceparent[3:35]) || !unhex(l.span[:], traceparent[36:52]) || !l.trace.IsValid() || !l.span.IsValid() {
		return link{}, false
	}
	l.sampled = digits[traceparent[54]]&1 == 1 // the flag is the lowest bit of a hexadecimal digit
	return l, true
}

// unhex decodes lower case hexadecimal digits. It avoids the copies of package hex, since it is called
// several times per invocation.
func unhex(to []byte, text string) bool {
	bad := byte(0)
	for i := range to {
		high, low := digits[text[2*i]], digits[text[2*i+1]]
		bad |= high | low
		to[i] = high<<4 | low
	}
	return bad < 16
}

// digits has the values of lower case hexadecimal digits, and 255 for other characters.
var digits = func() (of [256]byte) {
	for c := range of {
		of[c] = 255
	}
	for value, c := range []byte("0123456789abcdef") {
		of[c] = byte(value)
	}
	return of
}()

// TraceID returns the trace that a valid traceparent names; empty if there is none.
func TraceID(traceparent string) string {
	if len(traceparent) < 55 {
		return ""
	}
	return traceparent[3:35]
}

// SampledTraceID returns the trace that a valid traceparent names if it is recorded.
func SampledTraceID(traceparent string) string {
	if len(traceparent) < 55 || digits[traceparent[54]]&1 == 0 {
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
