package ingress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/machine"
)

// requireProblem checks that a response is an error of the ingress.
func requireProblem(t *testing.T, w *httptest.ResponseRecorder, status int, message string) {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body)
	var body struct {
		Code            int
		Message, Source string
		Platform        string `json:"platform_code"`
	}
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&body))
	require.Equal(t, status, body.Code)
	require.Contains(t, body.Message, message)
	require.Equal(t, "ingress", body.Source)
	if code, _, begins := strings.Cut(body.Message, "] "); begins && code[0] == '[' {
		require.Equal(t, code[1:], body.Platform)
	}
	require.Equal(t, "application/json", w.Header().Get("content-type"))
	require.Equal(t, "ingress", w.Header().Get("x-platform-error-source"))
	require.Equal(t, "ingress", w.Header().Get("x-restate-error-source"))
}

func TestBadRequestsAreExplained(t *testing.T) {
	const js = "content-type: application/json"
	for _, tc := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		message                  string
	}{
		{"root", "GET", "/", "", nil, 400, "bad path: '/' is too short"},
		{"openapi alone", "GET", "/openapi", "", nil, 400, "bad path"},
		{"platform alone", "GET", "/platform", "", nil, 400, "bad path"},
		{"one segment", "POST", "/Greeter", "", nil, 400, "bad path"},
		{"one segment and a slash", "POST", "/Greeter/", "", nil, 400, "bad path"},
		{"path of the admin API", "POST", "/deployments", "", nil, 400, "/deployments is a path of the admin API, which has another port (9070 by default)"},
		{"health of the admin API", "GET", "/health", "", nil, 400, "the health of the ingress is GET /platform/health"},
		{"empty service", "POST", "//Counter/add", "", nil, 400, "bad path: the name of the service must not be empty"},
		{"eight segments", "POST", "/a/b/c/d/e/f/g/h", "", nil, 400, "bad path: '/a/b/c/d/e/f/g/h' is too long"},
		{"openapi", "GET", "/openapi/Greeter", "", nil, 404, "GET /services/{service}/openapi of the admin API"},
		{"unknown verb", "POST", "/platform/dance/Greeter/greet", "", nil, 404, "not found"},
		{"unknown verb of the alias", "GET", "/restate/dance", "", nil, 404, "there is no route GET /restate/dance; below /platform/ there are call, send,"},
		{"misspelled verb", "POST", "/platform/sned/Greeter/greet", "", nil, 404, "; did you mean send/{service}/{handler} or send/{service}/{key}/{handler}?"},
		{"misspelled verb of a workflow", "GET", "/platform/workflow/Order/k/atach", "", nil, 404, "; expected workflow/{workflow}/{key}/attach or workflow/{workflow}/{key}/output"},
		{"misspelled prefix", "POST", "/platfor/call/Greeter/greet", "", nil, 404, "did you mean 'platform'?"},
		{"misspelled ending", "POST", "/Greeter/greet/sned", "", nil, 400, "called as Greeter/{handler}; did you mean 'send'?"},
		{"output without an id", "GET", "/platform/output/", "", nil, 400, "the id of the invocation is missing: GET /platform/output/{invocation id}"},
		{"attach without an id", "GET", "/restate/attach", "", nil, 400, "the id of the invocation is missing: GET /restate/attach/{invocation id}"},
		{"another method of attach", "PUT", "/platform/attach", "", nil, 405, "method PUT is not allowed here"},
		{"unknown verb of an invocation", "GET", "/platform/invocation/x/dance", "", nil, 404, "not found"},
		{"verb without target", "POST", "/platform/call", "", nil, 404, "not found"},

		{"unknown service", "POST", "/Nobody/greet", "", nil, 404, "service 'Nobody' not found, make sure to register the service before calling it"},
		{"unknown service by call", "POST", "/platform/call/Nobody/greet", "", nil, 404, "make sure to register the service"},
		{"unknown service with a wrong method", "PUT", "/Nobody/greet", "", nil, 404, "make sure to register the service"},
		{"unknown handler", "POST", "/Greeter/nothing", "", nil, 404, "service 'Greeter' has no handler 'nothing'"},
		{"misspelled service", "POST", "/greter/greet", "", nil, 404, "before calling it; did you mean 'Greeter'?"},
		{"misspelled handler", "POST", "/Greeter/Great", "", nil, 404, "has no handler 'Great'; did you mean 'greet'?"},
		{"unknown handler of an object", "POST", "/Counter/k/nothing", "", nil, 404, "no handler 'nothing'"},
		{"object without key", "POST", "/Counter/add", "", nil, 400, "bad path: 'Counter' is a virtual object, whose handlers are called with a key: Counter/{key}/{handler}"},
		{"workflow without key", "POST", "/platform/call/Order/run", "", nil, 400, "bad path: 'Order' is a workflow"},
		{"service with key", "POST", "/Greeter/key/greet", "", nil, 400, "bad path: 'Greeter' is a service without keys"},
		{"too long for a service", "POST", "/Greeter/greet/send/x", "", nil, 400, "bad path"},
		{"too long for an object", "POST", "/Counter/a/add/send/x", "", nil, 400, "bad path"},
		{"ending with call", "POST", "/platform/call/Greeter/greet/send", "", nil, 400, "called as Greeter/{handler}; only paths without a prefix end in /send, others contain it before the service, as /platform/send/Greeter/{handler}"},
		{"ending with send", "POST", "/platform/send/Greeter/greet/send", "", nil, 400, "; only paths without a prefix end in /send, others contain it before the service, as /platform/send/Greeter/{handler}"},
		{"empty handler", "POST", "/Greeter//send", "", nil, 400, "bad path"},
		{"key that is not text", "POST", "/Counter/%ff%fe/add", "", nil, 400, "not valid UTF-8"},

		{"PUT", "PUT", "/Greeter/greet", "", nil, 405, "method PUT is not allowed here, use GET, POST"},
		{"HEAD", "HEAD", "/Greeter/greet", "", nil, 405, "method HEAD"},
		{"a method of one's own", "BREW", "/Greeter/greet", "", nil, 405, "method BREW"},
		{"DELETE by call", "DELETE", "/platform/call/Greeter/greet", "", nil, 405, "use GET, POST"},
		{"POST health", "POST", "/platform/health", "", nil, 405, "use GET"},
		{"GET lookup", "GET", "/platform/lookup", "", nil, 405, "use POST"},
		{"GET attach", "GET", "/platform/attach", "", nil, 400, "the id of the invocation is missing"},
		{"POST attach by id", "POST", "/platform/attach/x", "", nil, 405, "use GET"},
		{"PATCH output by id", "PATCH", "/platform/output/x", "", nil, 405, "use GET"},

		{"private service", "POST", "/Internal/work", "", nil, 400, "the invoked service is not public: only other services can call 'Internal/work'"},
		{"private handler", "POST", "/Greeter/hidden", "", nil, 400, "the invoked service is not public"},
		{"send to a private handler", "POST", "/Greeter/hidden/send", "", nil, 400, "the invoked service is not public"},
		{"delayed send to a private service", "POST", "/platform/send/Internal/work?delay=1h", "", nil, 400, "the invoked service is not public"},
		{"old protocol", "POST", "/Old/work", "", nil, 400, "[RT0020]"},

		{"no content type", "POST", "/Greeter/strict", "1", nil, 400, "input validation error: the body lacks a content-type"},
		{"other content type", "POST", "/Greeter/strict", "1", []string{"content-type: text/plain"}, 400, "input validation error: Content-type 'text/plain' does not match 'application/json'"},
		{"empty body with content type", "POST", "/Greeter/strict", "", []string{js}, 400, "input validation error: the body is empty"},
		{"nothing where something is needed", "GET", "/Greeter/strict", "", nil, 400, "input validation error"},
		{"something where nothing is wanted", "POST", "/Greeter/empty", "1", []string{js}, 400, "input validation error: expected an empty body"},

		{"idempotency key on a workflow run", "POST", "/Order/o/run", "", []string{"idempotency-key: a"}, 400, "bad idempotency key"},
		{"two idempotency keys", "POST", "/Greeter/greet", "", []string{"idempotency-key: a", "idempotency-key: b"}, 400, "'idempotency-key' is given 2 times"},
		{"empty idempotency key", "POST", "/Greeter/greet", "", []string{"idempotency-key: "}, 400, "'idempotency-key' is empty; give it a value"},
		{"misspelt delay", "POST", "/platform/send/Greeter/greet?dely=5s", "", nil, 400, "unknown query parameter 'dely'; did you mean 'delay'?"},
		{"delay in capitals", "POST", "/platform/send/Greeter/greet?Delay=5s", "", nil, 400, "did you mean 'delay'?"},
		{"delay in the plural", "POST", "/Greeter/greet/send?delays=PT5S", "", nil, 400, "did you mean 'delay'?"},
		{"limit key in camel case", "POST", "/Greeter/greet?limitKey=a", "", nil, 400, "did you mean 'limit-key'?"},
		{"misspelt limit key", "POST", "/Greeter/greet?limit_key=a", "", nil, 400, "did you mean 'limit-key'?"},
		{"idempotency key that is not ASCII", "POST", "/Greeter/greet", "", []string{"idempotency-key: ä"}, 400, "bad header: the value of 'idempotency-key'"},
		{"header that is not ASCII", "POST", "/Greeter/greet", "", []string{"x-name: Zoë"}, 400, "bad header: the value of 'x-name' has characters outside ASCII"},
		{"delay on a call", "POST", "/Greeter/greet?delay=1s", "", nil, 400, "bad delay: only sends can be delayed"},
		{"parameter of an attach", "GET", "/platform/attach/inv_1gdJBtdVEcM919dOBhoVBm3fUMlaIHnANr?timeout=3s", "", nil, 400, "unknown query parameter 'timeout'; there are none here"},
		{"parameter of an output", "POST", "/platform/output?wait", `{}`, nil, 400, "unknown query parameter 'wait'; there are none here"},
		{"two delays", "POST", "/Greeter/greet/send?delay=1s&delay=10s", "", nil, 400, "bad delay: the query parameter is given 2 times"},
		{"delay without unit", "POST", "/Greeter/greet/send?delay=10", "", nil, 400, "bad delay"},
		{"negative delay", "POST", "/Greeter/greet/send?delay=-1s", "", nil, 400, "bad delay: a duration cannot be negative"},
		{"empty delay", "POST", "/Greeter/greet/send?delay=", "", nil, 400, "bad delay"},
		{"undecodable delay", "POST", "/Greeter/greet/send?delay=%zz", "", nil, 400, "bad delay: the query cannot be decoded"},
		{"delay before a semicolon", "POST", "/Greeter/greet/send?a=b;delay=1h", "", nil, 400, "bad delay: the query cannot be decoded"},
		{"limit key by query", "POST", "/Greeter/greet?limit-key=a", "", nil, 400, "limit-key requires a scope to be set"},
		{"limit key by header", "POST", "/Greeter/greet", "", []string{"x-platform-limit-key: a"}, 400, "limit-key requires a scope to be set"},
		{"limit key by the alias", "POST", "/Greeter/greet", "", []string{"x-restate-limit-key: a"}, 400, "limit-key requires a scope to be set"},

		{"scoped call", "POST", "/platform/scope/s/call/Greeter/greet", "", nil, 400, "experimental-enable-vqueues = true and experimental-enable-protocol-v7 = true"},
		{"scoped send with key", "POST", "/restate/scope/s/send/Counter/k/add", "", nil, 400, "PLATFORM_EXPERIMENTAL_ENABLE_VQUEUES=true and PLATFORM_EXPERIMENTAL_ENABLE_PROTOCOL_V7=true"},
		{"unknown scoped verb", "POST", "/platform/scope/s/dance/Greeter/greet", "", nil, 404, "not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeInvocations{}
			w := do(testServer(t, Config{}, f), tc.method, tc.path, tc.body, tc.headers...)
			requireProblem(t, w, tc.status, tc.message)
			require.Empty(t, f.ids, "nothing was invoked")
			if tc.status == 405 {
				require.NotEmpty(t, w.Header().Get("allow"))
			}
		})
	}
}

func TestErrorsQuoteLongPathsInPart(t *testing.T) {
	long := strings.Repeat("ab-", 3000)
	for path, hint := range map[string]string{
		"/" + long:                         "paths are /{service}[/{key}]/{handler}[/send] or start with /platform/",
		"/" + long + "/greet":              "make sure to register the service before calling it",
		"/Greeter/" + long:                 "has no handler",
		"/Counter/" + long + "%01/add":     "has control characters",
		"/platform/" + long:                "below /platform/ there are call, send",
		"/platform/attach/" + long:         "",
		"/a/b/c/d/e/f/g/h" + long + "/%2F": "is too long; paths are",
	} {
		w := do(testServer(t, Config{}, &fakeInvocations{}), "POST", path, "")
		require.Less(t, w.Body.Len(), 1200, path[:20])
		requireProblem(t, w, w.Code, hint)
	}
}

func TestPermissiveInputRules(t *testing.T) {
	for _, tc := range []struct {
		path, body string
		headers    []string
	}{
		{"/Greeter/strict", "1", []string{"content-type: application/json"}},
		{"/Greeter/strict", "1", []string{"content-type: application/json; charset=utf-8"}},
		{"/Greeter/empty", "", nil},
		{"/Greeter/greet", "anything", nil},
		{"/Greeter/greet", "anything", []string{"content-type: image/png"}},
	} {
		w := do(testServer(t, Config{}, &fakeInvocations{}), "POST", tc.path, tc.body, tc.headers...)
		require.Equal(t, 200, w.Code, w.Body)
	}
}

func TestBodyLimit(t *testing.T) {
	for _, limit := range []int64{10, eagerBody, eagerBody + 10} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, length announced: %v", limit, announced), func(t *testing.T) {
				try := func(size int64) *httptest.ResponseRecorder {
					var body io.Reader = strings.NewReader(strings.Repeat("x", int(size)))
					if !announced {
						body = struct{ io.Reader }{body}
					}
					w := httptest.NewRecorder()
					testServer(t, Config{RequestSizeLimit: limit}, &fakeInvocations{}).handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/Greeter/greet", body))
					return w
				}
				require.Equal(t, 200, try(limit).Code)
				requireProblem(t, try(limit+1), 413, fmt.Sprintf("larger than %d bytes", limit))
			})
		}
	}
}

func TestBodyThatCannotBeRead(t *testing.T) {
	for _, length := range []int64{-1, 100} {
		r := httptest.NewRequest(http.MethodPost, "/Greeter/greet", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("xxx"))))
		r.ContentLength = length
		w := httptest.NewRecorder()
		f := &fakeInvocations{}
		testServer(t, Config{}, f).handler().ServeHTTP(w, r)
		requireProblem(t, w, 400, "cannot read the request body")
		require.Empty(t, f.ids)
	}
}

func TestErrorsBehindTheIngress(t *testing.T) {
	boom := errors.New("secret detail")
	for _, tc := range []struct {
		name, path string
		headers    []string
		err        error
		status     int
		message    string
		retry      bool
	}{
		{"certainly without effect", "/Greeter/greet", nil, &routing.UnavailableError{SafeToRetry: true, Err: errors.New("no leader")}, 503, "no leader; the request can be retried safely", true},
		{"perhaps with effect", "/Greeter/greet", nil, &routing.UnavailableError{Err: errors.New("no answer")}, 503, "no answer; whether the request took effect is unknown", false},
		{"wrapped", "/Greeter/greet/send", nil, fmt.Errorf("send: %w", &routing.UnavailableError{}), 503, "is unknown", false},
		{"with idempotency key", "/Greeter/greet", []string{"idempotency-key: a"}, &routing.UnavailableError{}, 503, "can be retried safely", true},
		{"send of a workflow", "/Order/o/run/send", nil, &routing.UnavailableError{}, 503, "can be retried safely", true},
		{"call of a workflow", "/Order/o/run", nil, &routing.UnavailableError{}, 503, "get the result from /platform/attach/inv_1", false},
		{"unforeseen", "/Greeter/greet", nil, boom, 500, "internal error", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeInvocations{
				call: func(context.Context, *machine.Invoke) (routing.Response, error) { return routing.Response{}, tc.err },
				send: func(context.Context, *machine.Invoke) (machine.Outcome, error) { return machine.Outcome{}, tc.err },
			}
			w := do(testServer(t, Config{}, f), "POST", tc.path, "", tc.headers...)
			require.NotContains(t, w.Body.String(), boom.Error())
			require.NotEmpty(t, w.Header().Get("x-platform-id"))
			require.Equal(t, tc.retry, w.Header().Get("retry-after") != "")
			requireProblem(t, w, tc.status, tc.message)
		})
	}
}

// TestInternalErrorsCanBeFoundInTheLog compares the request ID of the response with that of the log.
func TestInternalErrorsCanBeFoundInTheLog(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	f := &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) {
		return routing.Response{}, errors.New("boom")
	}}
	s := testServer(t, Config{}, f)
	var out bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&out, nil))
	w := do(s, "POST", "/Greeter/greet", "", "x-request-id: req-1", "traceparent: 00-"+trace+"-b7ad6b7169203331-01")
	require.Equal(t, "req-1", w.Header().Get("x-request-id"))
	require.Contains(t, out.String(), "path=/Greeter/greet request_id=req-1 trace_id="+trace+" invocation_id=inv_1")
	for _, invalid := range []string{"", "a b", strings.Repeat("x", 129)} {
		out.Reset()
		w = do(s, "POST", "/Greeter/greet", "", "x-request-id: "+invalid)
		made := w.Header().Get("x-request-id")
		require.NotEmpty(t, made)
		require.NotEqual(t, invalid, made)
		require.Contains(t, out.String(), "request_id="+made+" ")
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	f := &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) { panic("secret detail") }}
	w := do(testServer(t, Config{}, f), "POST", "/Greeter/greet", "")
	require.NotContains(t, w.Body.String(), "secret detail")
	requireProblem(t, w, 500, "internal error")
}

func TestConcurrentRequestsAreBounded(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	f := &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) {
		inside <- struct{}{}
		<-leave
		return routing.Response{}, nil
	}}
	s := testServer(t, Config{ConcurrentRequests: 1}, f)
	done := make(chan int)
	go func() { done <- do(s, "POST", "/Greeter/greet", "").Code }()
	<-inside
	w := do(s, "POST", "/Greeter/greet", "")
	require.Equal(t, "1", w.Header().Get("retry-after"))
	requireProblem(t, w, 429, "more than 1 requests are in progress")
	requireProblem(t, do(s, "GET", "/platform/output/x", ""), 429, "in progress")
	require.Equal(t, 200, do(s, "GET", "/platform/health", "").Code)
	close(leave)
	require.Equal(t, 200, <-done)
	require.Equal(t, http.StatusAccepted, do(s, "POST", "/Greeter/greet/send", "").Code)
}

// A client whose calls wait for their results cannot take all requests in progress.
func TestOneClientLeavesRequestsForOthers(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	cfg, tokens := withTokens(false, map[string]access.Principal{"shop": {Roles: []access.Role{access.Invoker}}})
	cfg.ConcurrentRequests = 8
	f := &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) {
		inside <- struct{}{}
		<-leave
		return routing.Response{}, nil
	}}
	s := testServer(t, cfg, f)
	done := make(chan int)
	for range 7 {
		go func() { done <- do(s, "POST", "/Greeter/greet", "").Code }()
		<-inside
	}
	w := do(s, "POST", "/Greeter/greet", "")
	require.Equal(t, "1", w.Header().Get("retry-after"))
	requireProblem(t, w, 429, "the client has 7 requests in progress, and the rest of 8 (ingress.concurrent-api-requests-limit) is for other clients")
	go func() { done <- do(s, "POST", "/Greeter/greet", "", tokens["shop"]).Code }()
	<-inside
	close(leave)
	for range 8 {
		require.Equal(t, 200, <-done)
	}
	require.Equal(t, http.StatusAccepted, do(s, "POST", "/Greeter/greet/send", "").Code)
}

func TestClientGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeInvocations{attach: func(ctx context.Context, _ ids.Invocation) (routing.Response, error) {
		cancel()
		<-ctx.Done()
		return routing.Response{}, ctx.Err()
	}}
	id := ids.NewInvocation(1, [16]byte{1})
	w := httptest.NewRecorder()
	testServer(t, Config{}, f).handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/platform/attach/"+id.String(), http.NoBody).WithContext(ctx))
	requireProblem(t, w, 499, "the invocation continues")
}
