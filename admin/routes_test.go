package admin

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/limits"
	"platform/metadata"
)

// requireError checks the one shape of errors.
func requireError(t *testing.T, answer *http.Response, body, code, message string) {
	t.Helper()
	require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &got), body)
	require.Len(t, got, 2)
	require.Contains(t, got["message"], message)
	require.NotContains(t, body, "goroutine ")
	if code == "" {
		require.Nil(t, got["platform_code"])
		return
	}
	require.Equal(t, code, got["platform_code"])
	require.True(t, strings.HasPrefix(got["message"].(string), "["+code+"] "), body)
}

// seeded has one small and one large deployment.
func seeded(t *testing.T, change func(*Config)) *testServer {
	w := newTestServer(t, change)
	w.offers["http://small/"], w.offers["http://large/"] = small, large
	for _, body := range []string{`{"uri":"http://small"}`, `{"uri":"http://large","metadata":{"commit":"abc"},"additional_headers":{"A":"b"}}`} {
		require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", body).StatusCode)
	}
	w.logged.Reset()
	return w
}

func TestReading(t *testing.T) {
	w := seeded(t, func(c *Config) {
		c.Defaults = func() *metadata.Defaults {
			d := metadata.StandardDefaults()
			d.MaxJournalRetention = ptr(7 * d.JournalRetention)
			d.Retry.MaxAttempts = 0
			return &d
		}
	})
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 8})
	require.NoError(t, err)
	_, err = w.store.RegisterNode(t.Context(), metadata.Node{Name: "n1"})
	require.NoError(t, err)
	for name, path := range map[string]string{
		"deployments":      "/deployments",
		"deployment_small": "/deployments/dp_10000000000000000000001",
		"deployment_large": "/v4/deployments/dp_10000000000000000000002",
		"services":         "/v3/services",
		"service":          "/services/Greeter",
		"handlers":         "/services/Counter/handlers",
		"handler":          "/services/Signup/handlers/run",
		"version":          "/version",
		"cluster_health":   "/cluster-health",
		"error":            "/errors/rt0016",
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.ask(t, "GET", path, "")
			require.Equal(t, http.StatusOK, answer.StatusCode)
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			goldenJSON(t, name, text(t, answer))
		})
	}
	health := w.ask(t, "GET", "/health", "")
	require.Equal(t, http.StatusOK, health.StatusCode)
	require.Empty(t, text(t, health))
	require.Contains(t, text(t, w.ask(t, "GET", "/errors", "")), `"code":"META0003"`)
	head := w.ask(t, "HEAD", "/services", "")
	require.Equal(t, http.StatusOK, head.StatusCode)
}

func TestListsAreNeverNull(t *testing.T) {
	w := newTestServer(t, nil)
	require.JSONEq(t, `{"deployments":[]}`, text(t, w.ask(t, "GET", "/deployments", "")))
	require.JSONEq(t, `{"services":[]}`, text(t, w.ask(t, "GET", "/services", "")))
	require.JSONEq(t, `{"invocations":[]}`, text(t, w.ask(t, "GET", "/invocations", "")))
}

func TestReplacedStateIsBounded(t *testing.T) {
	w := seeded(t, func(c *Config) { c.Limits.StateSize = int64(10 + 2*limits.StateEntry(0, 0)) })
	require.Equal(t, http.StatusAccepted, w.ask(t, "POST", "/services/Counter/state", `{"object_key":"k","new_state":{"a":"1234","b":"1234"}}`).StatusCode)
	rejected := w.ask(t, "POST", "/services/Counter/state", `{"object_key":"k","new_state":{"a":"1234","b":"12345"}}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, rejected.StatusCode)
	requireError(t, rejected, text(t, rejected), "RT0027", "")
}

func TestFailures(t *testing.T) {
	w := seeded(t, func(c *Config) { c.Limits.body = 100 })
	for _, tc := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		message                  string
	}{
		{name: "unknown route", method: "GET", path: "/nope", status: 404, message: "there is no route GET /nope"},
		{name: "misspelled route", method: "POST", path: "/deployment", status: 404, message: "there is no route POST /deployment; did you mean /deployments?"},
		{name: "call of a handler", method: "POST", path: "/Greeter/greet", status: 404, message: "Handlers are called at the ingress, on another port (8080 by default)"},
		{name: "duration in another field", method: "POST", path: "/tokens", body: `{"name":"ci","expires_in":"1 fortnight"}`, status: 422, message: "the field 'expires_in' is invalid: \"fortnight\" is not a unit of time"},
		{name: "duration as a number", method: "POST", path: "/tokens", body: `{"name":"ci","expires_in":5}`, status: 422, message: "the field 'expires_in' must be a string, not a number"},
		{name: "unknown route below a prefix", method: "GET", path: "/v4/nope", status: 404, message: "there is no route GET /nope"},
		{name: "trailing slash", method: "GET", path: "/deployments/", status: 404, message: "there is no route GET /deployments/"},
		{name: "too deep", method: "GET", path: "/services/a/handlers/b/c", status: 404, message: "there is no route"},
		{name: "version 1", method: "GET", path: "/v1/deployments", status: 400, message: "Unsupported Admin API version v1; this server supports v2 to v4"},
		{name: "version 5", method: "GET", path: "/v5", status: 400, message: "Unsupported Admin API version v5"},
		{name: "not a version", method: "GET", path: "/v44/services", status: 404, message: "there is no route"},
		{name: "wrong method", method: "PUT", path: "/deployments", status: 405, message: "the method PUT is not allowed for /deployments; use GET, HEAD, POST"},
		{name: "wrong method below a prefix", method: "PATCH", path: "/v3/services", status: 405, message: "the method PATCH is not allowed"},
		{name: "compressed", method: "POST", path: "/deployments", body: "\x1f\x8b", headers: []string{"Content-Encoding", "gzip"}, status: 415, message: "request bodies must not be compressed, but this one has the header 'content-encoding: gzip'"},
		{name: "no content type", method: "POST", path: "/deployments", body: `{"uri":"http://a"}`, headers: []string{"Content-Type", ""}, status: 415, message: `expected the header 'content-type: application/json', got ""`},
		{name: "content type", method: "POST", path: "/deployments", body: `{"uri":"http://a"}`, headers: []string{"Content-Type", "text/plain"}, status: 415, message: `got "text/plain"`},
		{name: "body too large", method: "POST", path: "/deployments", body: `{"uri":"` + strings.Repeat("a", 100) + `"}`, status: 413, message: "larger than 100 bytes"},
		{name: "unknown service", method: "GET", path: "/services/Nobody", status: 404, message: "The requested service 'Nobody' does not exist"},
		{name: "unknown service, escaped", method: "GET", path: "/services/a%2Fb", status: 404, message: "The requested service 'a/b' does not exist"},
		{name: "handlers of unknown service", method: "GET", path: "/services/Nobody/handlers", status: 404, message: "The requested service 'Nobody' does not exist"},
		{name: "handler of unknown service", method: "GET", path: "/services/Nobody/handlers/x", status: 404, message: "The requested service 'Nobody' does not exist"},
		{name: "unknown handler", method: "GET", path: "/services/Greeter/handlers/x", status: 404, message: "The requested handler 'x' on service 'Greeter' does not exist"},
		{name: "bad deployment id", method: "GET", path: "/deployments/dp_2x", status: 400, message: "The request field 'deployment' is invalid. Reason: malformed id"},
		{name: "unknown deployment", method: "GET", path: "/deployments/dp_10000000000000000000009", status: 404, message: "The requested deployment 'dp_10000000000000000000009' does not exist"},
		{name: "delete bad id", method: "DELETE", path: "/deployments/x", status: 400, message: "The request field 'deployment' is invalid"},
		{name: "delete unknown", method: "DELETE", path: "/deployments/dp_10000000000000000000009?force=true", status: 404, message: "does not exist"},
		{name: "delete perhaps", method: "DELETE", path: "/deployments/dp_10000000000000000000001?force=perhaps", status: 400, message: `The query parameter 'force' is invalid: "perhaps" is neither true nor false`},
		{name: "delete in use", method: "DELETE", path: "/deployments/dp_10000000000000000000001", status: 409, message: "is in use: new invocations of Greeter go to it"},
		{name: "bad invocation id", method: "GET", path: "/invocations/inv_2", status: 400, message: "The request field 'invocation_id' is invalid. Reason: malformed id"},
		{name: "unknown invocation", method: "GET", path: "/invocations/" + ids.NewInvocation(7, [16]byte{1}).String(), status: 404, message: "does not exist"},
		{name: "journal perhaps", method: "GET", path: "/invocations/" + ids.NewInvocation(7, [16]byte{1}).String() + "?journal=2", status: 400, message: "'journal' is invalid"},
		{name: "unknown filter", method: "GET", path: "/invocations?state=running", status: 400, message: "unknown query parameter 'state'; the parameters are completed_after, completed_before, created_after,"},
		{name: "two limits", method: "GET", path: "/invocations?limit=1&limit=2", status: 400, message: "The query parameter 'limit' is given 2 times; it has one value"},
		{name: "force and not", method: "DELETE", path: "/deployments/dp_10000000000000000000009?force=false&force", status: 400, message: "The query parameter 'force' is given 2 times"},
		{name: "two ways to choose", method: "PATCH", path: "/invocations/inv_1gdJBtdVEcM919dOBhoVBm3fUMlaIHnANr/resume?deployment=latest&Id=dp_10000000000000000000009", status: 400, message: "The query parameters 'Id' and 'deployment' both select a deployment"},
		{name: "misspelt filter", method: "GET", path: "/invocations?statuss=running", status: 400, message: "unknown query parameter 'statuss'; did you mean 'status'?"},
		{name: "undecodable filter", method: "GET", path: "/invocations?service=a;b", status: 400, message: "the query cannot be decoded"},
		{name: "undecodable limit", method: "GET", path: "/failures?limit=%zz", status: 400, message: "the query cannot be decoded"},
		{name: "misspelt mode", method: "DELETE", path: "/invocations/" + ids.NewInvocation(7, [16]byte{1}).String() + "?mod=Kill", status: 400, message: "did you mean 'mode'?"},
		{name: "parameter where there is none", method: "GET", path: "/services?limit=3", status: 400, message: "unknown query parameter 'limit'; there are none here"},
		{name: "unknown field of a registration", method: "POST", path: "/deployments", body: `{"uri":"http://a","forse":true}`, status: 422, message: "unknown field 'forse'; did you mean 'force'?"},
		{name: "unknown field of a service", method: "PATCH", path: "/services/Greeter", body: `{"retention":"1d"}`, status: 422, message: "unknown field 'retention'; did you mean"},
		{name: "repeated field", method: "POST", path: "/deployments", body: `{"uri":"http://a","uri":"http://b"}`, status: 400, message: "has the key 'uri' twice"},
		{name: "repeated field in another case", method: "POST", path: "/deployments", body: `{"uri":"http://a","URI":"http://b"}`, status: 400, message: "has the field 'uri' twice, as 'URI' and as 'uri'"},
		{name: "repeated key of a map", method: "POST", path: "/deployments", body: `{"uri":"http://a","additional_headers":{"a":"1","a":"2"}}`, status: 400, message: "has the key 'additional_headers.a' twice"},
		{name: "repeated nested field", method: "PATCH", path: "/services/Greeter", body: `{"retry_policy":{"max_attempts":3,"Max_attempts":4}}`, status: 400, message: "has the field 'retry_policy.max_attempts' twice"},
		{name: "repeated field of a rule", method: "PUT", path: "/limits/rules", body: `[{"pattern":"a","limits":{"concurrency":3,"concurrency":4}}]`, status: 400, message: "has the key '[0].limits.concurrency' twice"},
		{name: "unknown nested field", method: "PATCH", path: "/services/Greeter", body: `{"retry_policy":{"attempts":3}}`, status: 422, message: "unknown field 'retry_policy.attempts'; did you mean 'max_attempts'?"},
		{name: "unknown field of an update", method: "PATCH", path: "/deployments/dp_10000000000000000000001", body: `{"url":"http://a"}`, status: 422, message: "unknown field 'url'; did you mean 'uri'?"},
		{name: "unknown field of a state", method: "POST", path: "/services/Counter/state", body: `{"object_key":"a","new_state":{},"versoin":"x"}`, status: 422, message: "unknown field 'versoin'; did you mean 'version'?"},
		{name: "bad status", method: "GET", path: "/invocations?status=running,asleep", status: 400, message: `The query parameter 'status' is invalid: "asleep" is not a status; there are scheduled pending`},
		{name: "bad deployment of a batch", method: "POST", path: "/internal/invocations_batch_operations/resume", body: `{"invocation_ids":[],"deployment":"x"}`, status: 400, message: "The request field 'deployment' is invalid. Reason: \"x\" is neither keep nor latest"},
		{name: "wrong type of an id", method: "POST", path: "/internal/invocations_batch_operations/kill", body: `{"invocation_ids":["x",1]}`, status: 422, message: "each value of the field 'invocation_ids' must be a string, not a number"},
		{name: "bad deployment filter", method: "GET", path: "/invocations?deployment=x", status: 400, message: "The query parameter 'deployment' is invalid: malformed id"},
		{name: "no limit", method: "GET", path: "/invocations?limit=0", status: 400, message: `The query parameter 'limit' is invalid: "0" is not a number from 1 to 1000`},
		{name: "limit too large", method: "GET", path: "/invocations?limit=1001", status: 400, message: "from 1 to 1000"},
		{name: "limit in words", method: "GET", path: "/invocations?limit=ten", status: 400, message: `"ten" is not a number`},
		{name: "bad order", method: "GET", path: "/invocations?oldest_first=maybe", status: 400, message: "'oldest_first' is invalid"},
		{name: "unknown code", method: "GET", path: "/errors/RT9999", status: 404, message: "The error code 'RT9999' does not exist"},
		{name: "not provisioned", method: "GET", path: "/cluster-health", status: 503, message: "not been provisioned"},
		{name: "no metrics", method: "GET", path: "/metrics", status: 404, message: "there is no route GET /metrics"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := w.ask(t, tc.method, tc.path, tc.body, tc.headers...)
			body := text(t, answer)
			require.Equal(t, tc.status, answer.StatusCode, body)
			requireError(t, answer, body, "", tc.message)
			if tc.status == http.StatusMethodNotAllowed {
				require.Contains(t, answer.Header.Get("Allow"), "GET")
			}
		})
	}
	require.Empty(t, w.logged.String(), "bad requests are not the server's errors")
}

func TestDelete(t *testing.T) {
	w := seeded(t, nil)
	w.offers["http://next/"] = small
	require.Equal(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://next"}`).StatusCode)

	w.inUse = 3
	rejected := w.ask(t, "DELETE", "/deployments/dp_10000000000000000000001", "")
	require.Equal(t, http.StatusConflict, rejected.StatusCode)
	require.Contains(t, text(t, rejected), "is in use: 3 unfinished invocations need it. Wait until")
	w.inUse = 0
	drained := w.ask(t, "DELETE", "/deployments/dp_10000000000000000000001?force=false", "")
	require.Equal(t, http.StatusAccepted, drained.StatusCode)
	require.Empty(t, text(t, drained))

	w.inUse = 5
	forced := w.ask(t, "DELETE", "/deployments/dp_10000000000000000000002?force", "")
	require.Equal(t, http.StatusAccepted, forced.StatusCode)
	require.Len(t, w.store.Schemas().Deployments, 1)
	require.Equal(t, http.StatusNotFound, w.ask(t, "GET", "/services/Counter", "").StatusCode)
}

func TestFaultsOfTheServerAreNotShown(t *testing.T) {
	w := seeded(t, nil)
	w.err = errPlain
	answer := w.ask(t, "GET", "/invocations", "")
	body := text(t, answer)
	require.Equal(t, http.StatusInternalServerError, answer.StatusCode)
	requireError(t, answer, body, "", "internal error")
	require.NotContains(t, body, "secret")
	require.Contains(t, w.logged.String(), "list invocations: disk on fire")

	for _, err := range []error{ErrUnavailable, metadata.ErrUnavailable, metadata.ErrUnknownOutcome} {
		w.err = err
		require.Equal(t, http.StatusServiceUnavailable, w.ask(t, "GET", "/invocations", "").StatusCode)
	}
}

func TestFailedChangesNameFullDisks(t *testing.T) {
	w := seeded(t, nil)
	disks := map[uint32]string{1: "fills up (1 GiB free)"}
	w.cluster.change = func(state *ClusterState) {
		state.Nodes = nil
		for _, id := range []uint32{1, 2, 3} {
			state.Nodes = append(state.Nodes, NodeState{ID: ids.Node(id), Name: fmt.Sprint("n", id), Answers: true, Disk: disks[id]})
		}
	}
	for _, err := range []error{metadata.ErrUnavailable, metadata.ErrUnknownOutcome} {
		w.err = err
		message := func() string { return text(t, w.ask(t, "GET", "/invocations", "")) }
		delete(disks, 2)
		delete(disks, 3)
		require.NotContains(t, message(), "disk")
		disks[2] = "is full (0 B free): its replicas are closed until space is freed"
		require.Contains(t, message(), ": the disk of node n2 is full; free space on it; ")
		disks[3] = disks[2]
		require.Contains(t, message(), ": the disks of nodes n2, n3 are full; free space on them; ")
	}
}

func TestPanicGetsAResponse(t *testing.T) {
	w := newTestServer(t, func(c *Config) {
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken invariant") })
	})
	answer := w.ask(t, "GET", "/metrics", "")
	body := text(t, answer)
	require.Equal(t, http.StatusInternalServerError, answer.StatusCode)
	requireError(t, answer, body, "", "internal error")
	require.NotContains(t, body, "broken")
	require.Contains(t, w.logged.String(), "broken invariant")
	require.Contains(t, w.logged.String(), "stack=")
}

func TestConcurrentRequestsAreLimited(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	w := newTestServer(t, func(c *Config) {
		c.Limits.ConcurrentRequests = 1
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-leave
		})
	})
	done := make(chan int)
	go func() {
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		done <- recorder.Code
	}()
	<-entered
	answer := w.ask(t, "GET", "/health", "")
	requireError(t, answer, text(t, answer), "", "more than 1 requests are in progress")
	require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	close(leave)
	require.Equal(t, http.StatusOK, <-done)
	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/health", "").StatusCode)
}

// A client cannot take all requests in progress.
func TestOneClientLeavesRequestsForOthers(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	w := newTestServer(t, func(c *Config) {
		c.Limits.ConcurrentRequests = 8
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-leave
		})
	})
	done := make(chan int)
	request := func(from string) int {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = from
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, r)
		return recorder.Code
	}
	for i := range 7 {
		go func() { done <- request(fmt.Sprintf("[2001:db8::%d]:1", i)) }()
		<-entered
	}
	require.Equal(t, http.StatusTooManyRequests, request("[2001:db8::99]:1"), "another address of the same network")
	go func() { done <- request("[2001:db8:1::1]:1") }()
	<-entered
	close(leave)
	for range 8 {
		require.Equal(t, http.StatusOK, <-done)
	}
}

func TestResponsesAreCompressedOnRequest(t *testing.T) {
	w := seeded(t, nil)
	plain := w.ask(t, "GET", "/services", "")
	require.Equal(t, "Accept-Encoding", plain.Header.Get("Vary"))
	answer := w.ask(t, "GET", "/services", "", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", answer.Header.Get("Content-Encoding"))
	unzip, err := gzip.NewReader(answer.Body)
	require.NoError(t, err)
	body, err := io.ReadAll(unzip)
	require.NoError(t, err)
	require.Equal(t, text(t, plain), strings.TrimSpace(string(body)))

	rejected := w.ask(t, "GET", "/nope", "", "Accept-Encoding", "gzip")
	requireError(t, rejected, text(t, rejected), "", "there is no route")
}

func TestIngressEndpoint(t *testing.T) {
	for host, want := range map[string]string{
		"localhost:9070":     "http://localhost:8081/",
		"example.com":        "http://example.com:8081/",
		"[::1]:9070":         "http://[::1]:8081/",
		"[2001:db8::1]":      "http://[2001:db8::1]:8081/",
		"192.168.1.10:12345": "http://192.168.1.10:8081/",
	} {
		s := &Server{cfg: Config{Ingress: Ingress{Port: 8081}}}
		require.Equal(t, want, s.ingressEndpoint(&http.Request{Host: host}), host)
	}
	s := &Server{cfg: Config{Ingress: Ingress{Port: 8081, Endpoint: "https://calls.example.com/"}}}
	require.Equal(t, "https://calls.example.com/", s.ingressEndpoint(&http.Request{Host: "x"}))
	s = &Server{cfg: Config{Ingress: Ingress{Port: 8081, TLS: true}}}
	require.Equal(t, "https://n1:8081/", s.ingressEndpoint(&http.Request{Host: "n1:9070"}))
}

func TestWebUI(t *testing.T) {
	w := newTestServer(t, nil)
	ask := func(s *Server, path, accept string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, r)
		return answer.Result()
	}
	browser := "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, accept := range []string{browser, "*/*", ""} {
		root := ask(w.Server, "/?a=b", accept)
		require.Equal(t, http.StatusPermanentRedirect, root.StatusCode)
		require.Equal(t, "/ui/?a=b", root.Header.Get("Location"))
	}
	page := ask(w.Server, "/ui/invocations/inv_1?a=b", browser)
	require.Equal(t, http.StatusOK, page.StatusCode)
	require.Contains(t, page.Header.Get("Content-Security-Policy"), "connect-src 'self' http://example.com:8080;")

	without := newTestServer(t, func(c *Config) { c.DisableUI = true })
	root := ask(without.Server, "/", browser)
	require.Equal(t, http.StatusNotFound, root.StatusCode)
	require.Contains(t, text(t, root), "its routes are POST /deployments, GET /deployments")
	require.Equal(t, http.StatusNotFound, ask(without.Server, "/ui/", browser).StatusCode)
}
