package history

import "time"

// Outcome is what a client knows of an operation when its last try is over.
type Outcome int

// The outcomes of an operation.
const (
	OK      Outcome = iota // acknowledged: it has taken effect, once
	Failed                 // refused for certain: it never takes effect
	Unknown                // nobody can tell; it may still take effect later, once
)

// String returns the outcome in a word.
func (o Outcome) String() string {
	return [...]string{"ok", "failed", "unknown"}[o]
}

// Span is when an operation was under way, on the client's monotonic clock.
type Span struct {
	Start, End time.Time
}

// forever is the end of an operation that may take effect at any later time.
var forever = time.Unix(1<<40, 0)

// end is when an operation has certainly taken effect, if it ever does.
func (s Span) end(o Outcome) time.Time {
	if o == OK {
		return s.End
	}
	return forever
}
