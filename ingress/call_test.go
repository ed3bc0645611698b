package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

// do makes a request; headers are lines such as "content-type: text/plain".
func do(s *Server, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	var r *http.Request
	if body == "" {
		r = httptest.NewRequest(method, path, http.NoBody)
	} else {
		r = httptest.NewRequest(method, path, strings.NewReader(body))
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w
}

func TestPathNamesTheHandler(t *testing.T) {
	for _, tc := range []struct {
		path   string
		target string // as machine.Target prints it
		send   bool
	}{
		{"/platform/call/Greeter/greet", "Greeter/greet", false},
		{"/platform/call/Counter/a/add", "Counter/a/add", false},
		{"/platform/call/Order/o-1/run", "Order/o-1/run", false},
		{"/platform/send/Greeter/greet", "Greeter/greet", true},
		{"/platform/send/Counter/a/add", "Counter/a/add", true},
		{"/restate/call/Greeter/greet", "Greeter/greet", false},
		{"/restate/send/Order/o/run", "Order/o/run", true},
		{"/Greeter/greet", "Greeter/greet", false},
		{"/Greeter/greet/", "Greeter/greet", false},
		{"/Greeter/greet/send", "Greeter/greet", true},
		{"/Greeter/greet/send/", "Greeter/greet", true},
		{"/Greeter/send", "Greeter/send", false},
		{"/Greeter/send/send", "Greeter/send", true},
		{"/platform/call/Greeter/send", "Greeter/send", false},
		{"/Counter/a/add", "Counter/a/add", false},
		{"/Counter/a/add/send", "Counter/a/add", true},
		{"/Counter/send/send", "Counter/send/send", false},
		{"/Counter/send/send/send", "Counter/send/send", true},
		{"/Order/o/status", "Order/o/status", false},
		{"/Counter/a%20b/add", "Counter/a b/add", false},
		{"/Counter/a+b/add", "Counter/a+b/add", false},
		{"/Counter/a%2Fb/add", "Counter/a/b/add", false},
		{"/Counter/%2F/add", "Counter///add", false},
		{"/Counter/100%25/add", "Counter/100%/add", false},
		{"/Counter/%E2%82%AC/add", "Counter/€/add", false},
		{"/Counter//add", "Counter//add", false},
		{"/Counter//add/send", "Counter//add", true},
		{"/platform/call/Counter//add", "Counter//add", false},
		{"/platform/send/Order//run", "Order//run", true},
		{"/%47reeter/greet", "Greeter/greet", false},
		{"/Counter/a%2fb/%61dd/send", "Counter/a/b/add", true},
		{"/Greeter/greet?x=1", "Greeter/greet", false},
		{"/Greeter/greet?key=a&limit=10&relay=on&decay=2", "Greeter/greet", false},
		{"/Greeter/greet/send?delays=5&relay=on", "Greeter/greet", true},
		{"/Greeter/greet?delays=5s", "Greeter/greet", false},
	} {
		t.Run(tc.path, func(t *testing.T) {
			for _, method := range []string{"GET", "POST"} {
				f := &fakeInvocations{}
				w := do(testServer(t, Config{}, f), method, tc.path, "")
				want := http.StatusOK
				if tc.send {
					want = http.StatusAccepted
				}
				require.Equal(t, want, w.Code, w.Body)
				require.Equal(t, tc.target, f.only(t).Target.String())
			}
		})
	}
}

func TestCallGetsWhatItNeeds(t *testing.T) {
	f := &fakeInvocations{}
	s := testServer(t, Config{Version: "1.2.3"}, f)
	w := do(s, "POST", "/Counter/k%2F1/add?y=%20&x=1", "7",
		"content-type: application/json", "X-Custom: a", "x-custom: b", "Accept: */*", "Cookie: c=1", "Authorization: Bearer x", "X-API-Key: k",
		"connection: keep-alive, X-Hop", "x-hop: 1", "keep-alive: timeout=5", "te: trailers", "upgrade: h2c", "proxy-authorization: Basic eDp5",
		"idempotency-key: key 1", "idempotency-expires: x", "x-restate-ingress-path: /forged", "x-platform-ingress-path: /forged", "x-empty: ",
		"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate: a=1", "tracestate: b=2",
		"baggage: user=alice, broken", "baggage: region=eu")
	require.Equal(t, 200, w.Code, w.Body)

	inv := f.only(t)
	require.Equal(t, machine.Target{Service: "Counter", Key: "k/1", Handler: "add", Type: target.ObjectExclusive}, inv.Target)
	require.Equal(t, ids.NewInvocation(ids.HashKey("k/1"), ids.IdempotentUnique("", "Counter", "k/1", "add", "key 1")), inv.ID)
	require.Equal(t, "key 1", *inv.IdempotencyKey)
	require.Equal(t, machine.Source{}, inv.Source)
	require.Nil(t, inv.Sink)
	require.Zero(t, inv.StartAt)
	require.Equal(t, "1.2.3", inv.ServerVersion)
	require.Equal(t, machine.Retention{Completion: 86_400_000, Journal: 86_400_000}, inv.Retention)
	require.Equal(t, machine.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1,b=2", Baggage: "user=alice,region=eu"}, inv.Trace)

	require.Equal(t, "7", string(bodyOf(inv)))
	const path = "/Counter/k%2F1/add?y=%20&x=1"
	require.Equal(t, map[string][]string{
		"x-platform-ingress-path": {path}, "x-restate-ingress-path": {path},
		"content-type": {"application/json"}, "x-custom": {"a", "b"}, "accept": {"*/*"}, "x-empty": {""},
		"traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "tracestate": {"a=1", "b=2"},
		"baggage": {"user=alice, broken", "region=eu"},
	}, headersOf(inv))
	first := decodeInput(inv).Headers[:2]
	require.Equal(t, []string{pathHeaders[0], pathHeaders[1]}, []string{first[0].Key, first[1].Key})
}

// A trace context that is too long is not stored, and baggage does not require one.
func TestLongTraceStateIsIgnored(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		headers http.Header
		want    machine.Trace
	}{
		{http.Header{"Traceparent": {parent}, "Tracestate": {strings.Repeat("a", maxTraceState)}}, machine.Trace{Parent: parent, State: strings.Repeat("a", maxTraceState)}},
		{http.Header{"Traceparent": {parent}, "Tracestate": {strings.Repeat("a", maxTraceState), "b"}}, machine.Trace{Parent: parent}},
		{http.Header{"Traceparent": {"00-1-2-3"}, "Tracestate": {"a"}, "Baggage": {"b=1"}}, machine.Trace{Baggage: "b=1"}},
	} {
		require.Equal(t, c.want, traceOf(c.headers))
	}
}

// Credentials of callers are neither stored nor passed to handlers, unless a setting says so.
func TestCredentialsOfCallersAreWithheld(t *testing.T) {
	f := &fakeInvocations{}
	s := testServer(t, Config{ForwardHeaders: []string{"Authorization"}}, f)
	w := do(s, "POST", "/Counter/k/add", "7", "Authorization: Bearer x", "cookie: planted", "x-api-key: planted", "Proxy-Authorization: planted", "x-auth-token: planted")
	require.Equal(t, 200, w.Code, w.Body)
	inv := f.only(t)
	require.Equal(t, []string{"Bearer x"}, headersOf(inv)["authorization"])
	require.NotContains(t, fmt.Sprint(headersOf(inv)), "planted")
}

// The Input entry is encoded by our own code; it must equal the output of the generated code.
func TestInputIsCanonicalProtobuf(t *testing.T) {
	for _, length := range []int{0, 1, 127, 128, 20_000, 300_000, 1_500_000} {
		f := &fakeInvocations{}
		s := testServer(t, Config{}, f)
		w := do(s, "POST", "/Greeter/greet?"+strings.Repeat("q", 200), strings.Repeat("x", length), "x-a: "+strings.Repeat("v", 150), "x-b: ")
		require.Equal(t, 200, w.Code)
		inv := f.only(t)
		m := decodeInput(inv)
		require.NotNil(t, m.Value)
		require.Len(t, m.Value.Content, length)
		again, err := m.MarshalVT()
		require.NoError(t, err)
		require.Equal(t, again, inv.Input)
	}
}

func TestIDs(t *testing.T) {
	f := &fakeInvocations{}
	s := testServer(t, Config{}, f)
	send := func(path string, headers ...string) ids.Invocation {
		w := do(s, "POST", path, "", headers...)
		require.Less(t, w.Code, 300, w.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.ids[len(f.ids)-1]
	}
	require.NotEqual(t, send("/Greeter/greet"), send("/Greeter/greet"))
	require.NotEqual(t, send("/Greeter/greet").PartitionKey(), send("/Greeter/greet").PartitionKey())
	require.Equal(t, ids.HashKey("k"), send("/Counter/k/add").PartitionKey())
	require.NotEqual(t, send("/Counter/k/add"), send("/Counter/k/add"))
	require.Equal(t, ids.NewInvocation(ids.HashKey("k"), ids.WorkflowUnique("", "Order", "k")), send("/Order/k/run/send"))
	require.NotEqual(t, send("/Order/k/run"), send("/Order/k/status"))
	require.Equal(t, ids.NewInvocation(ids.HashKey("i"), ids.IdempotentUnique("", "Greeter", "", "greet", "i")), send("/Greeter/greet", "idempotency-key: i"))
	require.Equal(t, send("/Order/k/status", "idempotency-key: i"), send("/Order/k/status/send", "idempotency-key: i"))

	id := newULID(clock)
	require.Equal(t, clock.UnixMilli(), int64(id[0])<<40|int64(id[1])<<32|int64(id[2])<<24|int64(id[3])<<16|int64(id[4])<<8|int64(id[5]))
}

func TestRetention(t *testing.T) {
	const hour, day = 3_600_000, 86_400_000
	for _, tc := range []struct {
		path string
		key  bool
		want machine.Retention
	}{
		{"/Greeter/greet", false, machine.Retention{Completion: day, Journal: day}},
		{"/Greeter/short", false, machine.Retention{Completion: hour, Journal: hour}},
		{"/Greeter/short", true, machine.Retention{Completion: hour, Journal: hour}},
		{"/Order/k/run", false, machine.Retention{Completion: day, Journal: day}},
	} {
		f := &fakeInvocations{}
		var headers []string
		if tc.key {
			headers = []string{"idempotency-key: k"}
		}
		do(testServer(t, Config{}, f), "POST", tc.path, "", headers...)
		require.Equal(t, tc.want, f.only(t).Retention, tc.path)
	}
}

func TestResponseOfACall(t *testing.T) {
	expires := time.Date(2026, 11, 21, 18, 13, 50, 0, time.UTC)
	for _, tc := range []struct {
		name, path string
		answer     routing.Response
		status     int
		body       string
		headers    map[string]string // empty value: absent
	}{
		{"value", "/Greeter/greet", routing.Response{Result: journal.Result{Value: []byte(`"x"`)}}, 200, `"x"`,
			map[string]string{"content-type": "application/json", "x-platform-error-source": "", "idempotency-expires": ""}},
		{"empty value", "/Greeter/greet", routing.Response{}, 200, "", map[string]string{"content-type": ""}},
		{"empty value with a type", "/Greeter/typed", routing.Response{}, 200, "", map[string]string{"content-type": "text/plain"}},
		{"no type announced", "/Greeter/untyped", routing.Response{Result: journal.Result{Value: []byte("<html>")}}, 200, "<html>", map[string]string{"content-type": ""}},
		{"retained value", "/Greeter/greet", routing.Response{ExpiresAt: expires}, 200, "", map[string]string{"idempotency-expires": "2026-11-21T18:13:50Z"}},
		{"failure", "/Greeter/greet", routing.Response{ExpiresAt: expires, Result: journal.Result{Failure: &journal.Failure{Code: 418, Message: `tea & "pot"`}}}, 418,
			`{"code":418,"message":"tea & \"pot\"","source":"invocation"}`,
			map[string]string{"content-type": "application/json", "x-platform-error-source": "invocation", "x-restate-error-source": "invocation", "idempotency-expires": "2026-11-21T18:13:50Z"}},
		{"failure with metadata", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 500, Message: "m", Metadata: []journal.Metadata{{Key: "a", Value: "1"}}}}}, 500,
			`{"code":500,"message":"m","source":"invocation","metadata":{"a":"1"}}`, nil},
		{"killed", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 409, Message: "killed"}}}, 409, `{"code":409,"message":"killed","source":"invocation"}`, nil},
		{"code above the range", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 1000}}}, 500, `{"code":1000,"message":"","source":"invocation"}`, nil},
		{"highest code", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 999}}}, 999, `{"code":999,"message":"","source":"invocation"}`, nil},
		{"code zero", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{}}}, 500, `{"code":0,"message":"","source":"invocation"}`, nil},
		{"code of an interim answer", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 100}}}, 500, `{"code":100,"message":"","source":"invocation"}`, nil},
		{"code of an answer without a body", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 204, Message: "gone"}}}, 500, `{"code":204,"message":"gone","source":"invocation"}`, nil},
		{"code of an unchanged answer", "/Greeter/greet", routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 304}}}, 500, `{"code":304,"message":"","source":"invocation"}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) { return tc.answer, nil }}
			w := do(testServer(t, Config{}, f), "POST", tc.path, "")
			require.Equal(t, tc.status, w.Code)
			require.Equal(t, tc.body, w.Body.String())
			require.Equal(t, f.only(t).ID.String(), w.Header().Get("x-platform-id"))
			require.Equal(t, f.only(t).ID.String(), w.Header().Get("x-restate-id"))
			for name, want := range tc.headers {
				require.Equal(t, want, w.Header().Get(name), name)
			}
		})
	}
}

func TestWorkflowRunsOnce(t *testing.T) {
	f := &fakeInvocations{
		call: func(context.Context, *machine.Invoke) (routing.Response, error) {
			return routing.Response{}, routing.ErrConflict
		},
		send: func(context.Context, *machine.Invoke) (machine.Outcome, error) {
			return machine.Outcome{Code: machine.Conflict}, nil
		},
	}
	s := testServer(t, Config{}, f)
	w := do(s, "POST", "/Order/o/run", "")
	require.Equal(t, 409, w.Code)
	require.Equal(t, `{"code":409,"message":"the workflow was already invoked with this key","source":"invocation"}`, w.Body.String())
	require.Equal(t, "invocation", w.Header().Get("x-platform-error-source"))
	require.NotEmpty(t, w.Header().Get("x-platform-id"))

	w = do(s, "POST", "/Order/o/run/send", "")
	require.Equal(t, 202, w.Code)
	require.Contains(t, w.Body.String(), `"status":"PreviouslyAccepted"`)
}

func TestRequestThatCannotBeStored(t *testing.T) {
	f := &fakeInvocations{
		call: func(context.Context, *machine.Invoke) (routing.Response, error) {
			return routing.Response{}, routing.ErrTooLarge
		},
		send: func(context.Context, *machine.Invoke) (machine.Outcome, error) {
			return machine.Outcome{}, routing.ErrTooLarge
		},
	}
	s := testServer(t, Config{}, f)
	for _, path := range []string{"/Greeter/greet", "/Greeter/greet/send"} {
		requireProblem(t, do(s, "POST", path, ""), 413, "larger than what can be stored")
	}
}

func TestSend(t *testing.T) {
	const planned = "2026-11-20T18:15:20.000000000Z"
	later := machine.Outcome{StartAt: clock.Add(90 * time.Second).UnixMilli()}
	for _, tc := range []struct {
		name, query string
		outcome     machine.Outcome
		delay       time.Duration
		status      string
		execution   any
	}{
		{"now", "", machine.Outcome{}, 0, "Accepted", nil},
		{"known", "", machine.Outcome{Code: machine.Existing}, 0, "PreviouslyAccepted", nil},
		{"known and planned", "", machine.Outcome{Code: machine.Existing, StartAt: clock.Add(90 * time.Second).UnixMilli()}, 0, "PreviouslyAccepted", planned},
		{"later", "?delay=1m%2030s", later, 90 * time.Second, "Accepted", planned},
		{"later in ISO form", "?delay=PT90S", later, 90 * time.Second, "Accepted", planned},
		{"zero delay", "?delay=0", machine.Outcome{}, 0, "Accepted", "2026-11-20T18:13:50.000000000Z"},
		{"other parameters", "?delay=90s&a=b;c&%zz", later, 90 * time.Second, "Accepted", planned},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeInvocations{send: func(context.Context, *machine.Invoke) (machine.Outcome, error) { return tc.outcome, nil }}
			w := do(testServer(t, Config{}, f), "POST", "/platform/send/Greeter/greet"+tc.query, "")
			require.Equal(t, 202, w.Code)
			inv := f.only(t)
			require.Equal(t, tc.delay.Milliseconds(), inv.Delay)
			require.Zero(t, inv.StartAt, "the leader's clock decides")
			want := map[string]any{"invocationId": inv.ID.String(), "status": tc.status}
			if tc.execution != nil {
				want["executionTime"] = tc.execution
			}
			var got map[string]any
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
			require.Equal(t, want, got)
			require.Equal(t, inv.ID.String(), w.Header().Get("x-platform-id"))
			require.Equal(t, "application/json", w.Header().Get("content-type"))
		})
	}
}

func TestHealth(t *testing.T) {
	var reason error
	s := testServer(t, Config{ConcurrentRequests: 1, Ready: func() error { return reason }}, &fakeInvocations{})
	reason = errors.New("the metadata has no leader")
	notReady := do(s, "GET", "/restate/health", "")
	require.Equal(t, 503, notReady.Code)
	require.Contains(t, notReady.Body.String(), "the metadata has no leader")
	reason = nil
	for _, path := range []string{"/platform/health", "/restate/health", "/platform/health/"} {
		w := do(s, "GET", path, "")
		require.Equal(t, 200, w.Code)
		require.JSONEq(t, `{"services":["Counter","Greeter","Old","Order"]}`, w.Body.String())
	}
	s.Drain()
	w := do(s, "GET", "/platform/health", "")
	require.Equal(t, 503, w.Code)
	require.Equal(t, 200, do(s, "POST", "/Greeter/greet", "").Code, "requests are still served")
}

func TestCrossOrigin(t *testing.T) {
	s := testServer(t, Config{}, &fakeInvocations{})
	w := do(s, "OPTIONS", "/Greeter/greet", "", "origin: https://a.example", "access-control-request-method: POST", "access-control-request-headers: content-type, x-mine")
	require.Equal(t, 200, w.Code)
	for name, want := range map[string]string{
		"access-control-allow-origin": "*", "access-control-allow-credentials": "",
		"access-control-allow-methods": "POST", "access-control-allow-headers": "content-type, x-mine", "vary": "origin",
	} {
		require.Equal(t, want, w.Header().Get(name), name)
	}
	for _, path := range []string{"/Greeter/greet", "/nowhere/at/all", "/"} {
		w = do(s, "POST", path, "", "origin: https://a.example")
		require.Equal(t, "*", w.Header().Get("access-control-allow-origin"), path)
		require.Contains(t, w.Header().Get("access-control-expose-headers"), "x-platform-id")
	}
	require.Empty(t, do(s, "POST", "/Greeter/greet", "").Header().Get("access-control-allow-origin"))

	s = testServer(t, Config{Guard: &access.Guard{Setting: "ingress", Hosts: []string{"*"}, Origins: []string{"https://a.example"}}}, &fakeInvocations{})
	w = do(s, "GET", "/Greeter/greet", "", "origin: https://a.example")
	require.Equal(t, "https://a.example", w.Header().Get("access-control-allow-origin"))
	require.Equal(t, "true", w.Header().Get("access-control-allow-credentials"))
	w = do(s, "OPTIONS", "/Greeter/greet", "", "origin: https://b.example", "access-control-request-method: POST")
	require.Empty(t, w.Header().Get("access-control-allow-origin"))
	require.Empty(t, w.Header().Get("access-control-allow-methods"))
	require.Equal(t, "origin", w.Header().Get("vary"))
}
