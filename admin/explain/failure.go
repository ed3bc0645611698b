package explain

import (
	"fmt"
	"strings"
	"time"

	"platform/internal/errcode"
	"platform/internal/units"
)

// pauseDetails describes the time, origin and reason of a pause, as far as they are known.
func pauseDetails(at time.Time, by, reason string) (text string) {
	if !at.IsZero() {
		text += " at " + point(at)
	}
	if by != "" {
		text += " from " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

func (e *explainer) failure() {
	if text := e.row.Text("last_failure"); text != "" {
		limit := maxFailureLines
		if e.row.Text("last_failure_error_code") == string(errcode.RT0016) {
			limit = maxMismatchLines
		}
		e.detail("Last failure", "The last attempt failed: %s", brief(text, e.ID, limit))
	}
	if command := e.row.Text("last_failure_related_command_type"); command != "" {
		named := strings.TrimSpace(command + " " + e.row.Text("last_failure_related_command_name"))
		e.detail("Failed command", "It failed in %s.", named)
	}
}

// Brief returns the first lines of a failure and the command that prints all of it.
func Brief(failure, id string) string { return brief(failure, id, maxFailureLines) }

func brief(failure, id string, limit int) string {
	lines := strings.Split(strings.TrimSpace(failure), "\n")
	if len(lines) <= limit {
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines[:limit-1], "\n") +
		fmt.Sprintf("\n… and %d lines more: `platform invocations describe %s`", len(lines)-limit+1, id)
}

// Limits of the lines of a failure. SDKs describe a journal mismatch in several lines, the last of
// which contain the difference.
const (
	maxFailureLines  = 4
	maxMismatchLines = 16
)

func (e *explainer) backingOff() {
	next := e.row.Time("next_retry_at")
	if next.IsZero() {
		e.waitsForNode("Its last attempt failed. The next one is due")
	} else {
		e.summary("Its last attempt failed; the next one starts at %s.", e.when(next))
	}
	last := e.attemptedAt()
	if last != "" {
		last = ", the latest" + last
	}
	e.detail("Attempts", "%s so far%s.", units.Counted(max(1, e.row.Number("retry_count")), "attempt"), last)
	e.failure()
	e.undeployed()
	e.code()
	if e.row.Text("last_failure_error_code") == string(errcode.RT0011) && e.row.Text("pinned_deployment_id") != "" {
		e.next("It started on a deployment that was removed: `platform invocations resume %s --deployment latest` continues it on the latest deployment of its service.", e.ID)
		return
	}
	e.elsewhere()
	if e.row.Text("last_failure_error_code") == string(errcode.RT0016) {
		e.next("It is retried automatically, but each attempt fails until code with the steps of its journal runs at the address.")
		return
	}
	if !next.IsZero() {
		e.next("It is retried automatically. `platform invocations resume %s` retries it immediately.", e.ID)
	}
}

// elsewhere suggests how to continue an invocation on another deployment: with code that matches
// its journal, or with the fix of a failure. Retries stay on the deployment that it started on.
func (e *explainer) elsewhere() {
	if e.row.Text("last_failure_error_code") == string(errcode.RT0016) {
		e.next("Register the code that it started on, or code that executes the same steps, and then: `platform invocations resume %s --deployment latest` (or the id of its deployment).", e.ID)
		return
	}
	pinned, latest := e.row.Text("pinned_deployment_id"), e.reader.Latest(e.row.Text("target_service_name"))
	if pinned == "" || latest == "" || pinned == latest || e.row.Text("last_failure") == "" {
		return
	}
	e.next("Attempts use %s, the deployment that it started on. If the latest one, %s, fixes the failure: `platform invocations resume %s --deployment latest` continues it there.", pinned, latest, e.ID)
}

// code adds the remedy of the error catalogue and a reference to it.
func (e *explainer) code() {
	code := e.row.Text("last_failure_error_code")
	if entry, known := errcode.Lookup(errcode.Code(code)); known {
		e.next("%s", entry.Remedy)
		e.next("`platform explain %s` explains this kind of failure.", code)
	}
}

func (e *explainer) paused() {
	since := e.when(e.row.Time("modified_at"))
	switch cause := e.row.Text("last_pause_cause"); {
	case cause == "attempts-used-up":
		e.summary("It was paused at %s: the maximum number of attempts of its retry policy was reached%s.", since, e.failedAttempts())
	case cause == "unretryable-failure":
		e.summary("It was paused at %s: its last attempt failed with an error that is not retried.", since)
	case cause == "deployment-change":
		e.summary("It was paused at %s to continue on deployment %s, which did not succeed.", since, e.row.Text("last_pause_reason"))
	case cause == "" && e.row.Text("last_failure") != "": // paused by an older server
		e.summary("It was paused at %s, because it reached the maximum number of attempts or an operator paused it.", since)
	default:
		e.summary("It was paused by an operator%s.", pauseDetails(e.row.Time("last_paused_at"), e.row.Text("last_pause_by"), e.row.Text("last_pause_reason")))
	}
	e.failure()
	e.code()
	e.elsewhere()
	e.continueOrEnd()
}

// continueOrEnd suggests how to continue or end a paused invocation. A cancellation resumes it and needs a handler
// that reaches an await point.
func (e *explainer) continueOrEnd() {
	kill := fmt.Sprintf("`platform invocations kill %s` ends it now, without the handler.", e.ID)
	if e.row.Text("last_failure_error_code") == string(errcode.RT0016) {
		e.next("`platform invocations resume %s` retries it at the address of its deployment, once code with the steps of its journal runs there.", e.ID)
		e.next("%s A cancellation cannot end it: the handler fails before it gets it.", kill)
		return
	}
	e.next("`platform invocations resume %s` continues it.", e.ID)
	switch {
	case !e.row.Time("cancel_requested_at").IsZero(): // requests has suggested to kill it
	case e.row.Text("last_failure") == "":
		e.next("`platform invocations cancel %s` ends it.", e.ID)
	default:
		e.next("`platform invocations cancel %s` ends it, if the handler reaches an await point before it fails again.", e.ID)
		e.next("%s", kill)
	}
}

// failedAttempts describes the number of failed attempts; "" if unknown.
func (e *explainer) failedAttempts() string {
	if n := e.row.Number("last_pause_attempts"); n > 0 {
		return fmt.Sprintf(" (%d failed)", n)
	}
	return ""
}
