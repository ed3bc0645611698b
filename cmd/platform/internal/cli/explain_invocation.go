package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/errcode"
	"platform/internal/ids"
)

// explanation is the status of an invocation, its reason, and what to do next.
type explanation struct {
	ID     string   `json:"id"`
	Target string   `json:"target"`
	Status string   `json:"status"`
	Why    []string `json:"why"`
	Next   []string `json:"next"`
}

func (e *explanation) because(format string, args ...any) {
	e.Why = append(e.Why, term.Clean(fmt.Sprintf(format, args...)))
}

func (e *explanation) next(format string, args ...any) {
	e.Next = append(e.Next, term.Clean(fmt.Sprintf(format, args...)))
}

// explainer determines why an invocation is not running.
type explainer struct {
	*app
	row client.Row
	explanation
}

func (a *app) explainInvocation(ctx context.Context, id string, asJSON bool) error {
	e, err := a.explained(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(e)
	}
	a.showExplanation(e)
	return nil
}

// explained determines why an invocation is in its status.
func (a *app) explained(ctx context.Context, id string) (*explanation, error) {
	result, err := a.client.Query(ctx, "SELECT * FROM sys_invocation WHERE id = "+client.Quote(id))
	if err != nil {
		return nil, err
	}
	if _, malformed := ids.ParseInvocation(id); len(result.Rows) == 0 && malformed != nil {
		return nil, &hintedError{fmt.Errorf("%q is not the id of an invocation: %w", id, malformed),
			"`platform invocations list` shows invocations with their ids."}
	}
	if len(result.Rows) == 0 {
		return nil, &hintedError{fmt.Errorf("there is no invocation %s", term.Clean(id)),
			"It may have been purged: results are kept for the retention of their service. `platform invocations list` shows the existing ones."}
	}
	row := result.Rows[0]
	e := &explainer{app: a, row: row, explanation: explanation{ID: id, Target: row.Text("target"), Status: row.Text("status")}}
	if err := e.explain(ctx); err != nil {
		return nil, err
	}
	return &e.explanation, nil
}

func (a *app) showExplanation(e *explanation) {
	a.print.Printf("%s %s\n", a.print.Bold(e.ID), term.Clean(e.Target))
	a.print.Printf("%s\n\n", a.colourStatus(e.Status, ""))
	a.print.Heading("Why")
	for _, line := range e.Why {
		a.print.Printf("  %s\n", indented(line))
	}
	if len(e.Next) == 0 {
		return
	}
	a.print.Println()
	a.print.Heading("What to do")
	for _, line := range e.Next {
		a.print.Printf("  %s\n", line)
	}
}

// indented is a text of several lines with all but the first indented.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

func (e *explainer) explain(ctx context.Context) error {
	e.requests()
	switch e.Status {
	case "scheduled":
		e.scheduled()
		return nil
	case "pending":
		return e.pending(ctx)
	case "ready":
		return e.ready(ctx)
	case "running":
		return e.running(ctx)
	case "backing-off":
		return e.backingOff(ctx)
	case "suspended":
		e.because("It is suspended, without a connection to the handler, until one of these arrives:")
		return e.awaited(ctx, e.row.Text("suspended_waiting_future_json"))
	case "paused":
		return e.paused()
	case "completed":
		e.completed()
	}
	return nil
}

// requests explains earlier requests of operators.
func (e *explainer) requests() {
	if e.Status == "completed" {
		return
	}
	if at := e.row.Time("cancel_requested_at"); !at.IsZero() {
		e.because("Its cancellation was requested at %s; it is delivered when the handler next responds.", e.when(at))
		e.next("`platform invocations kill %s` ends it now, without the handler.", e.ID)
	}
	if at := e.row.Time("last_resumed_at"); !at.IsZero() {
		e.because("It was paused at %s, and resumed at %s.", e.when(e.row.Time("last_paused_at")), e.when(at))
	}
}

// when is a time and its distance from now.
func (e *explainer) when(t time.Time) string {
	if left := time.Until(t); left > 0 {
		return fmt.Sprintf("%s (in %s)", e.print.Time(t), term.Duration(left))
	}
	return fmt.Sprintf("%s (%s ago)", e.print.Time(t), term.Duration(time.Since(t)))
}

// since is the start of a condition, "" if that is not known.
func (e *explainer) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", since " + e.when(t)
}

func (e *explainer) scheduled() {
	e.because("It is delayed until %s.", e.when(e.row.Time("scheduled_start_at")))
	e.next("Nothing: it starts automatically. `platform invocations cancel %s` cancels it.", e.ID)
}

// ready explains an invocation that may run and has no attempt.
func (e *explainer) ready(ctx context.Context) error {
	if missing, err := e.undeployed(ctx); missing || err != nil {
		return err
	}
	e.because("It is ready and waits for a free slot of the node that leads its partition.")
	e.next("Nothing, if it starts within seconds. Otherwise the node has reached its limits: see worker.invoker.concurrent-invocations-limit and memory-limit of the server.")
	return nil
}

// undeployed explains that no deployment serves the handler.
func (e *explainer) undeployed(ctx context.Context) (bool, error) {
	service := e.row.Text("target_service_name")
	_, _, err := e.client.Service(ctx, service)
	if !client.IsNotFound(err) {
		return false, err
	}
	e.because("No deployment serves %s.", service)
	e.next("Register one: `platform deployments register <address>`.")
	return true, nil
}

func (e *explainer) running(ctx context.Context) error {
	e.because("An attempt is in progress%s, on %s.", e.since(e.row.Time("last_start_at")), orElse(e.row.Text("last_attempt_deployment_id"), "its deployment"))
	if n := e.row.Text("retry_count"); n != "" && n != "0" && n != "1" {
		e.because("It is attempt number %s; the one before failed: %s", n, e.brief(e.row.Text("last_failure")))
	}
	if since := e.row.Time("no_response_since"); !since.IsZero() {
		e.because("The endpoint is connected but has sent nothing since %s, not even response headers. The attempt continues until the abort timeout at %s.", e.when(since), e.when(e.row.Time("abort_at")))
		e.next("Check whether the service at that address is stuck. If its handler is expected to work for a long time without sending anything, do nothing.")
	}
	if e.row.Text("pause_requested") == "true" {
		e.because("An operator paused it%s. The attempt was asked to suspend: its current step finishes and is stored, then the invocation is paused. The attempt is aborted if the endpoint sends nothing for the abort timeout.",
			e.pauseDetails(e.row.Time("last_paused_at"), e.row.Text("last_pause_by"), e.row.Text("last_pause_reason")))
		e.next("`platform invocations resume %s` withdraws the pause, `platform invocations kill %s` ends the invocation now.", e.ID, e.ID)
	}
	if awaiting := e.row.Text("last_awaiting_on_future_json"); awaiting != "" {
		e.because("The handler waits for:")
		return e.awaited(ctx, awaiting)
	}
	if err := e.uncompleted(ctx); err != nil {
		return err
	}
	e.next("`platform invocations describe %s` shows its journal.", e.ID)
	return nil
}

func (e *explainer) failure() {
	if text := e.row.Text("last_failure"); text != "" {
		e.because("The last attempt failed: %s", e.brief(text))
	}
	if command := e.row.Text("last_failure_related_command_type"); command != "" {
		e.because("It failed in %s %s.", command, e.row.Text("last_failure_related_command_name"))
	}
}

// brief is a failure without its stack, which would push the rest off the screen.
func (e *explainer) brief(failure string) string {
	return briefFailure(failure, e.ID)
}

// briefFailure is the beginning of a failure; describe shows all of it.
func briefFailure(failure, id string) string {
	lines := strings.Split(strings.TrimSpace(failure), "\n")
	if len(lines) <= maxFailureLines {
		return strings.Join(lines, "\n")
	}
	return strings.Join(lines[:maxFailureLines-1], "\n") +
		fmt.Sprintf("\n… and %d lines more: `platform invocations describe %s`", len(lines)-maxFailureLines+1, id)
}

// maxFailureLines bounds what is shown of a failure.
const maxFailureLines = 4

func (e *explainer) backingOff(ctx context.Context) error {
	e.because("Its last attempt failed; the next one starts at %s.", e.when(e.row.Time("next_retry_at")))
	e.because("%s so far.", counted(max(1, number(e.row.Text("retry_count"))), "attempt"))
	e.failure()
	if _, err := e.undeployed(ctx); err != nil {
		return err
	}
	e.code()
	if e.row.Text("last_failure_error_code") == string(errcode.RT0011) && e.row.Text("pinned_deployment_id") != "" {
		e.next("It started on a deployment that was removed: `platform invocations resume %s --deployment latest` continues it on the latest deployment of its service.", e.ID)
		return nil
	}
	e.elsewhere()
	e.next("It is retried automatically. `platform invocations resume %s` retries it immediately.", e.ID)
	return nil
}

// elsewhere suggests how an invocation whose code has changed continues with code that fits
// its journal.
func (e *explainer) elsewhere() {
	if e.row.Text("last_failure_error_code") == string(errcode.RT0016) {
		e.next("Register the code that it started on, or code that executes the same steps, and then: `platform invocations resume %s --deployment latest` (or the id of its deployment).", e.ID)
	}
}

// code refers to the error catalogue.
func (e *explainer) code() {
	code := e.row.Text("last_failure_error_code")
	if entry, known := errcode.Lookup(errcode.Code(code)); known {
		e.next("%s", entry.Remedy)
		e.next("`platform explain %s` explains this kind of failure.", code)
	}
}

func (e *explainer) paused() error {
	since := e.when(e.row.Time("modified_at"))
	switch cause := e.row.Text("last_pause_cause"); {
	case cause == "attempts-used-up":
		e.because("It was paused at %s: the maximum number of attempts of its retry policy was reached.", since)
	case cause == "unretryable-failure":
		e.because("It was paused at %s: its last attempt failed with an error that is not retried.", since)
	case cause == "" && e.row.Text("last_failure") != "": // it was paused by an older server
		e.because("It was paused at %s, because it reached the maximum number of attempts or an operator paused it.", since)
	default:
		e.because("It was paused by an operator%s.", e.pauseDetails(e.row.Time("last_paused_at"), e.row.Text("last_pause_by"), e.row.Text("last_pause_reason")))
	}
	e.failure()
	e.code()
	e.elsewhere()
	e.next("`platform invocations resume %s` continues it, `platform invocations cancel %s` ends it.", e.ID, e.ID)
	return nil
}

func (e *explainer) completed() {
	result := e.row.Text("completion_result")
	if failure := e.row.Text("completion_failure"); failure != "" {
		e.because("It ended at %s with the failure %s", e.when(e.row.Time("completed_at")), failure)
		e.next("`platform invocations restart-as-new %s` runs it again, as a new invocation.", e.ID)
		return
	}
	e.because("It ended at %s with %s.", e.when(e.row.Time("completed_at")), result)
	e.next("`platform attach %s` prints the result.", e.ID)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func number(text string) (n int) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

var errFuture = errors.New("the server reports what the invocation waits for in an unknown format")
