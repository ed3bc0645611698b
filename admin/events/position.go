package events

import (
	"strconv"
	"strings"
)

// Position contains the versions of its topics that a viewer has been notified of, in the order of
// the topics.
type Position []Version

// String encodes the position as the ID of an event.
func (p Position) String() string {
	parts := make([]string, len(p))
	for i, v := range p {
		parts[i] = strconv.FormatUint(uint64(v), 16)
	}
	return strings.Join(parts, ".")
}

// ParsePosition parses the ID of the last event that a viewer of n topics has received. It ignores
// an ID that does not match n topics, so that the viewer is notified of everything.
func ParsePosition(id string, n int) Position {
	p := make(Position, n)
	parts := strings.Split(id, ".")
	if len(parts) != n {
		return p
	}
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 16, 64)
		if err != nil {
			return make(Position, n)
		}
		p[i] = Version(v)
	}
	return p
}
