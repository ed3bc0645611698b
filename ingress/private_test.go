package ingress

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// storing returns invocations that are stored by their ids; the result of each is its number.
func storing() *fakeInvocations {
	results := map[ids.Invocation]routing.Response{}
	store := func(inv *machine.Invoke) (r routing.Response, existing bool) {
		if r, existing = results[inv.ID]; !existing {
			r = routing.Response{
				ID: inv.ID, Target: inv.Target, IdempotencyKey: inv.IdempotencyKey, Result: journal.Result{Value: fmt.Append(nil, len(results)+1)},
			}
			results[inv.ID] = r
		}
		return r, existing
	}
	find := func(_ context.Context, id ids.Invocation) (routing.Response, error) {
		if r, known := results[id]; known {
			return r, nil
		}
		return routing.Response{}, routing.ErrNotFound
	}
	return &fakeInvocations{
		call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
			r, _ := store(inv)
			return r, nil
		},
		send: func(_ context.Context, inv *machine.Invoke) (o machine.Outcome, err error) {
			if _, existing := store(inv); existing {
				o.Code = machine.Existing
			}
			return o, nil
		},
		attach: find, output: find,
	}
}

func idIn(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body struct{ InvocationID string }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), w.Body)
	return body.InvocationID
}

// keyedHandler has the paths and the target of a handler that is called with the idempotency key
// order-17.
type keyedHandler struct {
	call, send string
	target     string // fields of the target of requests by key
	path       string // in paths of requests by key; empty if it has none
}

var keyedHandlers = []keyedHandler{
	{"/Greeter/greet", "/Greeter/greet/send", `"service":"Greeter","handler":"greet"`, "/Greeter/greet"},
	{"/Counter/k/add", "/Counter/k/add/send", `"service":"Counter","key":"k","handler":"add"`, "/Counter/k/add"},
	{"/platform/scope/s/call/Counter/k/add", "/platform/scope/s/send/Counter/k/add", `"service":"Counter","key":"k","handler":"add","scope":"s"`, ""},
	{"/Counter/a,b/add", "/Counter/a,b/add/send", `"service":"Counter","key":"a,b","handler":"add"`, "/Counter/a,b/add"},
}

// keyedCaller sends requests for a handler in the name of a principal, with the same key.
type keyedCaller struct {
	s       *Server
	header  string // with the token; any other header for anonymous requests
	handler keyedHandler
}

func (c *keyedCaller) call() *httptest.ResponseRecorder {
	return do(c.s, "POST", c.handler.call, "", "idempotency-key: order-17", c.header)
}

func (c *keyedCaller) send() *httptest.ResponseRecorder {
	return do(c.s, "POST", c.handler.send, "", "idempotency-key: order-17", c.header)
}

func (c *keyedCaller) body() string {
	return `{"target":"idempotentInvocation",` + c.handler.target + `,"idempotencyKey":"order-17"}`
}

// lookup returns the id that belongs to the key, whether or not it exists.
func (c *keyedCaller) lookup(t *testing.T) string {
	t.Helper()
	return idIn(t, do(c.s, "POST", "/platform/lookup", c.body(), c.header))
}

// byKey requests the result with the key, in each possible way.
func (c *keyedCaller) byKey() (responses []*httptest.ResponseRecorder) {
	for _, verb := range []string{"attach", "output"} {
		responses = append(responses, do(c.s, "POST", "/platform/"+verb, c.body(), c.header))
		if c.handler.path != "" {
			responses = append(responses, do(c.s, "GET", "/platform/invocation"+c.handler.path+"/order-17/"+verb, "", c.header))
		}
	}
	return responses
}

// byID requests the result of an invocation, in each possible way.
func (c *keyedCaller) byID(id string) (responses []*httptest.ResponseRecorder) {
	for _, path := range []string{"/platform/attach/" + id, "/platform/output/" + id, "/platform/invocation/" + id + "/attach", "/platform/invocation/" + id + "/output"} {
		responses = append(responses, do(c.s, "GET", path, "", c.header))
	}
	return append(responses, do(c.s, "POST", "/platform/attach", `{"target":"invocation","invocationId":"`+id+`"}`, c.header))
}

// requireResults requires that all responses have the same result.
func requireResults(t *testing.T, result string, responses []*httptest.ResponseRecorder) {
	t.Helper()
	for _, w := range responses {
		require.Equal(t, 200, w.Code, w.Body)
		require.Equal(t, result, w.Body.String())
	}
}

// A principal that guesses the idempotency key of another one neither gets its result nor learns
// that there is one.
func TestIdempotencyKeysBelongToTheirCallers(t *testing.T) {
	for required, others := range map[bool][]string{false: {"eve", "anonymous"}, true: {"eve"}} {
		cfg, tokens := withTokens(required, map[string]access.Principal{
			"ada": {Roles: []access.Role{access.Invoker}}, "eve": {Roles: []access.Role{access.Invoker}},
			"support": {Roles: []access.Role{access.Invoker, access.Reader}},
		})
		cfg.Authenticator.Issued = func() bool { return true }
		s := testServer(t, cfg, storing())
		for _, handler := range keyedHandlers {
			t.Run(fmt.Sprintf("%s with tokens required %v", handler.call, required), func(t *testing.T) {
				as := func(name string) *keyedCaller {
					return &keyedCaller{s, cmp.Or(tokens[name], "x: y"), handler}
				}
				missing := map[string][]*httptest.ResponseRecorder{}
				for _, name := range others {
					missing[name] = as(name).byKey()
				}
				id, result := requireOwnKey(t, as("ada"))
				requireResults(t, result, as("support").byID(id)) // who may read payloads may read this one
				for _, name := range others {
					requireOtherKey(t, as(name), id, result, missing[name])
				}
			})
		}
	}
}

// requireOwnKey calls a handler with a key, and requires that the caller gets the result again with
// each further request.
func requireOwnKey(t *testing.T, c *keyedCaller) (id, result string) {
	first := c.call()
	require.Equal(t, 200, first.Code, first.Body)
	id, result = first.Header().Get("x-platform-id"), first.Body.String()
	require.Equal(t, id, c.lookup(t))
	require.Equal(t, result, c.call().Body.String())
	sent := c.send()
	require.Contains(t, sent.Body.String(), "PreviouslyAccepted")
	require.Equal(t, id, idIn(t, sent))
	requireResults(t, result, c.byKey())
	requireResults(t, result, c.byID(id))
	return id, result
}

// requireOtherKey requires that a caller with the same key gets the responses that it got before
// there was a result, and that its own call has another result.
func requireOtherKey(t *testing.T, c *keyedCaller, id, result string, before []*httptest.ResponseRecorder) {
	require.NotEqual(t, id, c.lookup(t))
	for i, w := range c.byKey() {
		require.Equal(t, 404, before[i].Code, before[i].Body)
		require.Equal(t, 404, w.Code, w.Body)
		require.Equal(t, before[i].Body.String(), w.Body.String(), "the response does not tell that it exists")
	}
	for _, w := range c.byID(id) { // ids follow from keys
		require.Equal(t, 404, w.Code, w.Body)
	}
	called := c.call()
	require.Equal(t, 200, called.Code, called.Body)
	require.NotEqual(t, result, called.Body.String())
	require.NotEqual(t, id, called.Header().Get("x-platform-id"))
	require.Contains(t, c.send().Body.String(), "PreviouslyAccepted", "its own one")
}

// The name, not the token, owns the keys.
func TestIdempotencyKeysSurviveTheRotationOfTokens(t *testing.T) {
	f := storing()
	call := func() string {
		cfg, tokens := withTokens(true, map[string]access.Principal{"ada": {Roles: []access.Role{access.Invoker}}})
		return do(testServer(t, cfg, f), "POST", "/Greeter/greet", "", "idempotency-key: k", tokens["ada"]).Body.String()
	}
	require.Equal(t, call(), call())
}

// Without credentials, and below level 4, ids are those of earlier releases.
func TestSharedIdempotencyKeysKeepTheirIDs(t *testing.T) {
	shared := ids.OfIdempotent("", "Greeter", "", "greet", "k").String()
	cfg, tokens := withTokens(false, map[string]access.Principal{"ada": {Roles: []access.Role{access.Invoker}}, "eve": {Roles: []access.Role{access.Invoker}}})
	s := testServer(t, cfg, storing())
	require.Equal(t, shared, do(s, "POST", "/Greeter/greet", "", "idempotency-key: k").Header().Get("x-platform-id"))
	require.Equal(t, 200, do(s, "GET", "/platform/attach/"+shared, "", tokens["ada"]).Code, "keys of callers without credentials are shared")

	cfg.Level = func() feature.Level { return feature.Level3 }
	s = testServer(t, cfg, storing())
	for _, name := range []string{"ada", "eve"} {
		require.Equal(t, shared, do(s, "POST", "/Greeter/greet", "", "idempotency-key: k", tokens[name]).Header().Get("x-platform-id"))
	}
}

// A workflow has one run for all callers, whoever starts it.
func TestWorkflowsAreShared(t *testing.T) {
	cfg, tokens := withTokens(true, map[string]access.Principal{"ada": {Roles: []access.Role{access.Invoker}}, "eve": {Roles: []access.Role{access.Invoker}}})
	s := testServer(t, cfg, storing())
	first := do(s, "POST", "/Order/w/run", "", tokens["ada"])
	require.Equal(t, 200, first.Code, first.Body)
	got := do(s, "GET", "/platform/workflow/Order/w/attach", "", tokens["eve"])
	require.Equal(t, 200, got.Code)
	require.Equal(t, first.Body.String(), got.Body.String())
}
