package ingress

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
)

var scoping = Config{FlowControl: true}

func TestScopedRequests(t *testing.T) {
	long := strings.Repeat("s", 36)
	for _, tc := range []struct {
		path   string
		target machine.Target
	}{
		{"Greeter/greet", machine.Target{Service: "Greeter", Handler: "greet"}},
		{"Greeter/greet/", machine.Target{Service: "Greeter", Handler: "greet"}},
		{"Counter/a%2Fb/add", machine.Target{Service: "Counter", Key: "a/b", Handler: "add", Type: target.ObjectExclusive}},
		{"Counter/a/get", machine.Target{Service: "Counter", Key: "a", Handler: "get", Type: target.ObjectShared}},
		{"Order/o/run", machine.Target{Service: "Order", Key: "o", Handler: "run", Type: target.WorkflowRun}},
		{"Order/o/status", machine.Target{Service: "Order", Key: "o", Handler: "status", Type: target.WorkflowShared}},
	} {
		for scope, segment := range map[string]string{"tenant-1": "tenant-1", "A_z.0": "%41_z.0", long: long} {
			for prefix, status := range map[string]int{
				"/platform/scope/" + segment + "/call/": 200, "/restate/scope/" + segment + "/call/": 200,
				"/platform/scope/" + segment + "/send/": 202, "/restate/scope/" + segment + "/send/": 202,
			} {
				f := &fakeInvocations{}
				w := do(testServer(t, scoping, f), "POST", prefix+tc.path, "")
				require.Equal(t, status, w.Code, "%s: %s", prefix+tc.path, w.Body)
				inv, want := f.only(t), tc.target
				want.Scope = scope
				require.Equal(t, want, inv.Target)
				require.Equal(t, ids.HashKey(scope), inv.ID.PartitionKey(), "one partition admits for all of a scope")
				require.Empty(t, inv.LimitKey)
			}
		}
	}
}

func TestAScopeIsPartOfTheIdentity(t *testing.T) {
	invoked := func(path string, headers ...string) ids.Invocation {
		f := &fakeInvocations{}
		require.Less(t, do(testServer(t, scoping, f), "POST", path, "", headers...).Code, 300)
		return f.only(t).ID
	}
	lookedUp := func(body string) string {
		w := do(testServer(t, scoping, &fakeInvocations{}), "POST", "/platform/lookup", body)
		require.Equal(t, 200, w.Code, w.Body)
		return w.Body.String()
	}
	const key = "idempotency-key: i"
	for name, tc := range map[string]struct{ id, body string }{
		"workflow":   {invoked("/platform/scope/s/send/Order/o/run").String(), `{"target":"workflow","workflowName":"Order","workflowKey":"o","scope":"s"}`},
		"idempotent": {invoked("/platform/scope/s/call/Greeter/greet", key).String(), `{"target":"idempotentInvocation","service":"Greeter","handler":"greet","idempotencyKey":"i","scope":"s"}`},
		"keyed": {invoked("/platform/scope/s/call/Counter/a/add", key).String(),
			`{"target":"idempotentInvocation","service":"Counter","key":"a","handler":"add","idempotencyKey":"i","scope":"s"}`},
	} {
		require.Equal(t, `{"invocationId":"`+tc.id+`"}`, lookedUp(tc.body), name)
		other := strings.Replace(tc.body, `"scope":"s"`, `"scope":"t"`, 1)
		unscoped := strings.Replace(tc.body, `,"scope":"s"`, ``, 1)
		require.NotEqual(t, lookedUp(tc.body), lookedUp(other), name)
		require.NotEqual(t, lookedUp(tc.body), lookedUp(unscoped), name)
	}
	f := &fakeInvocations{}
	do(testServer(t, scoping, f), "POST", "/platform/attach", `{"target":"workflow","workflowName":"Order","workflowKey":"o","scope":"s"}`)
	do(testServer(t, scoping, f), "POST", "/restate/output", `{"target":"workflow","workflowName":"Order","workflowKey":"o","scope":"s"}`)
	id := ids.OfWorkflow("s", "Order", "o")
	require.Equal(t, []ids.Invocation{id, id}, f.ids)
}

func TestLimitKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		query   string
		headers []string
		want    string
	}{
		"none":                     {"", nil, ""},
		"query":                    {"?limit-key=foo", nil, "foo"},
		"two parts":                {"?limit-key=foo/bar", nil, "foo/bar"},
		"encoded":                  {"?limit-key=foo%2Fbar&x=1", nil, "foo/bar"},
		"header":                   {"", []string{"x-platform-limit-key: foo/bar"}, "foo/bar"},
		"alias":                    {"", []string{"x-restate-limit-key: foo"}, "foo"},
		"header before query":      {"?limit-key=q", []string{"x-platform-limit-key: h"}, "h"},
		"own header before alias":  {"", []string{"x-restate-limit-key: a", "x-platform-limit-key: h"}, "h"},
		"header before bad query":  {"?limit-key=a/b/c", []string{"x-restate-limit-key: h"}, "h"},
		"delay does not hinder it": {"?delay=1s&limit-key=foo", nil, "foo"},
	} {
		f := &fakeInvocations{}
		w := do(testServer(t, scoping, f), "POST", "/platform/scope/s/send/Greeter/greet"+tc.query, "", tc.headers...)
		require.Equal(t, 202, w.Code, "%s: %s", name, w.Body)
		require.Equal(t, tc.want, f.only(t).LimitKey, name)
	}
}

func TestBadScopesAndLimitKeys(t *testing.T) {
	const call = "/platform/scope/s/call/Greeter/greet"
	for name, tc := range map[string]struct {
		path    string
		headers []string
		status  int
		message string
	}{
		"star":                {"/platform/scope/*/call/Greeter/greet", nil, 400, "bad scope '*': '*' has a character outside A-Z"},
		"blank":               {"/platform/scope/a%20b/send/Greeter/greet", nil, 400, "bad scope 'a b'"},
		"slash":               {"/platform/scope/a%2Fb/call/Greeter/greet", nil, 400, "bad scope 'a/b'"},
		"long":                {"/platform/scope/" + strings.Repeat("s", 37) + "/call/Greeter/greet", nil, 400, "has 37 bytes: at most 36 are allowed"},
		"empty":               {"/platform/scope//call/Greeter/greet", nil, 400, "bad scope ''"},
		"not UTF-8":           {"/platform/scope/%ff/call/Greeter/greet", nil, 400, "not valid UTF-8"},
		"unknown service":     {"/platform/scope/s/call/Missing/greet", nil, 404, "service 'Missing' not found"},
		"unknown handler":     {"/platform/scope/s/call/Greeter/nothing", nil, 404, "has no handler 'nothing'"},
		"no key":              {"/platform/scope/s/call/Counter/add", nil, 400, "is a virtual object, whose handlers are called with a key"},
		"send at the end":     {"/platform/scope/s/call/Greeter/greet/send", nil, 400, "is a service without keys"},
		"no verb":             {"/platform/scope/s/Greeter/greet", nil, 404, "not found"},
		"delay on a call":     {call + "?delay=1s", nil, 400, "only sends can be delayed"},
		"three parts":         {call + "?limit-key=a/b/c", nil, 400, "bad limit key 'a/b/c': it has more than two parts"},
		"empty limit key":     {call + "?limit-key=", nil, 400, "bad limit key '': a part is empty"},
		"empty header":        {call, []string{"x-platform-limit-key: "}, 400, "bad limit key ''"},
		"empty part":          {call + "?limit-key=a/", nil, 400, "bad limit key 'a/': a part is empty"},
		"star in a limit key": {call, []string{"x-restate-limit-key: a/*"}, 400, "bad limit key 'a/*'"},
		"long limit key":      {call, []string{"x-platform-limit-key: " + strings.Repeat("k", 37)}, 400, "at most 36"},
		"two limit keys":      {call + "?limit-key=a&limit-key=b", nil, 400, "bad limit-key: the query parameter is given 2 times"},
		"two in headers":      {call, []string{"x-platform-limit-key: a", "x-platform-limit-key: b"}, 400, "'x-platform-limit-key' is given 2 times"},
		"two priorities":      {call, []string{"x-restate-priority: 1", "x-restate-priority: 2"}, 400, "'x-restate-priority' is given 2 times"},
		"undecodable":         {call + "?limit-key=%zz", nil, 400, "bad limit-key: the query cannot be decoded"},
		"limit key, no scope": {"/Greeter/greet?limit-key=a", nil, 400, "limit-key requires a scope to be set"},
		"run of a workflow":   {"/platform/scope/s/call/Order/o/run", []string{"idempotency-key: a"}, 400, "bad idempotency key"},
		"scope of a classic":  {"/scope/s/call/Greeter/greet", nil, 404, "service 'scope' not found"},
		"private":             {"/platform/scope/s/call/Greeter/hidden", nil, 400, "is not public"},
		"deprecated protocol": {"/platform/scope/s/call/Old/work", nil, 400, "[RT0020]"},
		"too many segments":   {"/platform/scope/s/call/Counter/a/add/x/y", nil, 400, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeInvocations{}
			requireProblem(t, do(testServer(t, scoping, f), "POST", tc.path, "", tc.headers...), tc.status, tc.message)
			require.Empty(t, f.ids)
		})
	}
	requireProblem(t, do(testServer(t, scoping, &fakeInvocations{}), "PUT", call, ""), 405, "method PUT is not allowed")
	for scope, message := range map[string]string{"a b": "bad scope 'a b'", strings.Repeat("s", 37): "at most 36"} {
		body := `{"target":"workflow","workflowName":"Order","workflowKey":"o","scope":"` + scope + `"}`
		for _, verb := range []string{"lookup", "attach", "output"} {
			requireProblem(t, do(testServer(t, scoping, &fakeInvocations{}), "POST", "/platform/"+verb, body), 400, message)
		}
	}
}

func TestPriorities(t *testing.T) {
	const send = "/platform/scope/s/send/Greeter/greet"
	for header, want := range map[string]uint8{"x-other: 1": 0, "x-platform-priority: 0": 0, "x-platform-priority: 9": 9, "x-restate-priority: 4": 4} {
		f := &fakeInvocations{}
		require.Equal(t, 202, do(testServer(t, scoping, f), "POST", send, "", header).Code)
		require.Equal(t, want, f.only(t).Priority, header)
	}
	for _, value := range []string{"10", "-1", "", "high", "1.5", "a"} {
		f := &fakeInvocations{}
		requireProblem(t, do(testServer(t, scoping, f), "POST", send, "", "x-platform-priority: "+value), 400, "bad x-platform-priority '"+value+"'")
		require.Empty(t, f.ids)
	}
	requireProblem(t, do(testServer(t, scoping, &fakeInvocations{}), "POST", "/Greeter/greet", "", "x-platform-priority: 1"), 400, "requires a scope")
}

func TestAFullQueueReportsWhenToRetry(t *testing.T) {
	full := &routing.QueueFullError{Rule: "tenant/*"}
	f := &fakeInvocations{
		send: func(context.Context, *machine.Invoke) (machine.Outcome, error) { return machine.Outcome{}, full },
		call: func(context.Context, *machine.Invoke) (routing.Response, error) { return routing.Response{}, full },
	}
	for _, verb := range []string{"call", "send"} {
		w := do(testServer(t, scoping, f), "POST", "/platform/scope/tenant/"+verb+"/Greeter/greet", "")
		requireProblem(t, w, 429, "as many invocations wait as the rule 'tenant/*' allows (queue_limit); the request had no effect and can be retried safely")
		require.Equal(t, "1", w.Header().Get("retry-after"))
		require.Empty(t, w.Header().Get("x-platform-id"), "there is no invocation")
	}
}
