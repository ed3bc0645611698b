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

// A principal that guesses the idempotency key of another one neither gets its result nor learns
// that there is one.
func TestIdempotencyKeysBelongToTheirCallers(t *testing.T) {
	for _, required := range []bool{false, true} {
		cfg, tokens := withTokens(required, map[string]access.Principal{
			"ada": {Roles: []access.Role{access.Invoker}}, "eve": {Roles: []access.Role{access.Invoker}},
			"support": {Roles: []access.Role{access.Invoker, access.Reader}},
		})
		cfg.Authenticator.Issued = func() bool { return true }
		s := testServer(t, cfg, storing())
		key := "idempotency-key: order-17"
		others := []string{"eve", "anonymous"}
		if required {
			others = others[:1]
		}
		as := func(name string) string { return cmp.Or(tokens[name], "x: y") }
		for _, of := range []struct{ call, send, body, path string }{
			{"/Greeter/greet", "/Greeter/greet/send", `"service":"Greeter","handler":"greet"`, "/Greeter/greet"},
			{"/Counter/k/add", "/Counter/k/add/send", `"service":"Counter","key":"k","handler":"add"`, "/Counter/k/add"},
			{"/platform/scope/s/call/Counter/k/add", "/platform/scope/s/send/Counter/k/add", `"service":"Counter","key":"k","handler":"add","scope":"s"`, ""},
			{"/Counter/a,b/add", "/Counter/a,b/add/send", `"service":"Counter","key":"a,b","handler":"add"`, "/Counter/a,b/add"},
		} {
			body := `{"target":"idempotentInvocation",` + of.body + `,"idempotencyKey":"order-17"}`
			known := []func(name string) *httptest.ResponseRecorder{
				func(name string) *httptest.ResponseRecorder { return do(s, "POST", "/platform/attach", body, as(name)) },
				func(name string) *httptest.ResponseRecorder { return do(s, "POST", "/platform/output", body, as(name)) },
			}
			if of.path != "" {
				for _, verb := range []string{"attach", "output"} {
					known = append(known, func(name string) *httptest.ResponseRecorder {
						return do(s, "GET", "/platform/invocation"+of.path+"/order-17/"+verb, "", as(name))
					})
				}
			}
			lookup := func(name string) string {
				return idIn(t, do(s, "POST", "/platform/lookup", body, as(name)))
			}
			missing := map[string]string{}
			for _, name := range others {
				for i, get := range known {
					w := get(name)
					require.Equal(t, 404, w.Code, w.Body)
					missing[fmt.Sprint(name, i)] = w.Body.String()
				}
			}

			first := do(s, "POST", of.call, "", key, as("ada"))
			require.Equal(t, 200, first.Code, first.Body)
			id := first.Header().Get("x-platform-id")
			require.Equal(t, id, lookup("ada"))
			again := do(s, "POST", of.call, "", key, as("ada"))
			require.Equal(t, first.Body.String(), again.Body.String())
			sent := do(s, "POST", of.send, "", key, as("ada"))
			require.Contains(t, sent.Body.String(), "PreviouslyAccepted")
			require.Equal(t, id, idIn(t, sent))
			for _, get := range known {
				require.Equal(t, first.Body.String(), get("ada").Body.String())
			}
			byID := []string{"/platform/attach/" + id, "/platform/output/" + id, "/platform/invocation/" + id + "/attach", "/platform/invocation/" + id + "/output"}
			for _, path := range byID {
				require.Equal(t, first.Body.String(), do(s, "GET", path, "", as("ada")).Body.String())
				require.Equal(t, first.Body.String(), do(s, "GET", path, "", as("support")).Body.String(), "who may read payloads may read this one")
			}

			for _, name := range others {
				require.NotEqual(t, id, lookup(name))
				for i, get := range known {
					w := get(name)
					require.Equal(t, 404, w.Code, "%s %s", name, w.Body)
					require.Equal(t, missing[fmt.Sprint(name, i)], w.Body.String(), "the response does not tell that it exists")
				}
				for _, path := range byID { // ids follow from keys
					w := do(s, "GET", path, "", as(name))
					require.Equal(t, 404, w.Code, "%s %s %s", name, path, w.Body)
				}
				w := do(s, "POST", "/platform/attach", `{"target":"invocation","invocationId":"`+id+`"}`, as(name))
				require.Equal(t, 404, w.Code, w.Body)
				called := do(s, "POST", of.call, "", key, as(name))
				require.Equal(t, 200, called.Code, called.Body)
				require.NotEqual(t, first.Body.String(), called.Body.String())
				require.NotEqual(t, id, called.Header().Get("x-platform-id"))
				require.Contains(t, do(s, "POST", of.send, "", key, as(name)).Body.String(), "PreviouslyAccepted", "its own one")
			}
		}
	}
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
