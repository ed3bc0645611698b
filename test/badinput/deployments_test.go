package badinput

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// http1 serves HTTP/1.1 only.
func http1(t *testing.T, discover http.HandlerFunc) string {
	s := httptest.NewServer(discover)
	t.Cleanup(s.Close)
	return s.URL
}

// http10 serves a manifest in HTTP/1.0, which does not support bidirectional streaming.
func http10(t *testing.T, m object) string {
	body, err := json.Marshal(m)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = fmt.Fprintf(conn, "HTTP/1.0 200 OK\r\ncontent-type: %s\r\n\r\n%s", manifestType, body)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

func TestRejectedDeployments(t *testing.T) {
	w := newFixture(t, nil)
	one := func(s object) string {
		return newEndpoint(t, serveManifest(t, manifest(s))).URL
	}
	good := serviceManifest("Good", "SERVICE", nil, object{"name": "greet"})
	changed := func(key string, value any) string {
		m := manifest(good)
		if m[key] = value; value == nil {
			delete(m, key)
		}
		return newEndpoint(t, serveManifest(t, m)).URL
	}
	raw := func(status int, contentType, body string) string {
		return newEndpoint(t, serveResponse(status, contentType, body)).URL
	}
	for name, c := range map[string]struct {
		body    any
		status  int
		code    string
		message string
	}{
		"connection refused":                {object{"uri": closedPort(t)}, 502, "META0003", "cannot be reached"},
		"unknown host":                      {object{"uri": "http://nobody.invalid"}, 502, "META0003", "cannot be reached"},
		"status 404":                        {object{"uri": raw(404, "text/plain", "?")}, 502, "META0003", "is the endpoint mounted under another path"},
		"status 401":                        {object{"uri": raw(401, "text/plain", "?")}, 502, "META0003", "require other headers"},
		"status 500":                        {object{"uri": raw(500, "text/plain", "?")}, 502, "META0003", "did not accept discovery"},
		"redirect":                          {object{"uri": raw(302, "text/plain", "?")}, 502, "META0003", "redirect, which is not followed"},
		"HTTP/1.1":                          {object{"uri": http1(t, serveManifest(t, manifest(good)))}, 502, "META0014", "use_http_11"},
		"HTML":                              {object{"uri": raw(200, "text/html", "<html>")}, 502, "META0013", "content type"},
		"an unknown version":                {object{"uri": raw(200, "application/vnd.restate.endpointmanifest.v9+json", "{}")}, 502, "META0013", ""},
		"not JSON":                          {object{"uri": raw(200, manifestType, "{\n]")}, 400, "", "not valid JSON (line 2)"},
		"wrong JSON type":                   {object{"uri": raw(200, manifestType, `{"services":5}`)}, 400, "", `"services"`},
		"too large":                         {object{"uri": raw(200, manifestType, strings.Repeat(" ", 40*mebi))}, 502, "META0013", "larger than"},
		"no protocol mode":                  {object{"uri": changed("protocolMode", nil)}, 502, "META0013", "protocolMode"},
		"reversed versions":                 {object{"uri": changed("minProtocolVersion", 7)}, 502, "META0013", ""},
		"only old versions":                 {object{"uri": changed("maxProtocolVersion", 4)}, 502, "META0013", ""},
		"bidirectional in HTTP/1.0":         {object{"uri": http10(t, manifest(good)), "use_http_11": true}, 502, "META0015", "HTTP/1.0"},
		"only new versions":                 {object{"uri": newEndpoint(t, serveManifest(t, object{"protocolMode": "BIDI_STREAM", "minProtocolVersion": 8, "maxProtocolVersion": 9, "services": []object{good}})).URL}, 400, "META0012", "8"},
		"reserved name":                     {object{"uri": one(serviceManifest("restateThings", "SERVICE", nil, object{"name": "x"}))}, 400, "META0005", "restateThings"},
		"reserved product name":             {object{"uri": one(serviceManifest("PlatformX", "SERVICE", nil, object{"name": "x"}))}, 400, "META0005", "PlatformX"},
		"reserved OpenAPI name":             {object{"uri": one(serviceManifest("OpenAPI", "SERVICE", nil, object{"name": "x"}))}, 400, "META0005", "OpenAPI"},
		"handler type":                      {object{"uri": one(serviceManifest("A", "SERVICE", nil, object{"name": "x", "ty": "EXCLUSIVE"}))}, 400, "", "x"},
		"service type":                      {object{"uri": one(serviceManifest("A", "DAEMON", nil, object{"name": "x"}))}, 400, "", "DAEMON"},
		"service name":                      {object{"uri": one(serviceManifest("A/B", "SERVICE", nil, object{"name": "x"}))}, 400, "", "A/B"},
		"handler name":                      {object{"uri": one(serviceManifest("A", "SERVICE", nil, object{"name": "x y"}))}, 400, "", "x y"},
		"duplicate handler":                 {object{"uri": one(serviceManifest("A", "SERVICE", nil, object{"name": "x"}, object{"name": "x"}))}, 502, "META0013", "handler x twice"},
		"bad content type":                  {object{"uri": one(serviceManifest("A", "SERVICE", nil, object{"name": "x", "input": object{"contentType": "*/json"}}))}, 400, "", "*/json"},
		"public handler in private service": {object{"uri": one(serviceManifest("A", "SERVICE", object{"ingressPrivate": true}, object{"name": "x", "ingressPrivate": false}))}, 400, "", "x"},

		"relative uri":        {object{"uri": "localhost:9080"}, 400, "", "uri"},
		"uri not a string":    {object{"uri": 5}, 422, "", "the field 'uri' must be a string"},
		"no uri":              {object{}, 422, "", "the field 'uri' is required"},
		"no version":          {object{"arn": "arn:aws:lambda:eu-central-1:123456789012:function:f"}, 400, "", "lacks the version"},
		"header name":         {object{"uri": "http://a", "additional_headers": object{"a b": "c"}}, 400, "", `"a b"`},
		"force not a boolean": {object{"uri": "http://a", "force": "yes"}, 422, "", "the field 'force' must be a boolean"},
		"array":               {`[]`, 422, "", "must be an object"},
		"truncated object":    {`{"uri":`, 400, "", "not valid JSON"},
		"empty body":          {``, 400, "", "empty"},
		"body too large":      {`{"uri":"` + strings.Repeat("x", 5*mebi) + `"}`, 413, "", "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.withT(t).admin("POST", "/deployments", c.body)
			require.Equal(t, c.status, r.status, "%s", r.raw)
			require.Equal(t, c.code, r.code(), "%s", r.raw)
			require.Contains(t, r.Message, c.message)
		})
	}
	require.Equal(t, 415, w.admin("POST", "/deployments", "{}", "content-type", "text/plain").status)
	require.JSONEq(t, `{"deployments":[]}`, string(w.admin("GET", "/deployments", nil).raw), "no deployment may be stored")
}

// registry returns the registered deployments and services.
func (w *fixture) registry() string {
	return string(w.admin("GET", "/deployments", nil).raw) + string(w.admin("GET", "/services", nil).raw)
}

// TestDeploymentLifecycle registers, re-registers, changes and deletes a deployment, with
// a kill of the server in between.
func TestDeploymentLifecycle(t *testing.T) {
	w := newFixture(t, nil)
	options := object{"retryPolicyInitialInterval": 20, "retryPolicyMaxInterval": 100}
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", options, object{"name": "h"}, object{"name": "hang"}))))
	e.script("S/h", succeed)
	e.script("S/hang", func(x *exchange) { x.replay(); x.head(); <-x.r.Context().Done() })

	planned := w.admin("POST", "/deployments", object{"uri": e.URL, "dry_run": true})
	require.Equal(t, 201, planned.status, "%s", planned.raw)
	require.Equal(t, 404, w.admin("GET", "/services/S", nil).status, "a dry run stores nothing")
	require.Equal(t, 404, w.call("S/h").Status)

	created := w.admin("POST", "/deployments", object{"uri": e.URL})
	require.Equal(t, 201, created.status, "%s", created.raw)
	location := created.header.Get("location")
	require.Equal(t, 200, w.admin("GET", "/"+location, nil).status, location)
	id := strings.TrimPrefix(location, "deployments/")

	// Registering again changes nothing, even if the endpoint has changed; the response says so.
	again := w.admin("POST", "/deployments", object{"uri": e.URL + "/"})
	require.Equal(t, 200, again.status)
	require.Contains(t, string(again.raw), "code and schemas were not compared")
	var shown, want object
	require.NoError(t, json.Unmarshal(again.raw, &shown))
	require.NoError(t, json.Unmarshal(created.raw, &want))
	delete(shown, "info")
	require.Equal(t, want, shown)
	e.mu.Lock()
	e.discover = serveManifest(t, manifest(serviceManifest("S", "VIRTUAL_OBJECT", options, object{"name": "h"})))
	e.mu.Unlock()
	changed := w.admin("POST", "/deployments", object{"uri": e.URL})
	require.Equal(t, 200, changed.status)
	require.Contains(t, string(changed.raw), "register with force")
	require.Equal(t, "META0004", w.admin("POST", "/v2/deployments", object{"uri": e.URL, "force": false}).code())

	// A changed service type is rejected at another address, and accepted with force.
	other := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "VIRTUAL_OBJECT", options, object{"name": "h"}))))
	other.script("S/h", succeed)
	refused := w.admin("POST", "/deployments", object{"uri": other.URL})
	require.Equal(t, 409, refused.status, "%s", refused.raw)
	require.Equal(t, "META0006", refused.code())
	before := w.registry()
	require.Equal(t, 201, w.admin("POST", "/deployments", object{"uri": other.URL, "breaking": true, "dry_run": true}).status)
	require.Equal(t, before, w.registry())

	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	require.Equal(t, before, w.registry(), "registrations must survive a restart")
	w.requireHealthy("S/h")

	// A running invocation protects a deployment from deletion, except with force; the
	// invocation is then paused, or retried with a code that gives the reason.
	hanging := w.send("S/hang")
	w.awaitInvocation(hanging, func(i invocation) bool { return i.Status == "running" })
	otherID := w.register(other.URL, object{"breaking": true})
	inUse := w.admin("DELETE", "/deployments/"+id, nil)
	require.Equal(t, 409, inUse.status, "%s", inUse.raw)
	require.Contains(t, inUse.Message, "1 unfinished invocation needs it")
	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+id+"?force=true", nil).status)
	require.Equal(t, "running", w.describe(hanging).Status)

	require.Equal(t, 404, w.admin("GET", "/deployments/"+id, nil).status)
	require.Equal(t, 404, w.admin("DELETE", "/deployments/"+id, nil).status)
	require.Equal(t, 409, w.admin("DELETE", "/deployments/"+otherID, nil).status)
	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+otherID+"?force=true", nil).status)
	require.Equal(t, 404, w.call("S/k/h").Status)
	gone, err := w.server.Client.Send(w.ctx, "S/k/h", []byte(`"hi"`))
	require.NoError(t, err)
	require.Equal(t, 404, gone.Status)
	require.Contains(t, string(gone.Body), "make sure to register the service")
	require.Equal(t, 400, w.admin("DELETE", "/deployments/xyz", nil).status)
}

// TestDeleteDeploymentWithInvocations deletes a deployment with a pending invocation by
// force and registers it again.
func TestDeleteDeploymentWithInvocations(t *testing.T) {
	w := newFixture(t, nil)
	options := object{"retryPolicyInitialInterval": 20, "retryPolicyMaxInterval": 100}
	offer := serveManifest(t, manifest(serviceManifest("S", "SERVICE", options, object{"name": "h"})))
	e := newEndpoint(t, offer)
	e.script("S/h", func(x *exchange) {
		x.replay()
		x.head()
		x.send(callMessage("S", "never", ""))
		x.drain()
	})
	id := w.register(e.URL, nil)
	delayed, err := w.server.Client.Send(w.ctx, "S/h?delay=300ms", []byte(`"hi"`))
	require.NoError(t, err)
	require.Equal(t, 202, delayed.Status)
	var sent harness.Sent
	require.NoError(t, json.Unmarshal(delayed.Body, &sent))

	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+id+"?force=true", nil).status)
	failing := w.awaitInvocation(sent.InvocationID, func(i invocation) bool { return i.LastErrorCode != "" })
	require.Equal(t, "RT0011", failing.LastErrorCode, failing.LastFailure)
	require.Equal(t, "backing-off", failing.Status)

	e.script("S/h", succeed)
	w.register(e.URL, nil)
	require.Equal(t, 200, w.attach(sent.InvocationID).Status, "the invocation must resume once the service is registered")
}
