package query

import (
	"context"
	"fmt"
	"iter"
	"time"

	"platform/partition"
	"platform/partition/machine"
)

// event is an event between the entries of a journal: a stored one, or a suspension or failure that
// is not stored and therefore only known while it lasts.
type event struct {
	of       *partition.Record
	kind     string
	at       time.Time
	entries  uint32 // length of the journal when it happened
	sequence value  // number in the history; nil: not stored
	body     object
}

var eventKinds = map[machine.EventKind]string{
	machine.AttemptFailed: "TransientError", machine.EnteredPause: "Paused", machine.LeftPause: "Resumed", machine.CancelRequested: "CancelRequested",
}

// eventsOf returns the stored events of an invocation, and the present ones that are not stored.
func eventsOf(row *partition.Row) (list []event) {
	r := &row.Record
	for i := range row.Events {
		e := &row.Events[i]
		list = append(list, event{r, eventKinds[e.Kind], time.UnixMilli(e.At), e.Entries, number(uint64(r.History.First) + uint64(i)), storedBody(e)})
	}
	if r.Status == machine.Completed {
		return list
	}
	for _, e := range presentEvents(r) {
		if !isStored(row.Events, &e) {
			list = append(list, e)
		}
	}
	return list
}

func storedBody(e *machine.Event) object {
	body := object{"ty": eventKinds[e.Kind]}
	switch {
	case e.Failure != nil && e.Kind == machine.AttemptFailed:
		body = transientError(e.Failure)
	case e.Failure != nil:
		body["last_failure"] = transientError(e.Failure)
	}
	if e.Attempts > 0 {
		body["attempts"] = e.Attempts
	}
	pauseInto(body, e.Pause)
	return body
}

// isStored reports whether a present event is in the history: the last failure if it is equal, the
// others if one of their kind is, since only the first ones can be older than the history.
func isStored(history []machine.Event, e *event) bool {
	for i := len(history) - 1; i >= 0; i-- {
		stored := &history[i]
		if e.kind == "TransientError" && stored.Failure != nil {
			message, _ := e.body["error_message"].(string)
			return e.body["error_code"] == stored.Failure.Code && beginning(message) == beginning(stored.Failure.Message)
		}
		if e.kind == eventKinds[stored.Kind] {
			return true
		}
	}
	return false
}

// beginning is the part of a message that the invoker keeps even if there are many failures.
func beginning(message string) string { return message[:min(len(message), 64)] }

// presentEvents returns the events that follow from the record and the attempts of an invocation that
// is not completed: the failure of the last attempt until one succeeds, the reason for a suspension
// or pause, the end of the last pause, and the request to cancel.
func presentEvents(r *partition.Record) (list []event) {
	add := func(kind string, at time.Time, body object) {
		list = append(list, event{r, kind, at, r.Length, nil, body})
	}
	modified := time.UnixMilli(r.ModifiedAt)
	if f := lastFailure(*r); f != nil {
		at := modified
		if r.Attempts != nil && !r.Attempts.FailedAt().IsZero() {
			at = r.Attempts.FailedAt()
		}
		add("TransientError", at, transientError(f.Brief()))
	}
	switch r.Status {
	case machine.Paused:
		body := object{"ty": "Paused"}
		if r.Failure != nil {
			body["last_failure"] = transientError(r.Failure)
		}
		pauseInto(body, r.LastPause)
		add("Paused", modified, body)
	case machine.Suspended:
		body := object{"ty": "Suspended"}
		if r.Await != nil {
			body["awaiting_on"] = futureTree(r.Await)
		}
		add("Suspended", modified, body)
	}
	if p := r.LastPause; p != nil && p.ResumedAt != 0 {
		body := object{"ty": "Resumed"}
		pauseInto(body, p)
		add("Resumed", time.UnixMilli(p.ResumedAt), body)
	}
	if r.CancelRequestedAt != 0 {
		add("CancelRequested", time.UnixMilli(r.CancelRequestedAt), object{"ty": "CancelRequested"})
	}
	return list
}

// pauseInto adds the origin, reason and time of a pause request.
func pauseInto(body object, p *machine.PauseRecord) {
	if p == nil {
		return
	}
	body["cause"], body["paused_at"] = PauseCause(p.Cause), time.UnixMilli(p.At).UTC().Format(time.RFC3339Nano)
	if p.By != "" {
		body["by"] = p.By
	}
	if p.Reason != "" {
		body["reason"] = p.Reason
	}
	if p.Attempts > 0 {
		body["attempts"] = p.Attempts
	}
}

func transientError(f *machine.AttemptFailure) object {
	body := object{"ty": "TransientError", "error_code": f.Code, "error_message": f.Message}
	if f.Stacktrace != "" {
		body["error_stacktrace"] = f.Stacktrace
	}
	if f.ErrorCode != "" {
		body["platform_doc_error_code"], body["restate_doc_error_code"] = f.ErrorCode, f.ErrorCode // the second name is for legacy clients
	}
	if f.RelatedIndex != nil {
		body["related_command_index"] = *f.RelatedIndex
	}
	if f.RelatedName != "" {
		body["related_command_name"] = f.RelatedName
	}
	if f.RelatedCommand != 0 {
		body["related_command_type"] = f.RelatedCommand.Name()
	}
	return body
}

func sysJournalEvents() *Table {
	src := source[event]{
		cost:      invocationSource.cost,
		owner:     func(e *event) owner { return ownerOfTarget(&e.of.Target) },
		ownership: byTargetOwner,
		identity: func(e *event, b []byte) []byte {
			return fmt.Append(append(append(b, e.of.ID[:]...), e.kind...), e.sequence)
		},
		pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]event, error] {
			return func(yield func([]event, error) bool) {
				sel.whole = true
				scan := scanOf(partition.Invocations, sel, s.partitions().Scoped())
				scan.Events = true
				for page, err := range gather(ctx, s, scan) {
					var events []event
					for i := range page {
						events = append(events, eventsOf(&page[i])...)
					}
					if !yield(events, err) {
						return
					}
				}
			}
		},
	}
	return define("sys_journal_events", "What happened between journal entries: failed attempts, pauses, resumes and requests to cancel, kept as long as the journal, and the present suspension. Of equal failures in a row, without progress between them, only the first is kept.",
		src, []column[event]{
			{"partition_key", U64, "shard key of the row", func(e *event) value { return number(e.of.ID.PartitionKey()) }, byPartitionKey, false},
			{"id", Text, "invocation id", func(e *event) value { return e.of.ID.String() }, byID, false},
			{"after_journal_entry_index", U32, "entry after which it happened", func(e *event) value { return number(max(e.entries, 1) - 1) }, noField, false},
			{"appended_at", Timestamp, "when", func(e *event) value { return moment(e.at) }, noField, false},
			{"event_type", Text, "TransientError, Paused, Resumed, Suspended or CancelRequested", func(e *event) value { return e.kind }, noField, false},
			{"sequence", U32, "number of the event in the history of the invocation, from 0; of more than 64 events or 64 KiB the oldest are dropped; null if the event is not stored", func(e *event) value { return e.sequence }, noField, false},
			{"event_json", Text, "what happened", func(e *event) value { return jsonText(e.body) }, noField, false},
		})
}
