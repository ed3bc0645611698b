package machine

import (
	"fmt"
	"strings"

	"platform/internal/feature"
	"platform/internal/target"
)

// The history of an invocation is what happened to it between its journal entries: failed
// attempts, pauses, resumes and requests to cancel. It is kept as long as the journal, from
// feature level 4 on. An invocation without such events stores nothing.

// EventKind is the kind of an event.
type EventKind uint8

// The kinds of events.
const (
	AttemptFailed   EventKind = iota + 1 // Failure, Attempts
	EnteredPause                         // Failure, if an attempt failed before it; Pause
	LeftPause                            // Pause
	CancelRequested                      //
)

// Event is an entry of the history of an invocation.
type Event struct {
	Kind     EventKind
	At       int64  // partition time, milliseconds since 1970
	Entries  uint32 // length of the journal when it happened
	Failure  *AttemptFailure
	Attempts uint32 // failed attempts since the invocation was admitted, including this one
	Pause    *PauseRecord
}

// History describes the stored events of an invocation: those with the numbers First ≤ n <
// Next. Earlier ones were dropped.
type History struct {
	First, Next uint32
	Bytes       uint32 // see Event.Size
}

// Bounds of a history. The oldest events are dropped when a new one exceeds them.
const (
	MaxEvents     = 64
	MaxEventBytes = 64 << 10
)

// Bounds of the texts of a failure in a history.
const (
	maxEventMessage = 4 << 10
	maxEventStack   = 8 << 10
	maxEventName    = 256
)

// Brief returns the failure as it is stored in a history: longer texts are cut.
func (f *AttemptFailure) Brief() *AttemptFailure {
	if len(f.Message) <= maxEventMessage && len(f.Stacktrace) <= maxEventStack && len(f.RelatedName) <= maxEventName {
		return f
	}
	brief := *f
	brief.Message, brief.Stacktrace, brief.RelatedName = cut(f.Message, maxEventMessage), cut(f.Stacktrace, maxEventStack), cut(f.RelatedName, maxEventName)
	return &brief
}

// cut truncates a text that is longer than limit, and marks it with an ellipsis.
func cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

// eventOverhead is the size of an event apart from its texts.
const eventOverhead = 64

// Size returns the approximate stored size of the event.
func (e *Event) Size() uint32 {
	n := eventOverhead
	if f := e.Failure; f != nil {
		n += len(f.ErrorCode) + len(f.Message) + len(f.Stacktrace) + len(f.RelatedName)
	}
	if p := e.Pause; p != nil {
		n += len(p.By) + len(p.Reason)
	}
	return uint32(n)
}

// Cause is a cause of failures of attempts, by the ID that the proposer has given it, and when
// it was first recorded.
type Cause struct {
	ID    uint64
	Since int64 // partition time, milliseconds since 1970
}

// MaxCauses bounds the causes of an invocation. The one whose last failure is the longest ago is
// dropped for a further one.
const MaxCauses = 8

// FailingSince returns when a failure with the cause was first recorded; 0 if none was.
func (inv *Invocation) FailingSince(cause uint64) int64 {
	for _, c := range inv.Causes {
		if c.ID == cause {
			return c.Since
		}
	}
	return 0
}

// recordCause adds the cause of a failure to inv, which the caller must store.
func (m *Machine) recordCause(inv *Invocation, id uint64) {
	if m.level < feature.Level4 || id == 0 {
		return
	}
	causes := make([]Cause, 0, min(len(inv.Causes)+1, MaxCauses))
	last := Cause{id, m.now}
	for _, c := range inv.Causes {
		if c.ID == id {
			last = c
		} else {
			causes = append(causes, c)
		}
	}
	if len(causes) == MaxCauses {
		causes = causes[1:]
	}
	inv.Causes = append(causes, last)
}

// recordEvent appends an event to the history of inv, which the caller must store.
func (m *Machine) recordEvent(inv *Invocation, e Event) error {
	if m.level < feature.Level4 || inv.Target.Type == target.StateUpdate {
		return nil
	}
	e.At, e.Entries = m.now, inv.Length
	if e.Failure != nil {
		e.Failure = e.Failure.Brief()
	}
	h, size := inv.History, e.Size()
	for h.First < h.Next && (h.Next-h.First >= MaxEvents || h.Bytes+size > MaxEventBytes) {
		oldest, err := m.st.Event(inv.ID, h.First)
		if err != nil {
			return fmt.Errorf("read event %d of %s: %w", h.First, inv.ID, err)
		}
		m.st.DeleteEvents(inv.ID, h.First, h.First+1)
		h.First, h.Bytes = h.First+1, h.Bytes-oldest.Size()
	}
	m.st.PutEvent(inv.ID, h.Next, e)
	h.Next, h.Bytes = h.Next+1, h.Bytes+size
	inv.History = h
	return nil
}

// deleteHistory deletes the events of inv, which the caller must store or delete.
func (m *Machine) deleteHistory(inv *Invocation) {
	if h := inv.History; h.First < h.Next {
		m.st.DeleteEvents(inv.ID, h.First, h.Next)
	}
	inv.History = History{}
}
