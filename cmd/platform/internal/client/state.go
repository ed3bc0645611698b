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

// StateChange is what became of a change of state.
type StateChange struct {
	ID     string `json:"operation_id"`
	Status string `json:"status"` // applied or queued
}

// State reads the state of a key of a service.
func (c *Client) State(ctx context.Context, service, key string) (s State, answer *Response, err error) {
	path := "/services/" + url.PathEscape(service) + "/state?object_key=" + url.QueryEscape(key)
	answer, err = c.adminJSON(ctx, http.MethodGet, path, nil, &s)
	return s, answer, err
}

// SetState replaces the state of a key. With a version, it fails with a conflict if the
// state has another one by then.
func (c *Client) SetState(ctx context.Context, service, key string, entries []StateEntry, version string) (change StateChange, err error) {
	state := map[string][]int{}
	for _, e := range entries {
		numbers := make([]int, len(e.Value))
		for i, b := range e.Value {
			numbers[i] = int(b)
		}
		state[e.Key] = numbers
	}
	body := map[string]any{"object_key": key, "new_state": state}
	if version != "" {
		body["version"] = version
	}
	_, err = c.adminJSON(ctx, http.MethodPost, "/services/"+url.PathEscape(service)+"/state", body, &change)
	return change, err
}
