package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

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

// Query selects invocations; empty fields select all.
type Query struct {
	Status, Service, Handler, Key, Scope, Deployment []string
	Limit                                            int
	OldestFirst                                      bool
	Cursor                                           string
}

func (q Query) encode() string {
	values := url.Values{}
	for name, list := range map[string][]string{
		"status": q.Status, "service": q.Service, "handler": q.Handler, "key": q.Key, "scope": q.Scope, "deployment": q.Deployment,
	} {
		if len(list) > 0 {
			values[name] = list
		}
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.OldestFirst {
		values.Set("oldest_first", "true")
	}
	if q.Cursor != "" {
		values.Set("cursor", q.Cursor)
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
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

// Health reports whether the admin API accepts requests.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.adminJSON(ctx, http.MethodGet, "/health", nil, nil)
	return err
}
