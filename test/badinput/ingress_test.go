package badinput

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/proto/service"
)

// badRequest is a request that the ingress rejects.
type badRequest struct {
	method, path, body string
	header             []string
	status             int
	message            string
}

// newClient returns a client for one version of HTTP.
func newClient(t *testing.T, http2 bool) *http.Client {
	var p http.Protocols
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{Protocols: &p}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestRejectedIngressRequests sends each request over HTTP/1.1 and over HTTP/2.
func TestRejectedIngressRequests(t *testing.T) {
	jsonInput := object{"required": true, "contentType": "application/json", "jsonSchema": true}
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("S", "SERVICE", nil, object{"name": "any"}, object{"name": "json", "input": jsonInput}, object{"name": "none", "input": object{}},
			object{"name": "hidden", "ingressPrivate": true}),
		serviceManifest("O", "VIRTUAL_OBJECT", nil, object{"name": "add"}),
		serviceManifest("W", "WORKFLOW", nil, object{"name": "run", "ty": "WORKFLOW"}),
		serviceManifest("P", "SERVICE", object{"ingressPrivate": true}, object{"name": "h"}),
	)))
	w := newFixture(t, map[string]string{"INGRESS__REQUEST_SIZE_LIMIT": "64 KiB"})
	w.register(e.URL, nil)
	const js = "application/json"
	unknown := "inv_1" + strings.Repeat("1", 33)
	for name, c := range map[string]badRequest{
		"the root":              {"GET", "/", "", nil, 400, "bad path"},
		"one segment":           {"GET", "/S", "", nil, 400, "bad path"},
		"too many segments":     {"GET", "/a/b/c/d/e/f/g/h", "", nil, 400, "bad path"},
		"unknown service":       {"POST", "/X/any", "", nil, 404, "make sure to register the service"},
		"unknown, wrong method": {"PUT", "/X/any", "", nil, 404, "make sure to register the service"},
		"unknown handler":       {"POST", "/platform/call/S/nope", "", nil, 404, "no handler 'nope'"},
		"unknown verb":          {"POST", "/platform/dance/S/any", "", nil, 404, "not found"},
		"openapi":               {"GET", "/openapi/S", "", nil, 404, "not found"},
		"key for a service":     {"POST", "/platform/call/S/k/any", "", nil, 400, "without keys"},
		"no key":                {"POST", "/O/add", "", nil, 400, "with a key"},
		"key that is no text":   {"POST", "/O/%ff/add", "", nil, 400, "UTF-8"},
		"method":                {"PUT", "/S/any", "", nil, 405, "use GET, POST"},
		"private handler":       {"POST", "/S/hidden", "", nil, 400, "not public"},
		"private service":       {"POST", "/P/h/send", "", nil, 400, "not public"},
		"delay of a call":       {"POST", "/S/any?delay=1s", "", nil, 400, "only sends"},
		"delay without unit":    {"POST", "/S/any/send?delay=5", "", nil, 400, "bad delay"},
		"negative delay":        {"POST", "/S/any/send?delay=-5s", "", nil, 400, "cannot be negative"},
		"undecodable delay":     {"POST", "/S/any/send?delay=%zz", "", nil, 400, "bad delay"},
		"limit key":             {"POST", "/S/any?limit-key=a", "", nil, 400, "requires a scope"},
		"scope":                 {"POST", "/platform/scope/s/call/S/any", "", nil, 400, "flow control"},
		"no body":               {"POST", "/S/json", "", nil, 400, "input validation error"},
		"empty JSON":            {"POST", "/S/json", "", []string{"content-type", js}, 400, "input validation error"},
		"not JSON":              {"POST", "/S/json", "x", []string{"content-type", "text/plain"}, 400, "Content-type 'text/plain' does not match 'application/json'"},
		"no content type":       {"POST", "/S/json", "1", nil, 400, "lacks a content-type"},
		"body for nothing":      {"POST", "/S/none", "x", []string{"content-type", js}, 400, "expected"},
		"header not ASCII":      {"POST", "/S/any", "", []string{"x-name", "ü"}, 400, "bad header"},
		"idempotency of a run":  {"POST", "/W/k/run", "", []string{"idempotency-key", "a"}, 400, "workflow"},
		"too large":             {"POST", "/S/any", strings.Repeat("x", 65<<10), []string{"content-type", "a/b"}, 413, "ingress.request-size-limit"},
		"bad id":                {"GET", "/platform/attach/abc", "", nil, 400, "bad invocation id"},
		"unknown id":            {"GET", "/platform/attach/" + unknown, "", nil, 404, "invocation not found"},
		"unknown output":        {"GET", "/platform/invocation/" + unknown + "/output", "", nil, 404, "invocation not found"},
		"unknown key":           {"GET", "/platform/invocation/S/any/never/attach", "", nil, 404, "invocation not found"},
		"unknown workflow":      {"GET", "/platform/workflow/W/never/attach", "", nil, 404, "invocation not found"},
		"half a target":         {"POST", "/platform/lookup", `{"target":`, nil, 400, "JSON"},
		"a list for a target":   {"POST", "/platform/attach", `[]`, nil, 400, "JSON object, not array"},
		"no target":             {"POST", "/platform/output", `{}`, nil, 400, "'target'"},
		"unknown target":        {"POST", "/platform/lookup", `{"target":"moon"}`, nil, 400, "'moon'"},
		"target without key":    {"POST", "/platform/lookup", `{"target":"workflow","workflowName":"W"}`, nil, 400, "'workflowKey'"},
		"lookup by GET":         {"GET", "/platform/lookup", "", nil, 405, "use POST"},
		"health by POST":        {"POST", "/platform/health", "", nil, 405, "use GET"},
	} {
		for version, http2 := range map[string]bool{"1": false, "2": true} {
			t.Run(name+" in HTTP "+version, func(t *testing.T) { w.withT(t).requireRejected(newClient(t, http2), c) })
		}
	}
	listed := w.admin("GET", "/invocations", nil)
	require.JSONEq(t, `{"invocations":[]}`, string(listed.raw), "no request may start an invocation")
}

// requireRejected sends a request and checks the error response.
func (w *fixture) requireRejected(client *http.Client, c badRequest) {
	ctx, cancel := context.WithTimeout(w.ctx, testTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, w.server.Client.Base()+c.path, strings.NewReader(c.body))
	require.NoError(w, err)
	for i := 0; i+1 < len(c.header); i += 2 {
		req.Header.Set(c.header[i], c.header[i+1])
	}
	resp, err := client.Do(req)
	require.NoError(w, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	require.Equal(w, c.status, resp.StatusCode, "%s", raw)
	var body struct {
		Code            int
		Message, Source string
	}
	require.NoError(w, json.Unmarshal(raw, &body), "%s", raw)
	require.Equal(w, c.status, body.Code)
	require.Contains(w, body.Message, c.message)
	require.Equal(w, "ingress", body.Source)
	require.Equal(w, "ingress", resp.Header.Get("x-platform-error-source"))
	require.Equal(w, "application/json", resp.Header.Get("content-type"))
	if c.status == 405 {
		require.NotEmpty(w, resp.Header.Get("allow"))
	}
}

// TestHandlerInput sends unusual keys, bodies and headers and checks what the handler
// receives.
func TestHandlerInput(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("O", "VIRTUAL_OBJECT", nil, object{"name": "add"}))))
	type input struct {
		key, body string
		header    []string
	}
	got := make(chan input, 1)
	e.script("O/add", func(x *exchange) {
		var start service.StartMessage
		var inputMessage service.InputCommandMessage
		_, payload, _ := x.read()
		_ = start.UnmarshalVT(payload)
		_, payload, _ = x.read()
		_ = inputMessage.UnmarshalVT(payload)
		a := input{key: start.Key, body: string(inputMessage.GetValue().GetContent())}
		for _, h := range inputMessage.Headers {
			a.header = append(a.header, h.Key+": "+h.Value)
		}
		slices.Sort(a.header)
		got <- a
		x.head()
		x.send(output, end)
		x.drain()
	})
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	client := newClient(t, false)
	for path, key := range map[string]string{
		"/O/a%2Fb/add":                            "a/b",
		"/O/%2F/add/":                             "/",
		"/restate/call/O/%20/add":                 " ",
		"/platform/call/O/%E4%BD%A0%E5%A5%BD/add": "你好",
		"/O/a+b%2B/add?q=":                        "a+b+",
		"/O/%2e%2e/add":                           "..",
		"/O/%25zz/add":                            "%zz",
		"/O/send/add":                             "send",
	} {
		for _, method := range []string{"GET", "POST"} {
			req, err := http.NewRequestWithContext(w.ctx, method, w.server.Client.Base()+path, strings.NewReader("\x00\xff"))
			require.NoError(t, err)
			req.Header = http.Header{"Content-Type": {"a/b"}, "X-Twice": {"1", "2"}, "Idempotency-Key": {method + path}, "User-Agent": {"test"}, "X-Empty": {""}}
			resp, err := client.Do(req)
			require.NoError(t, err)
			_ = resp.Body.Close()
			require.Equal(t, 200, resp.StatusCode, path)
			a := <-got
			require.Equal(t, key, a.key, path)
			require.Equal(t, "\x00\xff", a.body)
			require.Contains(t, a.header, "x-platform-ingress-path: "+path)
			require.Contains(t, a.header, "x-twice: 1")
			require.Contains(t, a.header, "x-twice: 2")
			require.Contains(t, a.header, "content-type: a/b")
			require.Contains(t, a.header, "x-empty: ")
			for _, h := range a.header {
				require.NotRegexp(t, `^(host|connection|idempotency-key|idempotency-expires):`, h)
			}
		}
	}
}

// TestDisconnectedCallerDoesNotCancel disconnects the only caller and attaches afterwards.
func TestDisconnectedCallerDoesNotCancel(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", nil, object{"name": "h"}))))
	begun, finish := make(chan struct{}), make(chan struct{})
	e.script("S/h", func(x *exchange) { close(begun); <-finish; succeed(x) })
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	ctx, disconnect := context.WithCancel(w.ctx)
	callErr := make(chan error, 1)
	go func() {
		_, err := w.server.Client.Call(ctx, "S/h", []byte("1"), "idempotency-key", "k")
		callErr <- err
	}()
	<-begun
	disconnect()
	require.ErrorIs(t, <-callErr, context.Canceled)
	statuses := make(chan int, 2)
	for _, verb := range []string{"attach", "output"} {
		a, err := w.server.Client.Get(w.ctx, "platform/invocation/S/h/k/output")
		require.NoError(t, err)
		require.Equal(t, 470, a.Status, verb)
		go func() {
			a, _ := w.server.Client.Get(w.ctx, "platform/invocation/S/h/k/attach")
			statuses <- a.Status
		}()
	}
	close(finish)
	for range 2 {
		select {
		case status := <-statuses:
			require.Equal(t, 200, status)
		case <-time.After(testTimeout):
			t.Fatal("no response")
		}
	}
	require.Equal(t, 1, e.attemptCount("S/h"))
}

// TestHTTP11Endpoints registers an endpoint without HTTP/2.
func TestHTTP11Endpoints(t *testing.T) {
	m := manifest(serviceManifest("S", "SERVICE", nil, object{"name": "h"}))
	m["protocolMode"] = "REQUEST_RESPONSE"
	offer := serveManifest(t, m)
	uri := http1(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/discover" {
			offer(w, r)
			return
		}
		succeed(&exchange{w: w, r: r})
	})
	w := newFixture(t, nil)
	refused := w.admin("POST", "/deployments", object{"uri": uri + "/base"})
	require.Equal(t, "META0014", refused.code(), "%s", refused.raw)
	id := w.register(uri+"/base/", object{"use_http_11": true})
	shown := string(w.admin("GET", "/deployments/"+id, nil).raw)
	require.Contains(t, shown, `"http_version":"HTTP/1.1"`)
	require.Contains(t, shown, `"protocol_type":"RequestResponse"`)
	a := w.call("S/h")
	require.Equal(t, 200, a.Status, "%s", a.Body)
}
