package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"platform/flowcontrol"
	"platform/internal/suggest"
)

// pending explains an invocation that has not been admitted: it waits for its object or in a
// vqueue.
func (e *explainer) pending(ctx context.Context) error {
	line, err := e.reader.Query(ctx, "SELECT num_ahead FROM sys_inbox WHERE id = "+quote(e.ID))
	if err != nil {
		return err
	}
	if len(line) > 0 {
		return e.locked(ctx, line[0].Number("num_ahead"))
	}
	queued, err := e.queued(ctx)
	if err == nil && !queued {
		e.summary("It has just left its queue.")
		e.next("Repeat the command: it is about to start.")
	}
	return err
}

// locked explains an invocation that waits for its object.
func (e *explainer) locked(ctx context.Context, ahead int) error {
	service, key, scope := e.row.Text("target_service_name"), e.row.Text("target_service_key"), e.row.Text("scope")
	e.summary("It waits for %s/%s, which only one handler at a time can hold%s.", service, key, e.since(e.row.Time("inboxed_at")))
	if ahead > 0 {
		e.detail("Queue", "%s before it.", waiting(ahead))
	}
	where := "l.scope IS NULL"
	if scope != "" {
		where = "l.scope = " + quote(scope)
	}
	holder, err := e.reader.Query(ctx, fmt.Sprintf(
		"SELECT l.acquired_by, l.acquired_at, i.target, i.status FROM sys_locks l LEFT JOIN sys_invocation i ON i.id = l.acquired_by WHERE l.lock_name = %s AND %s", quote(service+"/"+key), where))
	if err != nil {
		return err
	}
	if len(holder) == 0 {
		e.next("Repeat the command: the key is free, and it is about to start.")
		return nil
	}
	h := holder[0]
	id := h.Text("acquired_by")
	e.waits(ForObject, id, "The key is held by %s (%s, %s)%s.", id, h.Text("target"), h.Text("status"), e.since(h.Time("acquired_at")))
	e.next("`platform explain %s` explains the status of the holder.", id)
	return nil
}

// waiting formats a number of waiting invocations. Large numbers are approximate.
func waiting(n int) string {
	if n > flowcontrol.MaxCounted {
		return fmt.Sprintf("About %d invocations wait", n)
	}
	if n == 1 {
		return "1 invocation waits"
	}
	return fmt.Sprintf("%d invocations wait", n)
}

// queued explains an invocation that waits in a vqueue; it returns false if it does not.
func (e *explainer) queued(ctx context.Context) (bool, error) {
	rows, err := e.reader.Query(ctx, `SELECT v.id, v.num_ahead, s.num_inbox, s.status, s.blocked_on, s.blocked_on_json, s.head_entry_id, m.queue_is_paused, m.paused_at, m.paused_by, m.pause_reason
		FROM sys_vqueues v LEFT JOIN sys_scheduler s ON s.id = v.id LEFT JOIN sys_vqueue_meta m ON m.id = v.id
		WHERE v.stage = 'inbox' AND v.entry_id = `+quote(e.ID))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	row := rows[0]
	queue := row.Text("id")
	if ahead := row.Number("num_ahead"); ahead == 0 {
		e.summary("It is the first in the queue %s%s.", queue, e.since(e.row.Time("inboxed_at")))
	} else {
		e.summary("It waits in the queue %s%s. %s before it.", queue, e.since(e.row.Time("inboxed_at")), waiting(ahead))
	}
	if row.Text("queue_is_paused") == "true" {
		e.waits(ForQueue, queue, "The queue was paused by an operator%s.", pauseDetails(row.Time("paused_at"), row.Text("paused_by"), row.Text("pause_reason")))
		e.next("`platform vqueues resume %s` resumes it.", queue)
		return true, nil
	}
	return true, e.blocked(ctx, queue, row)
}

// blocked explains what blocks the head of a vqueue.
func (e *explainer) blocked(ctx context.Context, queue string, row Row) error {
	var d blockedBy
	_ = json.Unmarshal([]byte(row.Text("blocked_on_json")), &d)
	switch on := row.Text("blocked_on"); {
	case on == "scope-paused":
		return e.scopePaused(ctx, queue, d.Scope)
	case d.Rule != "" && on == "throttling-rules":
		until := ""
		if !d.Until.IsZero() {
			until = "; the next one starts at " + e.when(d.Until)
		}
		e.waits(ForQueue, queue, "The rate limit of rule %s is reached%s.", d.Rule, until)
		e.next("Wait, or raise the rate: `platform rules set %s --rate <n>/<period>`.", suggest.Word(d.Rule))
	case d.Rule != "":
		counters, err := e.reader.Query(ctx, "SELECT concurrency_limit, usage FROM sys_user_limits WHERE "+d.counter())
		if err != nil {
			return err
		}
		if len(counters) == 0 {
			e.waits(ForQueue, queue, "It is blocked by rule %s.", d.Rule)
		}
		for _, r := range counters {
			verb, noun := "are", "invocations"
			if r.Number("usage") == 1 {
				verb = "is"
			}
			if r.Number("concurrency_limit") == 1 {
				noun = "invocation"
			}
			e.waits(ForQueue, queue, "Rule %s allows %s concurrent %s; %s %s running.", d.Rule, r.Text("concurrency_limit"), noun, r.Text("usage"), verb)
		}
		e.next("Wait, or raise the limit: `platform rules set %s --concurrency <n>`.", suggest.Word(d.Rule))
	case on == "lock":
		e.waits(ForQueue, queue, "The invocations in the queue wait for the keys of their objects, which other invocations hold.")
	case on != "":
		e.waits(ForQueue, queue, "The head of the queue is blocked by: %s.", on)
	case row.Text("status") != "":
		e.detail("Queue", "The queue is %s.", row.Text("status"))
	}
	return nil
}

// scopePaused explains a queue whose scope an operator has paused.
func (e *explainer) scopePaused(ctx context.Context, queue, scope string) error {
	rows, err := e.reader.Query(ctx, "SELECT paused_at, paused_by, pause_reason FROM sys_user_limits WHERE level = 'Scope' AND scope = "+quote(scope))
	if err != nil {
		return err
	}
	details := ""
	if len(rows) > 0 {
		details = pauseDetails(rows[0].Time("paused_at"), rows[0].Text("paused_by"), rows[0].Text("pause_reason"))
	}
	e.waits(ForQueue, queue, "The scope %s was paused by an operator%s.", scope, details)
	e.next("`platform vqueues resume --scope %s` resumes it.", suggest.Word(scope))
	return nil
}

// blockedBy is what blocks the head of a vqueue, as in sys_scheduler.
type blockedBy struct {
	Scope    string    `json:"scope"`
	LimitKey string    `json:"limit_key"`
	Level    string    `json:"blocked_level"`
	Rule     string    `json:"blocked_rule"`
	Until    time.Time `json:"until"`
}

// counter returns the condition that selects the exhausted counter in sys_user_limits: a rule with
// a wildcard has a counter per matching scope.
func (d *blockedBy) counter() string {
	where := "scope = " + quote(d.Scope)
	if d.Level == "" {
		return where + " AND rule_pattern = " + quote(d.Rule)
	}
	where += " AND level = " + quote(d.Level)
	first, second, _ := strings.Cut(d.LimitKey, "/")
	if d.Level != "Scope" {
		where += " AND l1 = " + quote(first)
	}
	if d.Level == "Level2" {
		where += " AND l2 = " + quote(second)
	}
	return where
}
