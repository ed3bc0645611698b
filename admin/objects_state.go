package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/flowcontrol"
	"platform/internal/access"
	"platform/internal/budget"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/metadata"
)

// Object identifies a virtual object or a workflow.
type Object struct {
	Service, Key, Scope string
	Workflow            bool
}

// State is the state of an object and its version, which identifies the content.
type State struct {
	Version string
	Entries []StateEntry
}

// StateEntry is a key and value of an object's state.
type StateEntry struct {
	Key   string
	Value []byte
}

// StateUpdate is the new state of an object.
type StateUpdate struct {
	Object  Object
	Entries []StateEntry // the complete state
	Version string       // required version of the current state; empty for any
}

// StateChange is the result of an update.
type StateChange struct {
	ID     ids.Invocation
	Status ChangeStatus
	Reason string // why it was rejected
}

// ChangeStatus is the status of an update.
type ChangeStatus string

// The statuses of an update.
const (
	ChangeQueued  ChangeStatus = "queued" // waits for the key
	ChangeApplied ChangeStatus = "applied"
	ChangeRefused ChangeStatus = "refused" // the state did not have the required version
)

type stateUpdateBody struct {
	ObjectKey *string                    `json:"object_key"`
	NewState  map[string]json.RawMessage `json:"new_state"`
	Version   string                     `json:"version"`
	Scope     string                     `json:"scope"`
}

// readValue decodes the value of a key, which is text or an array of bytes.
func readValue(key string, raw json.RawMessage) ([]byte, error) {
	switch raw[0] {
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return []byte(text), err
	case '[':
		var numbers []*uint8
		if err := json.Unmarshal(raw, &numbers); err != nil || slices.Contains(numbers, nil) {
			return nil, rest.Unprocessable("the field 'new_state' is invalid: the value of '%s' is an array with an element that is not a byte, a number from 0 to 255", key)
		}
		value := make([]byte, len(numbers))
		for i, n := range numbers {
			value[i] = *n
		}
		return value, nil
	}
	return nil, rest.Unprocessable("the field 'new_state' is invalid: the value of '%s' must be a string or an array of bytes", key)
}

type stateChangeBody struct {
	ID     string       `json:"operation_id"`
	Status ChangeStatus `json:"status"`
	Reason string       `json:"reason,omitempty"`
}

// updateState replaces the state of a key. With wait=true it responds when the update was applied
// or rejected.
func (s *Server) updateState(c echo.Context) error {
	var body stateUpdateBody
	if err := s.bodies.ReadJSON(c, &body); err != nil {
		return err
	}
	switch {
	case body.ObjectKey == nil:
		return rest.Unprocessable("the field 'object_key' is missing")
	case body.NewState == nil:
		return rest.Unprocessable("the field 'new_state' is missing; {} removes all state")
	}
	longest := limits.Key
	if len(body.NewState) == 0 { // older servers accepted longer keys
		longest = limits.Names
	}
	if n := len(*body.ObjectKey); n > longest {
		return rest.Unprocessable("the field 'object_key' is invalid: it has %d bytes, at most %d", n, longest)
	}
	wait, err := rest.QueryBool(c, "wait")
	if err != nil {
		return err
	}
	if p := access.From(c.Request().Context()); p.Limited() && !p.AllowsTarget(c.Param("service"), body.Scope) {
		return outsideLimits(p)
	}
	object, err := s.object(c.Param("service"), *body.ObjectKey, body.Scope, len(body.NewState) == 0)
	if err != nil {
		return err
	}
	update := StateUpdate{Object: object, Version: body.Version}
	size := int64(0)
	for _, key := range slices.Sorted(maps.Keys(body.NewState)) {
		if len(key) > limits.Key {
			return rest.Unprocessable("the field 'new_state' is invalid: the key %.100q has %d bytes, at most %d", key, len(key), limits.Key)
		}
		value, err := readValue(key, body.NewState[key])
		if err != nil {
			return err
		}
		size += int64(limits.StateEntry(len(key), len(value)))
		update.Entries = append(update.Entries, StateEntry{key, value})
	}
	if most := s.cfg.Limits.StateSize; most > 0 && size > most {
		return errcode.New(errcode.RT0027, "the new state has %d bytes, with 64 for each entry, and worker.invoker.object-state-size-limit is %d", size, most)
	}
	if err := s.checkStateKeys(c.Request().Context(), &update); err != nil {
		return err
	}
	change, err := s.invocations.UpdateState(c.Request().Context(), update, wait)
	if err != nil {
		return fmt.Errorf("update state of %s/%s: %w", object.Service, object.Key, err)
	}
	return respondChange(c, change)
}

// checkStateKeys returns an error if the state that an update is based on has a key that is not UTF-8. JSON
// cannot contain it: clients that read the state, change an entry and write all of them would rename it,
// and merge it with others that look alike.
func (s *Server) checkStateKeys(ctx context.Context, u *StateUpdate) error {
	if u.Version == "" || len(u.Entries) == 0 {
		return nil
	}
	state, release, err := s.readState(ctx, u.Object)
	if err != nil {
		return err
	}
	defer release()
	i := slices.IndexFunc(state.Entries, func(e StateEntry) bool { return !utf8.ValidString(e.Key) })
	if i < 0 || state.Version != u.Version { // with another version the update is refused
		return nil
	}
	return rest.Unprocessable("the state has the key %.100q, which is not UTF-8 and which JSON cannot contain: the update would lose its value; without the field 'version' it replaces the state nevertheless", state.Entries[i].Key)
}

func respondChange(c echo.Context, change StateChange) error {
	if change.Status == ChangeRefused {
		return &rest.Error{Status: http.StatusConflict, Message: change.Reason + "; nothing was changed"}
	}
	return rest.Respond(c, http.StatusAccepted, stateChangeBody{change.ID.String(), change.Status, change.Reason})
}

// object returns the object of a request. It returns an error if the service has no state. With
// removing, services that are no longer registered are accepted.
func (s *Server) object(service, key, scope string, removing bool) (Object, error) {
	o := Object{Service: service, Key: key, Scope: scope}
	if err := s.checkScope(scope); err != nil {
		return o, err
	}
	known := s.registry.Schemas().Services[service]
	switch {
	case known == nil && removing:
		return o, nil
	case known == nil:
		return o, &metadata.NotFoundError{Service: service}
	case known.Type == metadata.PlainService:
		return o, rest.BadRequest("service '%s' has no state: only virtual objects and workflows have", service)
	}
	o.Workflow = known.Type == metadata.Workflow
	return o, nil
}

// checkScope returns an error if a scope is invalid; an empty one is valid.
func (s *Server) checkScope(scope string) error {
	if scope == "" {
		return nil
	}
	if !s.cfg.FlowControl {
		return rest.BadRequest("the field 'scope' is invalid: scopes need flow control, which is off (experimental-enable-vqueues and experimental-enable-protocol-v7, on a fresh cluster)")
	}
	if err := flowcontrol.CheckScope(scope); err != nil {
		return rest.InvalidField("scope", err)
	}
	return nil
}

type stateBody struct {
	Version string           `json:"version"`
	State   []stateEntryBody `json:"state"`
}

type stateEntryBody struct {
	Key   string  `json:"key"`
	Text  *string `json:"value_utf8,omitempty"`
	Value []byte  `json:"value"` // base64
}

// getState responds with the state of a key.
func (s *Server) getState(c echo.Context) error {
	if !c.QueryParams().Has("object_key") {
		return rest.BadRequest("The query parameter 'object_key' is missing")
	}
	key := c.QueryParam("object_key")
	object, err := s.object(c.Param("service"), key, c.QueryParam("scope"), false)
	if err != nil {
		return err
	}
	state, release, err := s.readState(c.Request().Context(), object)
	if err != nil {
		return err
	}
	defer release()
	body := stateBody{Version: state.Version, State: []stateEntryBody{}}
	for _, e := range state.Entries {
		entry := stateEntryBody{Key: e.Key, Value: e.Value}
		if utf8.Valid(e.Value) {
			text := string(e.Value)
			entry.Text = &text
		}
		body.State = append(body.State, entry)
	}
	return rest.Respond(c, http.StatusOK, body)
}

// readState returns the state of a key. The caller must release the memory that is reserved for it.
func (s *Server) readState(ctx context.Context, object Object) (state State, release func(), err error) {
	if release, err = s.reserveState(ctx, object); err != nil {
		return state, nil, err
	}
	if state, err = s.invocations.State(ctx, object); err != nil {
		release()
		return state, nil, fmt.Errorf("read state of %s/%s: %w", object.Service, object.Key, err)
	}
	return state, release, nil
}

// reserveState reserves memory for the state of a key, which the caller must release.
func (s *Server) reserveState(ctx context.Context, object Object) (release func(), err error) {
	object.Workflow = false // its promises are not needed
	detail, err := s.invocations.Object(ctx, object)
	if err != nil {
		return nil, fmt.Errorf("read the size of the state of %s/%s: %w", object.Service, object.Key, err)
	}
	account := budget.From(ctx)
	if !account.ReserveResponse(detail.Bytes) {
		return nil, &rest.Error{
			Status: http.StatusServiceUnavailable, Code: errcode.RT0026, Retry: true, After: account.RetryAfter(),
			Message: "not enough memory for the state besides the bodies in progress (networking.body-memory-limit, networking.connection-body-memory-limit); retry later",
		}
	}
	return func() { account.Return(detail.Bytes) }, nil
}

// getStateChange responds with the status of an update.
func (s *Server) getStateChange(c echo.Context) error {
	id, err := ids.ParseInvocation(c.Param("operation"))
	if err != nil {
		return rest.InvalidField("operation", err)
	}
	change, err := s.invocations.StateChange(c.Request().Context(), id)
	if errors.Is(err, rest.ErrNotFound) {
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The state update '%s' does not exist, or is no longer kept", id)}
	}
	if err != nil {
		return fmt.Errorf("look up update %s: %w", id, err)
	}
	return rest.Respond(c, http.StatusOK, stateChangeBody{id.String(), change.Status, change.Reason})
}
