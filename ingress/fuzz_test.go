package ingress

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"platform/flowcontrol"
	"platform/internal/target"
)

// FuzzPath: every path gets a response, and each invocation is of a registered handler, with a key
// exactly if its service has keys.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"/Greeter/greet", "/Counter/k/add/send", "/platform/call/Order/%2F/run/", "/platform/attach/inv_1", "/restate/invocation/a/b/c/d/output",
		"/", "//", "///", "/platform/scope/s/call/a/b", "/platform/scope/%73/call/Greeter/greet", "/restate/scope/s/send/Counter/k/add", "/Counter//add", "/%2e%2e/x", "/openapi/x", "/Counter/%ff/add", "/*/:id", "/platform/workflow/%41/*/attach",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		fake := &fakeInvocations{}
		w := httptest.NewRecorder()
		r := &http.Request{Method: http.MethodPost, URL: u, RequestURI: path, Header: http.Header{}, Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}
		testServer(t, Config{FlowControl: len(path)%2 == 0}, fake).handler().ServeHTTP(w, r)
		if w.Code < 200 || w.Code >= 500 {
			t.Fatalf("%q: status %d: %s", path, w.Code, w.Body)
		}
		for _, inv := range fake.invokes {
			called := inv.Target
			if called.Type == target.Service && called.Key != "" || !utf8.ValidString(called.Key) || inv.ID.IsZero() {
				t.Fatalf("%q: target %+v", path, called)
			}
			if called.Scope != "" && flowcontrol.CheckScope(called.Scope) != nil {
				t.Fatalf("%q: scope %q", path, called.Scope)
			}
			decodeInput(inv)
		}
	})
}

// FuzzTargetBody: the response to any body is an id or an explanation.
func FuzzTargetBody(f *testing.F) {
	for body := range bodiesOf {
		f.Add(body)
	}
	f.Add(`{"target":{}}`)
	f.Add(`{"target":"workflow","workflowName":"Order","workflowKey":"o","scope":"s"}`)
	s := testServer(f, Config{FlowControl: true}, &fakeInvocations{})
	f.Fuzz(func(t *testing.T, body string) {
		if w := do(s, http.MethodPost, "/platform/lookup", body); w.Code != 200 && w.Code != 400 {
			t.Fatalf("%q: status %d: %s", body, w.Code, w.Body)
		}
	})
}
