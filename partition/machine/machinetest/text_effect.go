package machinetest

import (
	"fmt"

	"platform/partition/journal"
	"platform/partition/machine"
)

// timer formats a timer.
func (n Names) timer(t machine.Timer) string {
	kind := []string{"sleep", "start", "purge", "purge-journal", "queue", "answers", "promise", "kill", "update", "drop-sleeps", "rules"}[t.Kind]
	if t.Kind == machine.TimerQueue || t.Kind == machine.TimerPromise || t.Kind == machine.TimerRules {
		return fmt.Sprintf("%s of %s at %d", kind, t.Name, t.At)
	}
	if t.Kind == machine.TimerSleep {
		kind += fmt.Sprintf(" %d", t.Completion)
	}
	return fmt.Sprintf("%s of %s at %d", kind, n.Of(t.ID), t.At)
}

// message formats a message between partitions.
func (n Names) message(msg machine.Message) string {
	switch msg := msg.(type) {
	case *machine.Invoke:
		text := fmt.Sprintf("invoke %s %s", n.Of(msg.ID), msg.Target)
		if msg.Sink != nil {
			text += " sink=" + n.sink(*msg.Sink)
		}
		return text
	case *machine.Complete:
		if msg.Void {
			return fmt.Sprintf("complete %s with void", n.sink(msg.Sink))
		}
		return fmt.Sprintf("complete %s with %s", n.sink(msg.Sink), result(msg.Result))
	case *machine.Signal:
		text := fmt.Sprintf("%s to %s", notificationID(msg.ID), n.Of(msg.Target))
		if msg.Result != nil {
			text += " with " + result(*msg.Result)
		}
		return text
	case *machine.Kill:
		return "kill " + n.Of(msg.Target)
	case *machine.Attach:
		what := "attach to "
		if msg.Sink.Type == journal.GetInvocationOutputCompletion {
			what = "output of "
		}
		return what + n.Of(msg.Target) + " for " + n.sink(msg.Sink)
	}
	return fmt.Sprintf("%T", msg)
}

// Effect formats an effect.
func (n Names) Effect(e machine.Effect) string {
	switch e := e.(type) {
	case *machine.Run:
		text := fmt.Sprintf("run %s attempt=%d journal=%d", n.Of(e.Invocation.ID), e.Invocation.Attempt, e.Invocation.Length)
		if e.Input != nil {
			text += fmt.Sprintf(" input=%q", e.Input)
		}
		return text
	case *machine.Notify:
		return fmt.Sprintf("notify %s attempt=%d [%d] %s", n.Of(e.ID), e.Attempt, e.Index, n.entry(e.Entry))
	case *machine.Abort:
		return fmt.Sprintf("abort %s attempt=%d", n.Of(e.ID), e.Attempt)
	case *machine.Yield:
		return fmt.Sprintf("yield %s attempt=%d", n.Of(e.ID), e.Attempt)
	case *machine.Hasten:
		text := fmt.Sprintf("hasten %s attempt=%d", n.Of(e.ID), e.Attempt)
		if e.Cancel {
			text += " cancel"
		}
		return text
	case *machine.Finish:
		return fmt.Sprintf("finish %s with %s expires-at=%d", n.Of(e.ID), result(e.Result), e.ExpiresAt)
	case *machine.SetTimer:
		return "set timer " + n.timer(e.Timer)
	case *machine.Send:
		return fmt.Sprintf("send to %d[%d] %s", e.To, e.Seq, n.message(e.Message))
	}
	return fmt.Sprintf("%T", e)
}

var codes = [...]string{
	machine.OK: "ok", machine.Stale: "stale", machine.Existing: "existing", machine.Conflict: "conflict", machine.Invalid: "invalid",
	machine.NotFound: "not found", machine.Ended: "ended", machine.NotEnded: "not ended", machine.NotStarted: "not started",
	machine.Running: "running", machine.NotPinned: "not pinned", machine.Incompatible: "incompatible", machine.NoInput: "no input",
	machine.Unsupported: "unsupported", machine.OutOfRange: "out of range", machine.Unanswered: "unanswered",
	machine.QueueFull: "queue full", machine.Gap: "gap", machine.Superseded: "superseded", machine.Forgotten: "forgotten",
	machine.DeadLettersFull: "dead letters full", machine.TooLarge: "too large", machine.SignalsFull: "signals full",
}

// Outcome formats an outcome.
func Outcome(o machine.Outcome) string {
	text := codes[o.Code]
	if o.Rule != "" {
		text += " rule=" + o.Rule
	}
	if o.Status != 0 {
		text += " " + o.Status.String()
	}
	if o.Result != nil {
		text += " " + result(*o.Result)
	}
	if o.StartAt != 0 {
		text += fmt.Sprintf(" start-at=%d", o.StartAt)
	}
	if o.ExpiresAt != 0 {
		text += fmt.Sprintf(" expires-at=%d", o.ExpiresAt)
	}
	if o.Last != 0 {
		text += fmt.Sprintf(" last=%d", o.Last)
	}
	return text
}
