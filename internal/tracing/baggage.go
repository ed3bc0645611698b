package tracing

import (
	"strings"

	"go.opentelemetry.io/otel/baggage"
)

// Bounds of the baggage of an invocation. W3C baggage requires that 64 members and 8,192 bytes are
// passed on. It is a little less, since the buffer of proxies for a header with its name has 8,192 bytes:
// a longer one would make all attempts fail.
const (
	maxBaggage        = 8_000 // bytes
	maxBaggageMembers = 64
	// maxBaggageRead bounds the members that are parsed: a header has room for thousands of malformed
	// ones, which take milliseconds.
	maxBaggageRead = 4 * maxBaggageMembers
)

// Baggage returns the baggage in header values, unchanged except for white space, as a list in one
// value. It leaves out whole members that are malformed or exceed the bounds, so what it returns is
// always valid, and all that follow after many.
func Baggage(values []string) string {
	if len(values) == 0 {
		return ""
	}
	var list strings.Builder
	members, read := 0, 0
	for _, value := range values {
		for member := range strings.SplitSeq(value, ",") {
			if read++; read > maxBaggageRead {
				return list.String()
			}
			member = strings.Trim(member, " \t")
			if members == maxBaggageMembers || list.Len()+1+len(member) > maxBaggage || !validMember(member) {
				continue
			}
			if members > 0 {
				list.WriteByte(',')
			}
			list.WriteString(member)
			members++
		}
	}
	return list.String()
}

func validMember(member string) bool {
	b, err := baggage.Parse(member)
	return err == nil && b.Len() == 1
}
