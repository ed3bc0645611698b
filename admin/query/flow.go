package query

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// converted returns the source of a table whose rows are derived from those of partitions; ok is
// false for rows that the table omits.
func converted[R any](table partition.Table, convert func(*session, *row) (r R, ok bool), identity func(*R, []byte) []byte) source[R] {
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
						if r, ok := convert(s, &page[i]); ok {
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

// queues returns the source of a table of queues: the vqueues, followed by the queues of objects
// without a scope, which exist only if flow control is enabled.
func queues(wanted func(*partition.Queue) bool) source[queueRow] {
	convert := func(_ *session, r *row) (queueRow, bool) { return queueRow{r.Queue}, wanted(r.Queue) }
	vqueues := converted(partition.Queues, convert, func(q *queueRow, b []byte) []byte { return append(b, q.ID[:]...) })
	lines := converted(partition.LockQueues, convert, nil)
	both := vqueues.owned(byTargetOwner, func(q *queueRow) owner { return owner{service: q.Key.Service, scope: q.Key.Scope} })
	both.pages = func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]queueRow, error] {
		return func(yield func([]queueRow, error) bool) {
			for page, err := range vqueues.pages(ctx, s, sel) {
				if !yield(page, err) {
					return
				}
			}
			if !s.partitions().Scoped() {
				return
			}
			for page, err := range lines.pages(ctx, s, sel) {
				if !yield(page, err) {
					return
				}
			}
		}
	}
	return both
}

// keyOf returns the partition key of a scope.
func keyOf(scope string) uint64 { return ids.HashKey(scope) }

// queueRow is a vqueue.
type queueRow struct{ *partition.Queue }

var queueSource = queues(func(*partition.Queue) bool { return true })

// headSource is the source of the nonempty queues.
var headSource = queues(func(q *partition.Queue) bool {
	return q.Stages[flowcontrol.Inbox]+q.Stages[flowcontrol.Scheduled] > 0
})

// key is the partition key of the queue.
func (q *queueRow) key() uint64 { return ids.Route(q.Key.Scope, q.Object) }

// status returns the state of the head of a queue.
func (q *queueRow) status() string {
	switch {
	case q.Stages[flowcontrol.Inbox] == 0:
		return "scheduled"
	case q.Blocked.Cause == flowcontrol.ByPause, q.Blocked.Cause == flowcontrol.ByScopePause:
		return "dormant"
	case q.Blocked.Cause != flowcontrol.NotBlocked:
		return "blocked"
	}
	return "ready"
}

// details returns a description of what blocks the head.
func (q *queueRow) details() value {
	b := &q.Blocked
	if b.Cause == flowcontrol.NotBlocked {
		return nil
	}
	details := object{"resource": b.Cause.String()}
	if q.Key.Scope != "" {
		details["scope"] = q.Key.Scope
	}
	if object := cmp.Or(q.Object, q.HeadKey); object != "" && b.Cause == flowcontrol.ByKey {
		details["lock_name"] = q.Key.Service + "/" + object
	}
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

// waited returns how long the head has been blocked.
func (q *queueRow) waited(now time.Time, cause flowcontrol.Cause) value {
	if q.Blocked.Cause != cause || q.Head.At == 0 {
		return int64(0)
	}
	return max(0, now.UnixMilli()-q.Head.At)
}

// vqueueEntry is an invocation in a queue.
type vqueueEntry struct {
	*row
	*machine.Invocation
}

var entrySource = converted(partition.Invocations, func(s *session, r *row) (vqueueEntry, bool) {
	inv := r.Record.Invocation
	return vqueueEntry{r, inv}, inv.Flow != nil || inLine(inv) && s.partitions().Scoped()
}, func(e *vqueueEntry, b []byte) []byte { return append(b, e.Invocation.ID[:]...) }).owned(byTargetOwner, func(e *vqueueEntry) owner { return ownerOfTarget(&e.Target) })

// inLine reports whether an invocation holds or waits for an object without a scope.
func inLine(inv *machine.Invocation) bool {
	return inv.Target.Scope == "" && (inv.HoldsLock || inv.WaitsForKey())
}

// queue returns the ID of the queue of an entry.
func (e *vqueueEntry) queue() value {
	if e.Flow == nil {
		return ids.OfVQueue("", "", e.Target.Service, e.Target.Key).String()
	}
	return vqueueOf(e.Invocation)
}

// errors returns the number of failed attempts of an entry.
func (e *vqueueEntry) errors() value {
	n := 0
	if e.Flow != nil {
		n = int(e.Flow.Errors)
	}
	if a := e.Record.Attempts; a != nil && e.Flow != nil {
		n += a.Unreported
	} else if a != nil {
		n += a.RetryCount
	}
	return number(n)
}

// vqueueOf returns the vqueue of an invocation.
func vqueueOf(inv *machine.Invocation) value {
	if inv.Flow == nil {
		return nil
	}
	return inv.VQueue().ID().String()
}

// status returns the last transition of an entry.
func (e *vqueueEntry) status() string {
	switch {
	case e.Result != nil && cancelled(e.Result.Failure):
		return "cancelled"
	case e.Killed:
		return "killed"
	case e.Result != nil && e.Result.Failure != nil:
		return "failed"
	case e.Result != nil:
		return "succeeded"
	case e.Status == machine.Scheduled:
		return "scheduled"
	case e.Invocation.Status == machine.Invoked && e.Record.Attempts != nil && !e.Record.Attempts.InFlight && e.Record.Attempts.RetryCount > 0:
		return "backing-off"
	case e.RunningAt != 0:
		return "started"
	}
	return "new"
}

// cancelled reports whether a failure is that of a cancelled invocation: the server's own failure
// if the invocation had not started, otherwise the failure that SDKs create for the cancel signal,
// recognizable by its code and message only.
func cancelled(f *journal.Failure) bool {
	return f != nil && f.Code == http.StatusConflict && (strings.EqualFold(f.Message, "canceled") || strings.EqualFold(f.Message, "cancelled"))
}

// stage returns the stage of an entry; delayed entries are in the inbox.
func (e *vqueueEntry) stage() string {
	if e.Status == machine.Scheduled {
		return flowcontrol.Inbox.String()
	}
	return e.Stage().String()
}

func usageIdentity(u **partition.Usage, b []byte) []byte {
	for _, part := range []string{(*u).Key.Scope, (*u).Key.LimitKey.L1, (*u).Key.LimitKey.L2} {
		b = append(append(b, part...), 0)
	}
	return b
}
