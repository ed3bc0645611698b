package client

import (
	"context"
	"net/http"
	"net/url"
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
