package machinetest

import (
	"fmt"
	"strconv"
	"strings"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// invocation formats the nonzero fields of a record.
func (n Names) invocation(inv *machine.Invocation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ", inv.Status)
	if inv.Target.Scope != "" {
		fmt.Fprintf(&b, "%s:", flowcontrol.CounterKey{Scope: inv.Target.Scope, LimitKey: inv.VQueue().LimitKey})
	}
	b.WriteString(inv.Target.String())
	field := func(name string, value any, shown bool) {
		if shown {
			fmt.Fprintf(&b, " %s=%v", name, value)
		}
	}
	field("attempt", inv.Attempt, inv.Attempt != 0)
	field("journal", fmt.Sprintf("%d/%d", inv.Length, inv.Commands), true)
	field("output", inv.Output, inv.Output != 0)
	field("sleeps", inv.Sleeps, inv.Sleeps != 0)
	field("lock", "held", inv.HoldsLock)
	field("pause", "requested", inv.Pausing)
	if p := inv.LastPause; p != nil {
		field("paused-because", []string{"unknown", "operator", "attempts", "failure", "deployment"}[p.Cause], true)
		field("paused-by", p.By, p.By != "")
		field("paused-reason", strconv.Quote(p.Reason), p.Reason != "")
		field("failed-attempts", p.Attempts, p.Attempts != 0)
		field("paused", p.At, true)
		field("resumed", p.ResumedAt, p.ResumedAt != 0)
	}
	field("cancel-requested", inv.CancelRequestedAt, inv.CancelRequestedAt != 0)
	field("events", fmt.Sprintf("%d-%d", inv.History.First, inv.History.Next), inv.History != machine.History{})
	for _, c := range inv.Causes {
		field("cause", fmt.Sprintf("%d@%d", c.ID, c.Since), true)
	}
	field("failed", fmt.Sprintf("%d/%d/%d", inv.Failed.Total, inv.Failed.Counted, inv.Failed.SinceCommand), inv.Failed != machine.FailedAttempts{})
	field("signalled", "yes", inv.Signalled)
	field("seen", inv.Seen, inv.Signalled)
	field("killed", "yes", inv.Killed)
	field("seed-of", n.seed(inv.Seed), inv.Seed != 0)
	field("queue", inv.QueueSeq, inv.Status == machine.Inboxed)
	field("priority", inv.Priority, inv.Priority != 0)
	if f := inv.Flow; f != nil {
		field("waited-for-key", f.Lock.Total, f.Lock.Total != 0)
		field("waited-for-slot", f.Rules.Total, f.Rules.Total != 0)
		field("throttled", f.Throttling.Total, f.Throttling.Total != 0)
	}
	field("pin", fmt.Sprintf("%s/%d", inv.Pin.Deployment, inv.Pin.Protocol), inv.Pin != machine.Pin{})
	field("caller", fmt.Sprintf("%s(%s)", n.Of(inv.Source.Caller), inv.Source.CallerTarget), inv.Source.Kind == machine.FromService)
	field("restarted-from", n.Of(inv.RestartedFrom), !inv.RestartedFrom.IsZero())
	if inv.IdempotencyKey != nil {
		field("idempotency-key", fmt.Sprintf("%q", *inv.IdempotencyKey), true)
	}
	for _, s := range inv.Sinks {
		field("sink", n.sink(s), true)
	}
	if inv.Await != nil {
		field("await", Await(inv.Await), true)
	}
	if inv.Failure != nil {
		field("failure", fmt.Sprintf("%d:%q", inv.Failure.Code, inv.Failure.Message), true)
	}
	if inv.Result != nil {
		field("result", result(*inv.Result), true)
		field("result-in-journal", inv.Output, inv.ResultInJournal)
	}
	for _, t := range []struct {
		name string
		at   int64
	}{
		{"created", inv.CreatedAt}, {"modified", inv.ModifiedAt}, {"scheduled", inv.ScheduledAt}, {"inboxed", inv.InboxedAt}, {"running", inv.RunningAt},
		{"progress", inv.ProgressAt}, {"completed", inv.CompletedAt}, {"start-at", inv.StartAt}, {"expires-at", inv.ExpiresAt},
	} {
		field(t.name, t.at, t.at != 0)
	}
	return b.String()
}

// eventText formats an event of a history.
func eventText(e *machine.Event) string {
	text := []string{"none", "attempt failed", "paused", "resumed", "cancel requested"}[e.Kind]
	if e.Failure != nil {
		text += fmt.Sprintf(" failure=%d:%q", e.Failure.Code, e.Failure.Message)
	}
	if e.Attempts > 0 {
		text += fmt.Sprintf(" failed-attempts=%d", e.Attempts)
	}
	if e.Pause != nil {
		text += fmt.Sprintf(" paused=%d resumed=%d", e.Pause.At, e.Pause.ResumedAt)
	}
	return text + fmt.Sprintf(" at=%d entries=%d", e.At, e.Entries)
}

// seed returns the name of the invocation from whose ID the seed is derived.
func (n Names) seed(seed uint64) string {
	for id, name := range n {
		if id.RandomSeed() == seed {
			return name
		}
	}
	return fmt.Sprint(seed)
}

// promise formats the result or the waiters.
func (n Names) promise(p machine.Promise) string {
	if p.Result != nil {
		return result(*p.Result)
	}
	var waiting []string
	for _, s := range p.Waiting {
		waiting = append(waiting, n.sink(s))
	}
	return "waited for by " + strings.Join(waiting, ", ")
}

func (n Names) sink(s machine.Sink) string { return fmt.Sprintf("%s:%d", n.Of(s.Caller), s.Completion) }

// result formats a value in quotes, or a failure with its code.
func result(r journal.Result) string {
	if r.Failure != nil {
		return fmt.Sprintf("failure %d %q", r.Failure.Code, r.Failure.Message)
	}
	return fmt.Sprintf("%q", r.Value)
}

// Await formats an await as its combinator and its leaves: numbers for completions, s1 for
// signals.
func Await(f *journal.Future) string {
	var parts []string
	for _, c := range f.Completions {
		parts = append(parts, fmt.Sprint(c))
	}
	for _, s := range f.Signals {
		parts = append(parts, fmt.Sprintf("s%d", s))
	}
	parts = append(parts, f.Names...)
	for i := range f.Nested {
		parts = append(parts, Await(&f.Nested[i]))
	}
	return []string{"unknown", "first", "all", "any-ok", "all-ok"}[f.Combinator] + "(" + strings.Join(parts, ",") + ")"
}

// entry formats a journal entry with the content that the machine reads.
func (n Names) entry(e journal.Entry) string { return e.Type.String() + n.content(e) }

func (n Names) content(e journal.Entry) string {
	if e.Type.IsNotification() {
		c, err := journal.ParseNotification(e.Payload)
		if err != nil {
			return " " + err.Error()
		}
		return fmt.Sprintf(" %s %s", notificationID(c.ID), n.answer(&c))
	}
	switch e.Type {
	case journal.Output:
		if r, err := journal.ParseOutput(e.Payload); err == nil {
			return " " + result(r)
		}
	case journal.SetState, journal.ClearState, journal.GetLazyState:
		if c, err := journal.ParseState(e.Type, e.Payload); err == nil {
			return fmt.Sprintf(" %s", c.Key)
		}
	case journal.Sleep:
		if c, err := journal.ParseSleep(e.Payload); err == nil {
			return fmt.Sprintf(" until %d, completion %d", c.WakeUpTime, c.Completion)
		}
	case journal.Call:
		if c, err := journal.ParseCall(e.Payload); err == nil {
			return fmt.Sprintf(" %s/%s, completion %d", c.Service, c.Handler, c.Completion)
		}
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		if c, err := journal.ParsePromise(e.Type, e.Payload); err == nil {
			return fmt.Sprintf(" %s, completion %d", c.Key, c.Completion)
		}
	case journal.SendSignal:
		if c, err := journal.ParseSendSignal(e.Payload); err == nil {
			return fmt.Sprintf(" %s to %s", notificationID(c.ID), n.Of(c.Target))
		}
	case journal.CompleteAwakeable:
		if c, err := journal.ParseCompleteAwakeable(e.Payload); err == nil {
			return fmt.Sprintf(" %d of %s", c.ID.Index, n.Of(c.Target))
		}
	case journal.AttachInvocation, journal.GetInvocationOutput:
		if c, err := journal.ParseAttach(e.Type, e.Payload); err == nil {
			return fmt.Sprintf(" %s, completion %d", n.Of(c.Target), c.Completion)
		}
	}
	return ""
}

func (n Names) answer(c *journal.Notification) string {
	switch c.Variant {
	case journal.InvocationID:
		if id, err := ids.ParseInvocation(c.InvocationID); err == nil {
			return n.Of(id)
		}
		return c.InvocationID
	case journal.StateKeys:
		return fmt.Sprintf("keys %q", c.StateKeys)
	}
	if r, ok := c.Result(); ok {
		return result(r)
	}
	return "void"
}
