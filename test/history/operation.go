package history

import "time"

// Outcome is what a client knows about an operation after its last attempt.
type Outcome int

// The outcomes of an operation.
const (
	OK      Outcome = iota // acknowledged: it took effect once
	Failed                 // rejected: it never takes effect
	Unknown                // no response: it may take effect once, at any later time
)

// String returns the name of the outcome.
func (o Outcome) String() string {
	return [...]string{"ok", "failed", "unknown"}[o]
}

// Span is the time from the start to the end of an operation, by the client's
// monotonic clock.
type Span struct {
	Start, End time.Time
}

// indefinite is the end of an operation that may take effect at any later time.
var indefinite = time.Unix(1<<40, 0)

// end returns the time by which an operation has taken effect, if it ever does.
func (s Span) end(o Outcome) time.Time {
	if o == OK {
		return s.End
	}
	return indefinite
}
