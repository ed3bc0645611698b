package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// State is the state of an object or workflow.
type State struct {
	Version string       `json:"version"`
	Entries []StateEntry `json:"state"`
}

// StateEntry is one key and its value.
type StateEntry struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// StateChange is the outcome of a change of state.
type StateChange struct {
	ID     string `json:"operation_id"`
	Status string `json:"status"` // applied or queued
}

// Object identifies an object or a workflow.
type Object struct {
	Service, Key string
	Scope        string // empty: none
}

// String returns the service, the key if there is one, and the scope.
func (o Object) String() string {
	text := o.Service
	if o.Key != "" {
		text += "/" + o.Key
	}
	if o.Scope != "" {
		text += " in scope " + o.Scope
	}
	return text
}

// ObjectSummary is a key of an object or workflow that has state or is held.
type ObjectSummary struct {
	Service      string `json:"service"`
	Key          string `json:"key"`
	Scope        string `json:"scope"`
	StateEntries int    `json:"state_entries"`
	StateBytes   int64  `json:"state_bytes"`
	Holder       string `json:"held_by"`
	Waiting      uint64 `json:"waiting"`
}

// ObjectPage is a page of keys.
type ObjectPage struct {
	Objects []ObjectSummary `json:"objects"`
	Next    string          `json:"next_cursor"`
}

// ScopeList is the scopes of a service; Truncated means that there are more.
type ScopeList struct {
	Scopes    []string `json:"scopes"`
	Truncated bool     `json:"truncated"`
}

// ObjectDetail is a key with the invocations that wait for it and the promises of a workflow.
type ObjectDetail struct {
	ObjectSummary
	HeldSince time.Time       `json:"held_since"`
	Queue     []string        `json:"queue"`
	Promises  []ObjectPromise `json:"promises"`
}

// ObjectPromise is a promise of a workflow.
type ObjectPromise struct {
	Name      string `json:"name"`
	Completed bool   `json:"completed"`
	Failure   string `json:"failure"`
}

// Objects lists the keys of a service that start with a prefix.
func (c *Client) Objects(ctx context.Context, service, scope, prefix string, limit int) (page ObjectPage, response *Response, err error) {
	values := url.Values{"service": {service}, "limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"scope": scope, "prefix": prefix} {
		if value != "" {
			values.Set(name, value)
		}
	}
	response, err = c.adminJSON(ctx, http.MethodGet, "/objects"+queryOf(values), nil, &page)
	return page, response, err
}

// Scopes lists the scopes in which a service has keys.
func (c *Client) Scopes(ctx context.Context, service string) (list ScopeList, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, "/services/"+url.PathEscape(service)+"/scopes", nil, &list)
	return list, response, err
}

// Object describes one key.
func (c *Client) Object(ctx context.Context, o Object) (d ObjectDetail, response *Response, err error) {
	values := url.Values{}
	if o.Scope != "" {
		values.Set("scope", o.Scope)
	}
	response, err = c.adminJSON(ctx, http.MethodGet, "/objects/"+url.PathEscape(o.Service)+"/"+url.PathEscape(o.Key)+queryOf(values), nil, &d)
	return d, response, err
}

// State reads the state of an object.
func (c *Client) State(ctx context.Context, o Object) (s State, response *Response, err error) {
	path := "/services/" + url.PathEscape(o.Service) + "/state?object_key=" + url.QueryEscape(o.Key)
	if o.Scope != "" {
		path += "&scope=" + url.QueryEscape(o.Scope)
	}
	response, err = c.adminJSON(ctx, http.MethodGet, path, nil, &s)
	return s, response, err
}

// SetState replaces the state of an object. With a version, it fails with a conflict if the
// state has a different one.
func (c *Client) SetState(ctx context.Context, o Object, entries []StateEntry, version string) (change StateChange, err error) {
	state := map[string][]int{}
	for _, e := range entries {
		numbers := make([]int, len(e.Value))
		for i, b := range e.Value {
			numbers[i] = int(b)
		}
		state[e.Key] = numbers
	}
	body := map[string]any{"object_key": o.Key, "new_state": state}
	if o.Scope != "" {
		body["scope"] = o.Scope
	}
	if version != "" {
		body["version"] = version
	}
	_, err = c.adminJSON(ctx, http.MethodPost, "/services/"+url.PathEscape(o.Service)+"/state", body, &change)
	return change, err
}
