package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"platform/admin/explain"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

// listInvocations prints one block per invocation and a footer.
func (a *app) listInvocations(list []found, more bool, s selection) {
	for i, inv := range list {
		if i > 0 {
			a.Print.Println()
		}
		a.Print.Printf("%s [%s] %s\n", a.Print.Bold("❯"), a.Print.Time(inv.CreatedAt), a.Print.Bold(inv.ID))
		brief := inv.Invocation
		brief.LastFailure, brief.CompletionFailure = explain.Brief(inv.LastFailure, inv.ID), explain.Brief(inv.CompletionFailure, inv.ID)
		a.Print.Fields("  ", a.invocationFields(brief)...)
	}
	count, note := strconv.Itoa(len(list)), ""
	if more {
		count += "+"
		note = " Use --limit to see more."
	}
	if len(list) == 0 && !s.active && len(s.Status) == 0 {
		note += " Completed invocations are deleted after their retention time."
	}
	a.Say("%s", a.Hint.Dim(fmt.Sprintf("Showing %d/%s invocations.%s", len(list), count, note)))
}

func (a *app) invocationFields(inv client.Invocation) []term.Field {
	return []term.Field{
		{Name: "Target", Value: term.Clean(inv.Target)},
		{Name: "Scope", Value: term.Clean(scopeText(inv))},
		{Name: "Status", Value: a.statusText(inv)},
		{Name: "Idempotency key", Value: term.Clean(inv.IdempotencyKey)},
		{Name: "Invoked by", Value: invoker(inv)},
		{Name: "Deployment", Value: pinned(inv)},
		{Name: "Error", Value: a.failureText(inv)},
	}
}

// scopeText is the scope and the limit key, if any.
func scopeText(inv client.Invocation) string {
	if inv.LimitKey == "" {
		return inv.Scope
	}
	return inv.Scope + ", limit key " + inv.LimitKey
}

// statusText is the status and its duration.
func (a *app) statusText(inv client.Invocation) string {
	status := a.colourStatus(inv.Status, inv.CompletionResult)
	switch inv.Status {
	case "completed":
		if inv.CompletionResult != "" {
			status += " with " + inv.CompletionResult
		}
		if took := inv.CompletedAt.Sub(inv.CreatedAt); !inv.CompletedAt.IsZero() {
			status += " after " + term.Duration(took)
		}
	case "scheduled":
		if !inv.ScheduledStartAt.IsZero() {
			status += " to start at " + a.Print.Time(inv.ScheduledStartAt)
		}
	case "backing-off":
		if inv.RetryCount > 0 {
			status += " after " + units.Counted(inv.RetryCount, "attempt")
		}
		status += a.nextText(inv)
	default:
		since, first := inv.ModifiedAt, ""
		if inv.Status == "running" && !inv.RunningAt.IsZero() {
			since = inv.RunningAt
			if latest := laterStart(inv); !latest.IsZero() {
				since, first = latest, ", first started "+term.Duration(time.Since(since))+" ago"
			}
		}
		if !since.IsZero() {
			status += " for " + term.Duration(time.Since(since))
		}
		if inv.RetryCount > 1 {
			status += fmt.Sprintf(", attempt %d", inv.RetryCount) + a.nextText(inv)
		}
		status += first
		if !inv.NoResponseSince.IsZero() {
			status += fmt.Sprintf(", no response since %s, ends at %s", a.Print.Time(inv.NoResponseSince), a.Print.Time(inv.AbortAt))
		}
		if inv.PauseRequested {
			status += ", pause requested" + pausedBy(inv.LastPause)
		}
		if inv.Status == "paused" {
			status += pausedBy(inv.LastPause)
		}
	}
	if inv.Status != "completed" && !inv.CancelRequestedAt.IsZero() {
		status += ", cancellation requested at " + a.Print.Time(inv.CancelRequestedAt)
		if inv.Status == "suspended" && inv.ModifiedAt.After(inv.CancelRequestedAt) {
			status += ", which does not end what it waits for now"
		} else {
			status += ", the handler gets it at its next await point"
		}
	}
	return status
}

// laterStart returns the start of the latest attempt, zero if it is the first one or unknown.
func laterStart(inv client.Invocation) time.Time {
	if inv.LastStartAt.Sub(inv.RunningAt) < time.Second {
		return time.Time{}
	}
	return inv.LastStartAt
}

// pausedBy is who paused an invocation or why, to follow its status.
func pausedBy(p *client.Pause) string {
	switch {
	case p == nil:
		return ""
	case p.Cause == "attempts-used-up" && p.Attempts > 0:
		return fmt.Sprintf(", the maximum number of attempts was reached (%d failed)", p.Attempts)
	case p.Cause == "attempts-used-up":
		return ", the maximum number of attempts was reached"
	case p.Cause == "unretryable-failure":
		return ", its failure is not retried"
	case p.Cause == "deployment-change":
		return " to continue on deployment " + term.Clean(p.Reason)
	}
	text := " by an operator"
	if p.By != "" {
		text += " from " + term.Clean(p.By)
	}
	if p.Reason != "" {
		text += ": " + term.Clean(p.Reason)
	}
	return text
}

// nextText is the start of the next attempt, if that is known.
func (a *app) nextText(inv client.Invocation) string {
	if inv.NextRetryAt.IsZero() {
		return ""
	}
	return ", next attempt at " + a.Print.Time(inv.NextRetryAt)
}

func (a *app) colourStatus(status, result string) string {
	switch status {
	case "completed":
		if result == "failure" {
			return a.Print.Red(status)
		}
		return a.Print.Green(status)
	case "backing-off", "paused":
		return a.Print.Yellow(status)
	case "running", "ready":
		return a.Print.Blue(status)
	}
	return status
}

func invoker(inv client.Invocation) string {
	words := []string{inv.InvokedBy}
	for _, more := range []string{term.Clean(inv.InvokedByTarget), inv.InvokedByID} {
		if more != "" {
			words = append(words, more)
		}
	}
	return strings.Join(words, " ")
}

// pinned names the deployment; an invocation that is not completed requires it. Until its first step is stored, an invocation
// has no deployment, and that of its latest attempt is named.
func pinned(inv client.Invocation) string {
	text := inv.PinnedDeploymentID
	switch {
	case text == "" && inv.LastAttemptDeployment == "":
		return ""
	case text == "":
		text = inv.LastAttemptDeployment
	case inv.Status != "completed":
		text += " [required]"
	}
	if inv.LastAttemptServer != "" {
		text += " using " + term.Clean(inv.LastAttemptServer)
	}
	return text
}

// failureText is the final failure, or the latest one of an attempt.
func (a *app) failureText(inv client.Invocation) string {
	text := inv.CompletionFailure
	if text == "" && inv.Status != "completed" {
		text = inv.LastFailure
		if code := inv.LastFailureErrorCode; code != "" && !strings.Contains(text, "["+code+"]") {
			text = "[" + code + "] " + text
		}
	}
	return a.Print.Red(term.Clean(strings.TrimSpace(text)))
}
