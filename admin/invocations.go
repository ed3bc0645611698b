package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/partition/listing"
)

// Invocations queries invocations and objects on all partitions, and operates on them.
type Invocations interface {
	Operator

	// List returns a page of the matching invocations. It returns rest.ErrCursor for an invalid cursor.
	List(context.Context, Query) (Page, error)
	// Awakeables returns a page of the awakeables that matching invocations wait for, those of the
	// longest suspended invocation first. The awakeables of one invocation are on one page, also if
	// they are more than the limit. It returns rest.ErrCursor for an invalid cursor.
	Awakeables(context.Context, Query) (AwakeablePage, error)
	// Count returns the numbers of matching invocations. With partial it omits partitions that do
	// not respond.
	Count(ctx context.Context, f listing.Filter, partial bool) (*Counts, error)
	// Failures returns the failure groups of the matching invocations; partial is as for Count.
	Failures(ctx context.Context, f listing.Filter, partial bool) (*FailureGroups, error)
	// Get returns an invocation, with its journal if requested, or rest.ErrNotFound.
	Get(ctx context.Context, id ids.Invocation, journal bool) (*Invocation, error)
	// Objects returns the keys of a virtual object or workflow, sorted, and whether there are more.
	Objects(context.Context, ObjectQuery) (page []ObjectSummary, more bool, err error)
	// Scopes returns the scopes in which a virtual object or workflow has keys, at most MaxScopes; if
	// within is not empty, only those of within.
	Scopes(ctx context.Context, service string, within []string) ([]string, error)
	// Object returns one key.
	Object(context.Context, Object) (*ObjectDetail, error)
	// InUse returns the number of unfinished invocations that are pinned to a deployment or have an
	// attempt in progress on it.
	InUse(context.Context, ids.Deployment) (int, error)
}

// Errors of Invocations.
var (
	// ErrUnavailable is wrapped if a partition cannot be reached; the text is shown to clients.
	ErrUnavailable = errors.New("not all partitions can be reached at the moment")
)

// Query selects a page of invocations.
type Query struct {
	Filter      listing.Filter
	Limit       int    // of the page, from 1 to 1000
	Cursor      string // from the previous page; empty for the first
	ByModified  bool   // sort by the last change of status instead of the creation
	OldestFirst bool   // instead of the newest first
	// Partial accepts a page without partitions that do not respond, and without the oldest
	// invocations if they exceed the memory limit of lists.
	Partial bool
}

// Page is a page of a listing. Next is the cursor of the following page; empty if there is none.
type Page struct {
	Invocations []*Invocation `json:"invocations"`
	Next        string        `json:"next_cursor,omitempty"`
	Extent
}

// Status is the status of an invocation as shown to users.
type Status string

// The statuses.
const (
	StatusScheduled  Status = "scheduled"
	StatusPending    Status = "pending"
	StatusReady      Status = "ready"
	StatusRunning    Status = "running"
	StatusBackingOff Status = "backing-off"
	StatusSuspended  Status = "suspended"
	StatusPaused     Status = "paused"
	StatusCompleted  Status = "completed"
)

var statuses = []Status{
	StatusScheduled, StatusPending, StatusReady, StatusRunning, StatusBackingOff, StatusSuspended, StatusPaused, StatusCompleted,
}

// Invocation is an invocation as shown to users. Fields that do not apply are zero and omitted.
type Invocation struct {
	ID                    string         `json:"id"`
	Target                string         `json:"target"`
	TargetServiceName     string         `json:"target_service_name"`
	TargetServiceKey      string         `json:"target_service_key,omitempty"`
	TargetHandlerName     string         `json:"target_handler_name"`
	TargetServiceType     string         `json:"target_service_ty"` // service, virtual_object, workflow
	Scope                 string         `json:"scope,omitempty"`
	LimitKey              string         `json:"limit_key,omitempty"`
	VQueueID              string         `json:"vqueue_id,omitempty"` // of scoped invocations
	Status                Status         `json:"status"`
	CreatedAt             rest.Timestamp `json:"created_at,omitzero"`
	ModifiedAt            rest.Timestamp `json:"modified_at,omitzero"`
	ScheduledStartAt      rest.Timestamp `json:"scheduled_start_at,omitzero"`
	RunningAt             rest.Timestamp `json:"running_at,omitzero"` // start of the first attempt
	CompletedAt           rest.Timestamp `json:"completed_at,omitzero"`
	PurgeAt               rest.Timestamp `json:"purge_at,omitzero"` // when its retention ends, once it has completed
	IdempotencyKey        *string        `json:"idempotency_key,omitempty"`
	InvokedBy             string         `json:"invoked_by"` // ingress, service, subscription, restart_as_new
	InvokedByID           string         `json:"invoked_by_id,omitempty"`
	InvokedByTarget       string         `json:"invoked_by_target,omitempty"`
	PinnedDeploymentID    ids.Deployment `json:"pinned_deployment_id,omitempty"`
	PinnedProtocolVersion int            `json:"pinned_service_protocol_version,omitempty"`
	JournalSize           uint32         `json:"journal_size"`
	RetryCount            uint64         `json:"retry_count,omitempty"`
	LastStartAt           rest.Timestamp `json:"last_start_at,omitzero"` // of the latest attempt; known to the current leader only
	NextRetryAt           rest.Timestamp `json:"next_retry_at,omitzero"`
	NoResponseSince       rest.Timestamp `json:"no_response_since,omitzero"`   // of a running attempt, if the response headers are overdue
	AbortAt               rest.Timestamp `json:"abort_at,omitzero"`            // present with no_response_since
	PauseRequested        bool           `json:"pause_requested,omitempty"`    // it pauses when the current attempt ends
	CancelRequestedAt     rest.Timestamp `json:"cancel_requested_at,omitzero"` // of a started invocation, whose handler decides how it ends
	LastPause             *Pause         `json:"last_pause,omitempty"`
	LastFailure           string         `json:"last_failure,omitempty"`
	LastFailureErrorCode  string         `json:"last_failure_error_code,omitempty"`
	LastAttemptDeployment ids.Deployment `json:"last_attempt_deployment_id,omitempty"` // known to the current leader only, as is the server
	LastAttemptServer     string         `json:"last_attempt_server,omitempty"`
	AwaitingOn            *Await         `json:"awaiting_on,omitempty"`       // if suspended; if running, when the SDK reports it
	AwaitingSince         rest.Timestamp `json:"awaiting_since,omitzero"`     // present with awaiting_on; of a running invocation, when it was last active
	CompletionResult      string         `json:"completion_result,omitempty"` // success, failure
	CompletionFailure     string         `json:"completion_failure,omitempty"`

	// Journal is present if it was requested, even if it is empty.
	Journal []Entry `json:"journal,omitzero"`
}

// Pause describes who or what paused an invocation, when and why.
type Pause struct {
	Cause     string         `json:"cause"`        // operator, attempts-used-up, unretryable-failure, deployment-change
	By        string         `json:"by,omitempty"` // network address of the client that requested it
	Reason    string         `json:"reason,omitempty"`
	Attempts  uint32         `json:"attempts,omitempty"` // failed attempts before the pause
	At        rest.Timestamp `json:"at"`                 // when it was requested or decided
	ResumedAt rest.Timestamp `json:"resumed_at,omitzero"`
}

// Await is a tree of futures that an invocation awaits: completion IDs, signals and nested trees.
type Await struct {
	Combinator  string   `json:"combinator"` // such as FirstCompleted
	Completions []uint32 `json:"completions,omitempty"`
	Signals     []uint32 `json:"signals,omitempty"`
	Names       []string `json:"named_signals,omitempty"`
	Nested      []*Await `json:"nested,omitempty"`
	// Executing reports that a running handler is executing side effects meanwhile.
	Executing bool `json:"executing_side_effects,omitempty"`
}

// Entry is a journal entry as shown to users.
type Entry struct {
	Index         uint32         `json:"index"`
	Type          string         `json:"entry_type"` // such as "Command: Run"
	Name          string         `json:"name,omitempty"`
	Completed     *bool          `json:"completed,omitempty"`
	InvokedID     string         `json:"invoked_id,omitempty"`
	InvokedTarget string         `json:"invoked_target,omitempty"`
	SleepWakeupAt rest.Timestamp `json:"sleep_wakeup_at,omitzero"`
	AppendedAt    rest.Timestamp `json:"appended_at,omitzero"`
	RawLength     int            `json:"raw_length"`
}

func (s *Server) listInvocations(c echo.Context) error {
	query, err := ParseQuery(c.QueryParams())
	if err != nil {
		return err
	}
	page, err := s.invocations.List(c.Request().Context(), query)
	if err != nil {
		return fmt.Errorf("list invocations: %w", err)
	}
	if page.Invocations == nil {
		page.Invocations = []*Invocation{}
	}
	return rest.Respond(c, http.StatusOK, page)
}

func (s *Server) getInvocation(c echo.Context) error {
	id, err := ids.ParseInvocation(c.Param("invocation_id"))
	if err != nil {
		return rest.InvalidField("invocation_id", err)
	}
	journal, err := rest.QueryBool(c, "journal")
	if err != nil {
		return err
	}
	invocation, err := s.invocations.Get(c.Request().Context(), id, journal)
	if errors.Is(err, rest.ErrNotFound) {
		return noInvocation(id)
	}
	if err != nil {
		return fmt.Errorf("get invocation %s: %w", id, err)
	}
	return rest.Respond(c, http.StatusOK, invocation)
}

// ParseQuery parses the parameters of a listing. It ignores unknown ones, which the router has
// rejected.
func ParseQuery(parameters url.Values) (Query, error) {
	q := Query{Limit: rest.DefaultLimit}
	var err error
	if q.Filter, err = readFilter(parameters); err != nil {
		return q, err
	}
	for name, values := range parameters {
		last := values[len(values)-1]
		var err error
		switch name {
		case "limit":
			q.Limit, err = rest.ParseLimit(last)
		case "cursor":
			q.Cursor = last
		case "sort":
			var order string
			order, err = oneOf("a sort order", orders)(last)
			q.ByModified = order == "modified"
		case "oldest_first":
			q.OldestFirst, err = rest.ParseBool(parameters, name)
		case "partial":
			q.Partial, err = rest.ParseBool(parameters, name)
		}
		if f, ok := errors.AsType[*rest.Error](err); ok {
			return q, f
		}
		if err != nil {
			return q, rest.BadRequest("The query parameter '%s' is invalid: %v", name, err)
		}
	}
	return q, nil
}

// orders are the sort orders of lists.
var orders = []string{"created", "modified"}

// parsed parses the values of a parameter that may be repeated or contain several values separated
// by commas.
func parsed[T any](values []string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			v, err := parse(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	}
	return list, nil
}

func anyText(s string) (string, error) { return s, nil }
