package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"platform/admin/explain"
)

// Registration is a request to register a deployment.
type Registration struct {
	URI               string            `json:"uri,omitempty"`
	ARN               string            `json:"arn,omitempty"`
	AdditionalHeaders map[string]string `json:"additional_headers,omitempty"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	UseHTTP11         bool              `json:"use_http_11,omitempty"`
	Force             bool              `json:"force"`
	Breaking          bool              `json:"breaking,omitempty"`
	DryRun            bool              `json:"dry_run,omitempty"`
	AssumeRoleARN     string            `json:"assume_role_arn,omitempty"`
}

// Register registers a deployment.
func (c *Client) Register(ctx context.Context, r Registration) (d Deployment, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodPost, "/deployments", r, &d)
	return d, response, err
}

// Deployments lists all deployments.
func (c *Client) Deployments(ctx context.Context) ([]Deployment, *Response, error) {
	var list struct {
		Deployments []Deployment `json:"deployments"`
	}
	response, err := c.adminJSON(ctx, http.MethodGet, "/deployments", nil, &list)
	return list.Deployments, response, err
}

// Deployment returns one deployment with its services in full.
func (c *Client) Deployment(ctx context.Context, id string) (d Deployment, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/deployments/"+url.PathEscape(id), nil, &d)
	return d, response, err
}

// DeploymentUpdate is a request to change a deployment in place; nil fields are unchanged.
type DeploymentUpdate struct {
	URI               string            `json:"uri,omitempty"`
	ARN               string            `json:"arn,omitempty"`
	UseHTTP11         *bool             `json:"use_http_11,omitempty"`
	AssumeRoleARN     *string           `json:"assume_role_arn,omitempty"`
	AdditionalHeaders map[string]string `json:"additional_headers,omitzero"`
	Overwrite         bool              `json:"overwrite,omitempty"`
	DryRun            bool              `json:"dry_run,omitempty"`
}

// UpdateDeployment changes a deployment in place.
func (c *Client) UpdateDeployment(ctx context.Context, id string, u DeploymentUpdate) (d Deployment, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodPatch, "/deployments/"+url.PathEscape(id), u, &d)
	return d, response, err
}

// RemoveDeployment removes a deployment; with force even if invocations need it.
func (c *Client) RemoveDeployment(ctx context.Context, id string, force bool) error {
	path := "/deployments/" + url.PathEscape(id)
	if force {
		path += "?force=true"
	}
	_, err := c.adminJSON(ctx, http.MethodDelete, path, nil, nil)
	return err
}

// Services lists the latest revision of every service.
func (c *Client) Services(ctx context.Context) ([]Service, *Response, error) {
	var list struct {
		Services []Service `json:"services"`
	}
	response, err := c.adminJSON(ctx, http.MethodGet, "/services", nil, &list)
	return list.Services, response, err
}

// Service returns the latest revision of one service.
func (c *Client) Service(ctx context.Context, name string) (s Service, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/services/"+url.PathEscape(name), nil, &s)
	return s, response, err
}

// ServiceChange is a request to change options of a service; nil fields are unchanged.
type ServiceChange struct {
	Public                      *bool        `json:"public,omitempty"`
	IdempotencyRetention        *string      `json:"idempotency_retention,omitempty"`
	WorkflowCompletionRetention *string      `json:"workflow_completion_retention,omitempty"`
	JournalRetention            *string      `json:"journal_retention,omitempty"`
	InactivityTimeout           *string      `json:"inactivity_timeout,omitempty"`
	AbortTimeout                *string      `json:"abort_timeout,omitempty"`
	EnableLazyState             *bool        `json:"enable_lazy_state,omitempty"`
	RetryPolicy                 *RetryChange `json:"retry_policy,omitempty"`
	IngressAuth                 *string      `json:"ingress_auth,omitempty"`
	ForwardHeaders              *[]string    `json:"forward_headers,omitempty"`
}

// RetryChange is the part of a ServiceChange about retries.
type RetryChange struct {
	InitialInterval      *string `json:"initial_interval,omitempty"`
	ExponentiationFactor float64 `json:"exponentiation_factor,omitempty"`
	MaxAttempts          any     `json:"max_attempts,omitempty"` // a number or "unlimited"
	MaxInterval          *string `json:"max_interval,omitempty"`
	OnMaxAttempts        string  `json:"on_max_attempts,omitempty"`
}

// ModifyService changes options of a service.
func (c *Client) ModifyService(ctx context.Context, name string, change ServiceChange) (s Service, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodPatch, "/services/"+url.PathEscape(name), change, &s)
	return s, response, err
}

// Filter selects invocations; empty fields select all.
type Filter struct {
	Status, Service, Handler, Key, Scope, Deployment           []string
	Result, LimitKey, IdempotencyKey, InvokedBy, ErrorCode     []string
	FailureGroup                                               string
	CreatedAfter, CreatedBefore, ModifiedAfter, ModifiedBefore string // RFC 3339
	CompletedAfter, CompletedBefore                            string
}

func (f *Filter) values() url.Values {
	values := url.Values{}
	for name, list := range map[string][]string{
		"status": f.Status, "service": f.Service, "handler": f.Handler, "key": f.Key, "scope": f.Scope, "deployment": f.Deployment,
		"result": f.Result, "limit_key": f.LimitKey, "idempotency_key": f.IdempotencyKey, "invoked_by": f.InvokedBy, "error_code": f.ErrorCode,
	} {
		if len(list) > 0 {
			values[name] = list
		}
	}
	for name, value := range map[string]string{
		"failure_group": f.FailureGroup, "created_after": f.CreatedAfter, "created_before": f.CreatedBefore,
		"modified_after": f.ModifiedAfter, "modified_before": f.ModifiedBefore, "completed_after": f.CompletedAfter, "completed_before": f.CompletedBefore,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// Query selects a page of invocations.
type Query struct {
	Filter
	Limit       int
	Sort        string // created, modified; empty: created
	OldestFirst bool
	Cursor      string
}

func (q Query) encode() string {
	values := q.values()
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Sort != "" {
		values.Set("sort", q.Sort)
	}
	if q.OldestFirst {
		values.Set("oldest_first", "true")
	}
	if q.Cursor != "" {
		values.Set("cursor", q.Cursor)
	}
	return queryOf(values)
}

// queryOf returns the query of a URL with its question mark; empty without values.
func queryOf(values url.Values) string {
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// Counts are numbers of invocations.
type Counts struct {
	Total     int             `json:"total"`
	ByStatus  map[string]int  `json:"by_status"`
	ByResult  map[string]int  `json:"by_result"`
	ByService []HandlerCounts `json:"by_service"`
	Complete  bool            `json:"complete"`
}

// HandlerCounts are the numbers of a handler.
type HandlerCounts struct {
	Service  string         `json:"service"`
	Handler  string         `json:"handler"`
	ByStatus map[string]int `json:"by_status"`
	ByResult map[string]int `json:"by_result"`
}

// Count returns the numbers of the invocations that match.
func (c *Client) Count(ctx context.Context, f Filter) (n Counts, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/invocations/counts"+queryOf(f.values()), nil, &n)
	return n, response, err
}

// CountMatching returns the numbers of the invocations that match filters of the admin API.
func (c *Client) CountMatching(ctx context.Context, filters url.Values) (n Counts, err error) {
	_, err = c.adminJSON(ctx, http.MethodGet, "/invocations/counts"+queryOf(filters), nil, &n)
	return n, err
}

// FailureGroup is failed invocations with a common cause.
type FailureGroup struct {
	ID          string         `json:"id"`
	Service     string         `json:"service"`
	Handler     string         `json:"handler"`
	ErrorCode   string         `json:"error_code"`
	Code        int            `json:"code"`
	Message     string         `json:"message"`
	Sample      string         `json:"sample_invocation_id"`
	Count       int            `json:"count"`
	ByStatus    map[string]int `json:"by_status"`
	Keys        int            `json:"keys"`
	FirstSeen   time.Time      `json:"first_seen"`
	LastSeen    time.Time      `json:"last_seen"`
	Deployments []string       `json:"deployments"`
	Muted       bool           `json:"muted"`
	Note        string         `json:"note"`
	MarkedBy    string         `json:"marked_by"`
	MarkedAt    time.Time      `json:"marked_at"`
}

// FailurePage is the first failure groups.
type FailurePage struct {
	Groups []FailureGroup `json:"groups"`
	Next   string         `json:"next_cursor"`
	Other  int            `json:"other"`

	Blocked     []BlockedTopicPartition `json:"blocked_topic_partitions"`
	DeadLetters []DeadLetterCount       `json:"dead_letters"`
}

// DeadLetterCount is an event subscription with dead letters.
type DeadLetterCount struct {
	Subscription string `json:"subscription_id"`
	Source       string `json:"source"`
	Records      uint64 `json:"records"`
}

// BlockedTopicPartition is a topic partition of an event subscription that waits for an operator.
type BlockedTopicPartition struct {
	Subscription string    `json:"subscription_id"`
	Service      string    `json:"service"`
	Handler      string    `json:"handler"`
	Topic        string    `json:"topic"`
	Partition    int       `json:"partition"`
	Position     int64     `json:"position"`
	Reason       string    `json:"reason"`
	Message      string    `json:"message"`
	Since        time.Time `json:"since"`
}

// Failures returns the failure groups of the invocations that match, the latest failure first.
func (c *Client) Failures(ctx context.Context, f Filter, limit int) (page FailurePage, response *Response, err error) {
	values := f.values()
	values.Set("limit", strconv.Itoa(limit))
	response, err = c.adminJSON(ctx, http.MethodGet, "/failures"+queryOf(values), nil, &page)
	return page, response, err
}

// Failure returns one failure group.
func (c *Client) Failure(ctx context.Context, id string) (g FailureGroup, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/failures/"+url.PathEscape(id), nil, &g)
	return g, response, err
}

// MarkFailure mutes or unmutes a failure group, or changes its note. nil values are not changed.
func (c *Client) MarkFailure(ctx context.Context, id string, muted *bool, note *string) (g FailureGroup, response *Response, err error) {
	body := map[string]any{}
	if muted != nil {
		body["muted"] = *muted
	}
	if note != nil {
		body["note"] = *note
	}
	response, err = c.adminJSON(ctx, http.MethodPatch, "/failures/"+url.PathEscape(id), body, &g)
	return g, response, err
}

// InvocationPage is one page of a listing; Next is empty on the last one.
type InvocationPage struct {
	Invocations []Invocation
	Raw         []json.RawMessage // the same as unparsed JSON
	Next        string
}

// Invocations returns one page of the invocations that match.
func (c *Client) Invocations(ctx context.Context, q Query) (InvocationPage, error) {
	var raw struct {
		Invocations []json.RawMessage `json:"invocations"`
		Next        string            `json:"next_cursor"`
	}
	if _, err := c.adminJSON(ctx, http.MethodGet, "/invocations"+q.encode(), nil, &raw); err != nil {
		return InvocationPage{}, err
	}
	page := InvocationPage{Invocations: make([]Invocation, len(raw.Invocations)), Raw: raw.Invocations, Next: raw.Next}
	for i, text := range raw.Invocations {
		if err := json.Unmarshal(text, &page.Invocations[i]); err != nil {
			return InvocationPage{}, fmt.Errorf("decode invocation: %w", err)
		}
	}
	return page, nil
}

// Invocation returns one invocation with its journal.
func (c *Client) Invocation(ctx context.Context, id string) (inv Invocation, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/invocations/"+url.PathEscape(id)+"?journal=true", nil, &inv)
	return inv, response, err
}

// EntryPayload returns the payload of a journal entry.
func (c *Client) EntryPayload(ctx context.Context, id string, index uint32) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, max(queryTimeout, c.opts.RequestTimeout))
	defer cancel()
	response, err := c.send(ctx, c.admin, request{method: http.MethodGet, path: fmt.Sprintf("/invocations/%s/journal/%d/payload", url.PathEscape(id), index)})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Events returns what happened between the journal entries of an invocation, the oldest first.
func (c *Client) Events(ctx context.Context, id string) ([]Event, error) {
	var list struct {
		Events []Event `json:"events"`
	}
	_, err := c.adminJSON(ctx, http.MethodGet, "/invocations/"+url.PathEscape(id)+"/events", nil, &list)
	return list.Events, err
}

// Explain returns why an invocation is in its status.
func (c *Client) Explain(ctx context.Context, id string) (*explain.Explanation, error) {
	e := new(explain.Explanation)
	if _, err := c.adminJSONWithin(ctx, max(queryTimeout, c.opts.RequestTimeout), http.MethodGet, "/invocations/"+url.PathEscape(id)+"/explain", nil, e); err != nil {
		return nil, err
	}
	return e, nil
}

// Version returns the version of the server.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	_, err = c.adminJSON(ctx, http.MethodGet, "/version", nil, &v)
	return v, err
}
