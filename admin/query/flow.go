package query

import (
	"context"
	"iter"
	"time"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

// converted is the source of a table whose rows are made of those of partitions; ok is
// false for those that it does not have.
func converted[R any](table partition.Table, convert func(*row) (r R, ok bool), identity func(*R, []byte) []byte) source[R] {
	rows := scanned(table, nil)
	return source[R]{
		identity: identity,
		cost:     rows.cost,
		pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]R, error] {
			return func(yield func([]R, error) bool) {
				sel.whole = true
				for page, err := range rows.pages(ctx, s, sel) {
					var out []R
					for i := range page {
						if r, ok := convert(&page[i]); ok {
							out = append(out, r)
						}
					}
					if !yield(out, err) {
						return
					}
				}
			}
		},
	}
}

// keyOf is the partition key that everything of a scope has.
func keyOf(scope string) uint64 { return ids.HashKey(scope) }

// queueRow is a vqueue.
type queueRow struct{ *partition.Queue }

var queueSource = converted(partition.Queues, func(r *row) (queueRow, bool) { return queueRow{r.Queue}, true },
	func(q *queueRow, b []byte) []byte { return append(b, q.ID[:]...) })

// headRow is a vqueue in which some wait.
var headSource = converted(partition.Queues, func(r *row) (queueRow, bool) {
	return queueRow{r.Queue}, r.Queue.Stages[flowcontrol.Inbox]+r.Queue.Stages[flowcontrol.Scheduled] > 0
}, queueSource.identity)

// status is how the head of a queue stands.
func (q *queueRow) status() string {
	switch {
	case q.Stages[flowcontrol.Inbox] == 0:
		return "scheduled"
	case q.Blocked.Cause == flowcontrol.ByPause:
		return "dormant"
	case q.Blocked.Cause != flowcontrol.NotBlocked:
		return "blocked"
	}
	return "ready"
}

// details say what holds the head back.
func (q *queueRow) details() value {
	b := &q.Blocked
	if b.Cause == flowcontrol.NotBlocked {
		return nil
	}
	details := object{"resource": b.Cause.String(), "scope": q.Key.Scope}
	if k := q.Key.LimitKey.String(); k != "" {
		details["limit_key"] = k
	}
	if b.Rule != nil {
		details["blocked_level"], details["blocked_rule"] = b.Counter.Level().String(), b.Rule.Pattern.String()
	}
	if b.Used > 0 {
		details["usage"] = b.Used
	}
	if b.Until > 0 {
		details["until"] = timestampText(time.UnixMilli(b.Until))
	}
	return jsonText(details)
}

// waited is for how long the head has waited, if it is held back by a cause.
func (q *queueRow) waited(now time.Time, cause flowcontrol.Cause) value {
	if q.Blocked.Cause != cause || q.Head.At == 0 {
		return int64(0)
	}
	return max(0, now.UnixMilli()-q.Head.At)
}

// entryRow of a vqueue is an invocation that has one.
type vqueueEntry struct{ *machine.Invocation }

var entrySource = converted(partition.Invocations, func(r *row) (vqueueEntry, bool) {
	return vqueueEntry{r.Record.Invocation}, r.Record.Flow != nil
}, func(e *vqueueEntry, b []byte) []byte { return append(b, e.ID[:]...) })

// vqueueOf is the vqueue of an invocation.
func vqueueOf(inv *machine.Invocation) value {
	if inv.Flow == nil {
		return nil
	}
	return inv.VQueue().ID().String()
}

// status is what an entry's last transition was.
func (e *vqueueEntry) status() string {
	switch {
	case e.Killed:
		return "killed"
	case e.Result != nil && e.Result.Failure != nil:
		return "failed"
	case e.Result != nil:
		return "succeeded"
	case e.Status == machine.Scheduled:
		return "scheduled"
	case e.Flow.Starts > 0:
		return "started"
	}
	return "new"
}

// stage is the stage of an entry; those that are scheduled are told to be in the inbox.
func (e *vqueueEntry) stage() string {
	if e.Flow.Stage == flowcontrol.Scheduled {
		return flowcontrol.Inbox.String()
	}
	return e.Flow.Stage.String()
}

func usageIdentity(u **partition.Usage, b []byte) []byte {
	for _, part := range []string{(*u).Key.Scope, (*u).Key.LimitKey.L1, (*u).Key.LimitKey.L2} {
		b = append(append(b, part...), 0)
	}
	return b
}
