package query

import (
	"context"
	"iter"
	"time"

	"platform/partition"
	"platform/partition/machine"
)

// event is an event between the entries of a journal. Only the newest event of each kind is known,
// while it is relevant: the failure of the last attempt until one succeeds, the reason for a
// suspension or pause, the end of the last pause, and the request to cancel.
type event struct {
	of   *partition.Record
	kind string
	at   time.Time
	body object
}

func eventsOf(r *partition.Record) (list []event) {
	modified := time.UnixMilli(r.ModifiedAt)
	if f := lastFailure(*r); f != nil && r.Status != machine.Completed {
		at := modified
		if r.Attempts != nil && !r.Attempts.LastStartAt.IsZero() {
			at = r.Attempts.LastStartAt
		}
		list = append(list, event{r, "TransientError", at, transientError(f)})
	}
	switch r.Status {
	case machine.Paused:
		body := object{"ty": "Paused"}
		if r.Failure != nil {
			body["last_failure"] = transientError(r.Failure)
		}
		pauseInto(body, r.LastPause)
		list = append(list, event{r, "Paused", modified, body})
	case machine.Suspended:
		body := object{"ty": "Suspended"}
		if r.Await != nil {
			body["awaiting_on"] = futureTree(r.Await)
		}
		list = append(list, event{r, "Suspended", modified, body})
	}
	if p := r.LastPause; p != nil && p.ResumedAt != 0 {
		body := object{"ty": "Resumed"}
		pauseInto(body, p)
		list = append(list, event{r, "Resumed", time.UnixMilli(p.ResumedAt), body})
	}
	if r.CancelRequestedAt != 0 {
		list = append(list, event{r, "CancelRequested", time.UnixMilli(r.CancelRequestedAt), object{"ty": "CancelRequested"}})
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
		cost: invocationSource.cost,
		identity: func(e *event, b []byte) []byte {
			return append(append(b, e.of.ID[:]...), e.kind...)
		},
		pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]event, error] {
			return func(yield func([]event, error) bool) {
				sel.whole = true
				scan := scanOf(partition.Invocations, sel, s.partitions().Scoped())
				scan.Statuses = []machine.Status{machine.Invoked, machine.Suspended, machine.Paused}
				for page, err := range gather(ctx, s, scan) {
					var events []event
					for i := range page {
						events = append(events, eventsOf(&page[i].Record)...)
					}
					if !yield(events, err) {
						return
					}
				}
			}
		},
	}
	return define("sys_journal_events", "What happened between journal entries: the newest failure, suspension, pause, resume and request to cancel of each invocation that is not completed.",
		src, []column[event]{
			{"partition_key", U64, "shard key of the row", func(e *event) value { return number(e.of.ID.PartitionKey()) }, byPartitionKey, false},
			{"id", Text, "invocation id", func(e *event) value { return e.of.ID.String() }, byID, false},
			{"after_journal_entry_index", U32, "entry after which it happened", func(e *event) value { return number(max(e.of.Length, 1) - 1) }, noField, false},
			{"appended_at", Timestamp, "when", func(e *event) value { return moment(e.at) }, noField, false},
			{"event_type", Text, "TransientError, Paused, Resumed, Suspended or CancelRequested", func(e *event) value { return e.kind }, noField, false},
			{"event_json", Text, "what happened", func(e *event) value { return jsonText(e.body) }, noField, false},
		})
}
