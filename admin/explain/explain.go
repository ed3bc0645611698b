package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"platform/internal/errcode"
	"platform/internal/units"
)

// Explanation contains the status of an invocation, its reason, and the next steps.
type Explanation struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	Status string `json:"status"`
	// Summary is the main reason; Details contains the others, in reading order.
	Summary    string   `json:"summary"`
	Details    []Detail `json:"details"`
	WaitingFor []Wait   `json:"waiting_for"`
	// WaitsForFirst means that the handler continues with the first of several results in WaitingFor.
	WaitsForFirst bool   `json:"waits_for_first,omitempty"`
	NextSteps     []Step `json:"next_steps"`
}

// Detail is one of the other reasons.
type Detail struct {
	Title string `json:"title"` // topic, in one or two words
	Text  string `json:"text"`
}

// Wait is something that an invocation waits for.
type Wait struct {
	Kind WaitKind `json:"kind"`
	Text string   `json:"text"`
	// ID is the ID of an invocation or awakeable, or the name of a signal, promise or queue.
	ID string `json:"id,omitempty"`
	// Until is the end of a sleep.
	Until *time.Time `json:"until,omitempty"`
	// The fields below describe an awaited invocation; Follow sets them.
	Target     string `json:"target,omitempty"`
	Status     string `json:"status,omitempty"`
	Summary    string `json:"summary,omitempty"`
	WaitingFor []Wait `json:"waiting_for,omitempty"`
	// Cycle reports a deadlock: this invocation waits for the explained one, or for another one in
	// the chain.
	Cycle bool `json:"cycle,omitempty"`
}

// WaitKind classifies what an invocation waits for.
type WaitKind string

// The kinds of waits.
const (
	ForSignal     WaitKind = "signal"
	ForAwakeable  WaitKind = "awakeable"
	ForSleep      WaitKind = "sleep"
	ForPromise    WaitKind = "promise"
	ForInvocation WaitKind = "invocation"
	ForRun        WaitKind = "run"
	ForCommand    WaitKind = "command" // another journal command
	ForObject     WaitKind = "object"  // the key is held by another invocation
	ForQueue      WaitKind = "vqueue"
)

// Step is a possible action of an operator.
type Step struct {
	Text string `json:"text"` // a sentence that contains the command in backquotes
	// Command is the CLI command; empty if there is none.
	Command string `json:"command,omitempty"`
}

// Reader provides the input of explanations.
type Reader interface {
	// Query returns the rows of an SQL query.
	Query(ctx context.Context, sql string) ([]Row, error)
	// Latest returns the id of the latest deployment of a service; "" if none serves it.
	Latest(service string) string
	// Address returns the address of a deployment; "" if it is not known or must not be shown.
	Address(deployment string) string
	// Visible reports whether invocations of a service in a scope may be shown.
	Visible(service, scope string) bool
}

// ErrNotFound means that the invocation does not exist.
var ErrNotFound = errors.New("invocation not found")

// errFuture means that the format of await trees in the tables is not the expected one.
var errFuture = errors.New("the await tree of the invocation has an unknown format")

// Invocation explains an invocation. It returns ErrNotFound or an error of the Reader.
func Invocation(ctx context.Context, r Reader, id string, now time.Time) (*Explanation, error) {
	rows, err := r.Query(ctx, "SELECT * FROM sys_invocation WHERE id = "+quote(id))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, ErrNotFound
	}
	row := rows[0]
	e := &explainer{reader: r, now: now, row: row, Explanation: Explanation{
		ID: id, Target: row.Text("target"), Status: row.Text("status"),
		Details: []Detail{}, WaitingFor: []Wait{}, NextSteps: []Step{},
	}}
	if err := e.explain(ctx); err != nil {
		return nil, err
	}
	if e.Summary == "" && len(e.Details) > 0 {
		e.Summary, e.Details = e.Details[0].Text, e.Details[1:]
	}
	return &e.Explanation, nil
}

func (e *explainer) explain(ctx context.Context) error {
	defer e.requests()
	switch e.Status {
	case "scheduled":
		e.scheduled()
		return nil
	case "pending":
		return e.pending(ctx)
	case "ready":
		e.ready()
		return nil
	case "running":
		return e.running(ctx)
	case "backing-off":
		e.backingOff()
		return nil
	case "suspended":
		err := e.awaited(ctx, e.row.Text("suspended_waiting_future_json"))
		e.summary("It is suspended, without a connection to the handler%s.", e.firstWait(", and waits for"))
		return err
	case "paused":
		e.paused()
	case "completed":
		e.completed()
	}
	return nil
}

// firstWait returns introduction, followed by the first thing that the invocation waits for and the
// number of others; "" if it waits for nothing.
func (e *explainer) firstWait(introduction string) string {
	switch n := len(e.WaitingFor); n {
	case 0:
		return ""
	case 1:
		return introduction + " " + e.WaitingFor[0].Text
	default:
		if e.combination != "" {
			return introduction + " " + fmt.Sprintf(e.combination, n)
		}
		return fmt.Sprintf("%s %s and %s", introduction, e.WaitingFor[0].Text, units.Counted(n-1, "other result"))
	}
}

// requests describes earlier requests of operators.
func (e *explainer) requests() {
	if e.Status == "completed" {
		return
	}
	if at := e.row.Time("cancel_requested_at"); !at.IsZero() {
		if e.Status == "suspended" && e.row.Time("modified_at").After(at) {
			e.earlier("Cancellation", "Its cancellation was requested at %s. It has been suspended since then: what it waits for now is not ended by that, for example because the handler cleans up.", e.when(at))
		} else {
			e.earlier("Cancellation", "Its cancellation was requested at %s; the handler gets it at its next await point.", e.when(at))
		}
		if e.Status == "backing-off" {
			e.next("Attempts that fail before an await point are retried and do not notice the cancellation.")
		}
		if e.row.Text("last_failure_error_code") != string(errcode.RT0016) || e.Status != "paused" {
			e.next("`platform invocations kill %s` ends it now, without the handler.", e.ID)
		}
	}
	switch at := e.row.Time("last_resumed_at"); {
	case at.IsZero():
	case e.row.Text("last_pause_cause") == "deployment-change":
		e.earlier("Deployment", "An operator continued it on deployment %s at %s.", e.row.Text("last_pause_reason"), e.when(at))
	default:
		e.earlier("Earlier pause", "It was paused at %s, and resumed at %s.", e.when(e.row.Time("last_paused_at")), e.when(at))
	}
}

// when formats a time and its distance from now.
func (e *explainer) when(t time.Time) string {
	if left := t.Sub(e.now); left > 0 {
		return fmt.Sprintf("%s (in %s)", point(t), units.Rough(left))
	}
	return fmt.Sprintf("%s (%s ago)", point(t), units.Rough(e.now.Sub(t)))
}

func point(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// since formats the start of a condition; "" if unknown.
func (e *explainer) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", since " + e.when(t)
}

func (e *explainer) scheduled() {
	e.summary("It was sent with a delay and starts at %s.", e.when(e.row.Time("scheduled_start_at")))
	e.next("Nothing: it starts automatically. `platform invocations cancel %s` cancels it.", e.ID)
}

// ready explains an invocation that is ready and has no attempt.
func (e *explainer) ready() {
	if e.undeployed() {
		return
	}
	e.waitsForNode("It is ready")
}

// waitsForNode explains why an attempt that is due does not start.
func (e *explainer) waitsForNode(due string) {
	if since := e.row.Time("throttled_since"); !since.IsZero() {
		e.summary("%s, but the node that leads its partition has started as many attempts as worker.invoker.invocation-throttling permits. Attempts have been waiting since %s.", due, e.when(since))
		e.next("Nothing, if it starts within seconds: services take turns. Otherwise raise the rate in the configuration of the nodes.")
		return
	}
	e.summary("%s and waits for a free slot of the node that leads its partition.", due)
	e.next("Nothing, if it starts within seconds. Otherwise the node has reached its limits: see worker.invoker.concurrent-invocations-limit, memory-limit and invocation-throttling of the server.")
}

// undeployed reports whether no deployment serves the handler, and adds that to the explanation.
func (e *explainer) undeployed() bool {
	service := e.row.Text("target_service_name")
	if e.reader.Latest(service) != "" {
		return false
	}
	e.detail("Deployment", "No deployment serves %s.", service)
	e.next("Register one: `platform deployments register <address>`.")
	return true
}

func (e *explainer) running(ctx context.Context) error {
	deployment := e.row.Text("last_attempt_deployment_id")
	if deployment == "" {
		deployment = "its deployment"
	}
	latest, first := e.row.Time("last_start_at"), e.row.Time("running_at")
	attempt := "An attempt"
	if n := e.row.Number("retry_count"); n > 0 {
		attempt = fmt.Sprintf("Attempt %d", n)
	}
	e.summary("%s is in progress%s, on %s.", attempt, e.since(latest), deployment)
	if !first.IsZero() && latest.Sub(first) >= time.Second {
		e.detail("First start", "It first started at %s.", e.when(first))
	}
	// A new leader knows how many attempts have failed, but not why.
	if failure := e.row.Text("last_failure"); failure != "" && e.row.Number("retry_count") > 1 {
		e.detail("Attempts", "The attempt before failed: %s", Brief(failure, e.ID))
	}
	if since := e.row.Time("throttled_since"); !since.IsZero() {
		e.detail("Throttling", "The handler has sent a command, which waits since %s because the handlers of the node have sent as many as worker.invoker.action-throttling permits. Its timeouts do not pass meanwhile.", e.when(since))
	} else if since := e.row.Time("no_response_since"); !since.IsZero() {
		e.detail("Endpoint", "The endpoint is connected but has sent nothing since %s, not even response headers. The attempt continues until the abort timeout at %s.", e.when(since), e.when(e.row.Time("abort_at")))
		e.serviceLog()
		e.next("If its handler is expected to work for a long time without sending anything, do nothing. If it hangs, restart its process: the attempt is then retried.")
	} else {
		e.silence()
	}
	if err := e.lastStep(ctx); err != nil {
		return err
	}
	if e.row.Text("pause_requested") == "true" {
		e.detail("Pause", "An operator paused it%s. The attempt was asked to suspend: its current step finishes and is stored, then the invocation is paused. The attempt is aborted if the endpoint sends nothing for the abort timeout.",
			pauseDetails(e.row.Time("last_paused_at"), e.row.Text("last_pause_by"), e.row.Text("last_pause_reason")))
		e.next("`platform invocations resume %s` withdraws the pause.", e.ID)
		e.next("`platform invocations kill %s` ends the invocation now.", e.ID)
	}
	if awaiting := e.row.Text("last_awaiting_on_future_json"); awaiting != "" {
		err := e.awaited(ctx, awaiting)
		e.detail("Handler", "The handler is connected%s.", e.firstWait(" and waits for"))
		e.quiet()
		return err
	}
	if err := e.uncompleted(ctx); err != nil {
		return err
	}
	e.quiet()
	e.describe()
	return nil
}

// quietAfter is how long nothing has been sent to or received from the endpoint of an attempt before the
// log of the service is referred to.
const quietAfter = 5 * time.Second

// quiet refers to the log of the service if its process has been busy for quietAfter: with a step, or with
// what is between two steps.
func (e *explainer) quiet() {
	active := e.row.Time("last_active_at")
	busy := len(e.WaitingFor) == 0 || slices.ContainsFunc(e.WaitingFor, func(w Wait) bool { return w.Kind == ForRun })
	if busy && !active.IsZero() && e.now.Sub(active) >= quietAfter {
		e.serviceLog()
	}
}

// serviceLog refers to the log of the service: what its process does is known only there.
func (e *explainer) serviceLog() {
	e.next("See the log of the service%s: what its process does is known only there.", e.attemptedAt())
}

// attemptedAt names the deployment of the latest attempt, with its address; "" if it is not known.
func (e *explainer) attemptedAt() string {
	deployment := e.row.Text("last_attempt_deployment_id")
	if deployment == "" {
		return ""
	}
	if address := e.reader.Address(deployment); address != "" {
		return " at " + address + " (" + deployment + ")"
	}
	return " on " + deployment
}

// silence says since when the endpoint of the open attempt is silent, and what follows if it
// remains so.
func (e *explainer) silence() {
	active, suspend, abort := e.row.Time("last_active_at"), e.row.Time("suspend_at"), e.row.Time("abort_at")
	if active.IsZero() {
		return
	}
	text := fmt.Sprintf("Something was last sent to or received from it at %s.", e.when(active))
	switch {
	case !suspend.IsZero():
		text += fmt.Sprintf(" If it sends nothing, it is asked to suspend at %s (inactivity timeout), and the attempt is aborted and retried at %s (abort timeout).", e.when(suspend), e.when(abort))
	case !abort.IsZero():
		text += fmt.Sprintf(" If it sends nothing, the attempt is aborted and retried at %s (abort timeout).", e.when(abort))
	}
	e.detail("Endpoint", "%s", text)
}

// lastStep describes the last entry of the journal, which is what the server has received and
// stored last.
func (e *explainer) lastStep(ctx context.Context) error {
	n := e.row.Number("journal_size")
	if n == 0 {
		return nil
	}
	rows, err := e.reader.Query(ctx, fmt.Sprintf(`SELECT "index", entry_type, name, appended_at FROM sys_journal WHERE id = %s AND "index" = %d`, quote(e.ID), n-1))
	if err != nil || len(rows) == 0 {
		return err
	}
	last := rows[0]
	what := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(last.Text("entry_type"), "Command: "), "Notification: ") + " " + last.Text("name"))
	if last.Number("index") == 0 {
		e.detail("Progress", "No step of its handler is stored yet, only the input.")
		return nil
	}
	at := ""
	if t := last.Time("appended_at"); !t.IsZero() {
		at = ", stored at " + e.when(t)
	}
	e.detail("Progress", "The last entry of its journal is number %d, %s%s.", last.Number("index"), what, at)
	return nil
}

func (e *explainer) describe() { e.next("`platform invocations describe %s` shows its journal.", e.ID) }

func (e *explainer) completed() {
	at := e.when(e.row.Time("completed_at"))
	if failure := e.row.Text("completion_failure"); failure != "" {
		e.summary("It ended at %s with the failure %s", at, failure)
		if e.row.Text("target_service_ty") == "workflow" {
			e.next("`platform invocations purge %s` deletes it. After the run of a workflow is purged, with its state and promises, the same key can run again.", e.ID)
			return
		}
		e.next("`platform invocations restart-as-new %s` runs it again with the same input, as a new invocation.", e.ID)
		return
	}
	e.summary("It ended at %s with %s.", at, e.row.Text("completion_result"))
	e.next("`platform attach %s` prints the result.", e.ID)
}
