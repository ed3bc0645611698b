package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/partition/machine"
)

func (w *writer) history(field protowire.Number, h *machine.History) {
	n := w.open(field, sizeHint)
	w.uint(fieldHistoryFirst, uint64(h.First))
	w.uint(fieldHistoryNext, uint64(h.Next))
	w.uint(fieldHistoryBytes, uint64(h.Bytes))
	w.close(n)
}

func readHistory(b []byte, h *machine.History) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldHistoryFirst:
			h.First = r.u32()
		case fieldHistoryNext:
			h.Next = r.u32()
		case fieldHistoryBytes:
			h.Bytes = r.u32()
		default:
			r.unknown("history")
		}
	}
	return r.err
}

func (w *writer) cause(field protowire.Number, c *machine.Cause) {
	n := w.open(field, sizeHint)
	w.uint(fieldCauseID, c.ID)
	w.int(fieldCauseSince, c.Since)
	w.close(n)
}

func readCause(b []byte, c *machine.Cause) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldCauseID:
			c.ID = r.u64()
		case fieldCauseSince:
			c.Since = r.i64()
		default:
			r.unknown("cause")
		}
	}
	return r.err
}

// AppendEvent appends an event of the history of an invocation to b.
func AppendEvent(b []byte, e *machine.Event) []byte {
	w := writer{b: b}
	w.uint(fieldEventKind, uint64(e.Kind))
	w.int(fieldEventAt, e.At)
	w.uint(fieldEventEntries, uint64(e.Entries))
	if e.Failure != nil {
		w.attemptFailure(fieldEventFailure, e.Failure)
	}
	w.uint(fieldEventAttempts, uint64(e.Attempts))
	if e.Pause != nil {
		w.pauseRecord(fieldEventPause, e.Pause)
	}
	return w.b
}

// DecodeEvent decodes an event of the history of an invocation, which aliases b.
func DecodeEvent(b []byte) (e machine.Event, err error) {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldEventKind:
			e.Kind = machine.EventKind(r.u8())
		case fieldEventAt:
			e.At = r.i64()
		case fieldEventEntries:
			e.Entries = r.u32()
		case fieldEventFailure:
			e.Failure = decodeNew(&r, readAttemptFailure)
		case fieldEventAttempts:
			e.Attempts = r.u32()
		case fieldEventPause:
			e.Pause = decodeNew(&r, readPauseRecord)
		default:
			r.unknown("event")
		}
	}
	return decoded(e, "event", r.err)
}
