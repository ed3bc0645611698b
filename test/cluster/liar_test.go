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

// lie is what stands between clients and a node and does not always pass requests on.
type lie func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// lied is the view of clients that talk to a liar in front of each node.
func (b *bed) lied(t *testing.T, l lie) *load.Nodes {
	var clients []*harness.Client
	for _, n := range b.Nodes {
		base, err := url.Parse(n.Client.Base())
		require.NoError(t, err)
		pass := httputil.NewSingleHostReverseProxy(base)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l(w, r, pass) }))
		t.Cleanup(server.Close)
		clients = append(clients, harness.NewClient(server.URL, n.Target.Prefix))
	}
	return load.NewNodes(clients)
}

// every calls for one in n.
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

// acknowledgeFirst answers some sends before the node has them, which is then not told.
func acknowledgeFirst() lie {
	some := every(10)
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if !strings.Contains(r.URL.Path, "/send/Ledger/") || !some() {
			pass.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"invocationId":"inv_1","status":"Accepted"}`)
	}
}

// forgetKeys passes some sends on twice and takes away what tells that they are one.
func forgetKeys() lie {
	some := every(10)
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if strings.Contains(r.URL.Path, "/send/Ledger/") && some() {
			body, _ := io.ReadAll(r.Body)
			r.Header.Del("idempotency-key")
			again := r.Clone(r.Context())
			again.Body, r.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
			pass.ServeHTTP(httptest.NewRecorder(), again)
		}
		pass.ServeHTTP(w, r)
	}
}

// rememberReads answers some reads of a register with what an earlier one got.
func rememberReads() lie {
	var mu sync.Mutex
	old := map[string]*httptest.ResponseRecorder{}
	some := every(3)
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/peek") {
			pass.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		answer := old[r.URL.Path]
		if answer == nil || !some() {
			answer = httptest.NewRecorder()
			pass.ServeHTTP(answer, r)
			if old[r.URL.Path] == nil {
				old[r.URL.Path] = answer
			}
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

// refuseSome answers some requests with an error that they did not get.
func refuseSome() lie {
	some := every(50)
	return func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if some() {
			http.Error(w, `{"code":503,"message":"no leader","source":"ingress"}`, http.StatusServiceUnavailable)
			return
		}
		pass.ServeHTTP(w, r)
	}
}
