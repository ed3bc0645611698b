package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *app) describeQueue(q client.VQueue, head client.VQueueHead, entries []client.VQueueEntry, scope []client.ScopePause) {
	scopePaused := ""
	for _, p := range scope {
		scopePaused = a.pausedText(true) + a.pauseDetails(p.At, p.By, p.Reason)
	}
	a.Print.Heading("VQueue Information")
	a.Print.Fields("  ",
		term.Field{Name: "ID", Value: q.ID},
		term.Field{Name: "Service", Value: term.Clean(q.Service)},
		term.Field{Name: "Scope", Value: q.Scope},
		term.Field{Name: "Limit key", Value: q.LimitKey},
		term.Field{Name: "Lock", Value: term.Clean(q.Lock)},
		term.Field{Name: "Paused", Value: a.pausedText(q.Paused) + a.pauseDetails(q.PausedAt, q.PausedBy, q.Reason)},
		term.Field{Name: "Scope paused", Value: scopePaused},
		term.Field{Name: "Created", Value: a.Print.Time(q.CreatedAt)},
		term.Field{Name: "Last enqueued", Value: a.Print.Time(q.LastEnqueuedAt)},
		term.Field{Name: "Last started", Value: a.Print.Time(q.LastStartAt)},
		term.Field{Name: "Last finished", Value: a.Print.Time(q.LastFinishAt)},
		term.Field{Name: "Average wait", Value: isoText(q.AverageQueue)},
		term.Field{Name: "Average run", Value: isoText(q.AverageRun)},
		term.Field{Name: "Average total", Value: isoText(q.AverageEndToEnd)},
		term.Field{Name: "Head", Value: head.Entry},
		term.Field{Name: "Head status", Value: head.Status},
		term.Field{Name: "Head scheduled", Value: a.Print.Time(head.ScheduledAt)},
		term.Field{Name: "Head waits for", Value: a.heldBy(&head)},
	)
	a.Print.Println()
	a.Print.Heading("Entries")
	a.Print.Table("", []string{"INBOX", "RUNNING", "SUSPENDED", "PAUSED", "FINISHED"}, [][]string{{
		countOfEntries(q.Inbox), countOfEntries(q.Running), countOfEntries(q.Suspended), countOfEntries(q.Held), countOfEntries(q.Finished),
	}})
	if len(entries) == 0 {
		return
	}
	a.Print.Println()
	rows := make([][]string, len(entries))
	for i, e := range entries {
		rows[i] = []string{e.ID, e.Stage, e.Status, a.Print.Time(e.CreatedAt), command.OrDash(a.Print.Time(e.Transition)), strconv.Itoa(e.NumAttempts)}
	}
	a.Print.Table("", []string{"ID", "STAGE", "STATUS", "CREATED-AT", "IN-STAGE-SINCE", "ATTEMPTS"}, rows)
}

// pauseDetails describes when an operator paused something, from where and why, if known.
func (a *app) pauseDetails(at time.Time, by, reason string) (text string) {
	if !at.IsZero() {
		text += " at " + a.Print.Time(at)
	}
	if by != "" {
		text += " from " + term.Clean(by)
	}
	if reason != "" {
		text += ": " + term.Clean(reason)
	}
	return text
}

// isoText formats an SQL duration for display.
func isoText(iso string) string {
	d, err := units.ParseDuration(iso)
	if err != nil {
		return term.Clean(iso)
	}
	return term.Duration(d)
}

// blockedBy is what blocks the head of a queue, as in sys_scheduler.
type blockedBy struct {
	Rule  string    `json:"blocked_rule"`
	Lock  string    `json:"lock_name"`
	Usage uint64    `json:"usage"`
	Until time.Time `json:"until"`
}

// heldBy describes what the head of a queue waits for.
func (a *app) heldBy(head *client.VQueueHead) string {
	var d blockedBy
	_ = json.Unmarshal([]byte(head.Details), &d)
	text := head.BlockedOn
	switch {
	case text == "paused":
		text = "a resume: the queue is paused"
	case text == "lock" && d.Lock != "":
		text = "the key of " + d.Lock + ", which another invocation holds"
	case text == "lock":
		text = "the keys of objects, which other invocations hold"
	case d.Rule == "":
	case text == "throttling-rules":
		if text = "the rate of the rule " + d.Rule; !d.Until.IsZero() {
			text += ", until " + a.Print.Time(d.Until)
		}
	default:
		if text = "the concurrency limit of the rule " + d.Rule; d.Usage > 0 {
			text += fmt.Sprintf(" (%d running)", d.Usage)
		}
	}
	return term.Clean(text)
}
