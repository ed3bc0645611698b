package cluster

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/cluster/load"
	"platform/test/harness"
)

// tamper handles requests in a proxy between clients and a node.
type tamper func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// proxied returns the targets of clients that use a tampering proxy for each node.
func (b *testbed) proxied(t *testing.T, f tamper) *load.Nodes {
	var clients []*harness.Client
	for _, n := range b.Nodes {
		base, err := url.Parse(n.Client.Base())
		require.NoError(t, err)
		forward := httputil.NewSingleHostReverseProxy(base)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(w, r, forward) }))
		t.Cleanup(server.Close)
		clients = append(clients, harness.NewClient(server.URL, n.Target.Prefix))
	}
	return load.NewNodes(clients)
}

// every returns a function that returns true once in n calls.
func every(n int) func() bool {
	var mu sync.Mutex
	count := 0
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		count++
		return count%n == 0
	}
}

// ackWithoutForwarding acknowledges some sends without forwarding them.
func ackWithoutForwarding() tamper {
	selected := every(10)
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if !strings.Contains(r.URL.Path, "/send/Ledger/") || !selected() {
			forward.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"invocationId":"inv_1","status":"Accepted"}`)
	}
}

// duplicateWithoutKey forwards some sends twice, without their idempotency key.
func duplicateWithoutKey() tamper {
	selected := every(10)
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if strings.Contains(r.URL.Path, "/send/Ledger/") && selected() {
			body, _ := io.ReadAll(r.Body)
			r.Header.Del("idempotency-key")
			duplicate := r.Clone(r.Context())
			duplicate.Body, r.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
			forward.ServeHTTP(httptest.NewRecorder(), duplicate)
		}
		forward.ServeHTTP(w, r)
	}
}

// staleReads responds to some reads of a register with its first response.
func staleReads() tamper {
	var mu sync.Mutex
	first := map[string]*httptest.ResponseRecorder{}
	selected := every(3)
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/peek") {
			forward.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		resp := first[r.URL.Path]
		if resp == nil || !selected() {
			resp = httptest.NewRecorder()
			forward.ServeHTTP(resp, r)
			if first[r.URL.Path] == nil {
				first[r.URL.Path] = resp
			}
		}
		w.WriteHeader(resp.Code)
		_, _ = w.Write(resp.Body.Bytes())
	}
}

// injectErrors responds to some requests with an error without forwarding them.
func injectErrors() tamper {
	selected := every(50)
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		if selected() {
			http.Error(w, `{"code":503,"message":"no leader","source":"ingress"}`, http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}
}
