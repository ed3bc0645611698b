package ingress

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

// counts are the requests that a registry has counted, as "request result", and how
// often the time of each kind was taken.
func counts(t *testing.T, reg *prometheus.Registry) (requests, timed map[string]int) {
	families, err := reg.Gather()
	require.NoError(t, err)
	requests, timed = map[string]int{}, map[string]int{}
	for _, f := range families {
		for _, m := range f.Metric {
			var values []string
			for _, l := range m.Label {
				values = append(values, l.GetValue())
			}
			name := strings.Join(values, " ")
			if n := int(m.Counter.GetValue()); n > 0 {
				requests[name] = n
			}
			if n := int(m.Histogram.GetSampleCount()); n > 0 {
				timed[name] = n
			}
		}
	}
	return requests, timed
}

func TestRequestsAreCountedByKindAndResult(t *testing.T) {
	ask := func(method, path string) *http.Request {
		r := httptest.NewRequest(method, path, strings.NewReader(`"Sarah"`))
		r.Header.Set("content-type", "application/json")
		return r
	}
	failing := func(err error) *fakeInvocations {
		return &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) { return routing.Response{}, err }}
	}
	const id = "inv_1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for _, tc := range []struct {
		name, method, path, want string
		invocations              *fakeInvocations
	}{
		{"call", "POST", "/Greeter/strict", "call ok", &fakeInvocations{}},
		{"call below the prefix", "POST", "/platform/call/Greeter/strict", "call ok", &fakeInvocations{}},
		{"send", "POST", "/Greeter/strict/send", "send ok", &fakeInvocations{}},
		{"send below the prefix", "POST", "/restate/send/Greeter/strict", "send ok", &fakeInvocations{}},
		{"refused send", "POST", "/Greeter/strict/send?delay=soon", "send request_error", nil},
		{"failed handler", "POST", "/Greeter/strict", "call invocation_error", &fakeInvocations{call: func(context.Context, *machine.Invoke) (routing.Response, error) {
			return routing.Response{Result: journal.Result{Failure: &journal.Failure{Code: 503, Message: "sold out"}}}, nil
		}}},
		{"no leader", "POST", "/Greeter/strict", "call unavailable", failing(&routing.UnavailableError{SafeToRetry: true})},
		{"full queue", "POST", "/Greeter/strict", "call rate_limited", failing(&routing.QueueFullError{Rule: "*"})},
		{"bug", "POST", "/Greeter/strict", "call ingress_error", failing(errors.New("boom"))},
		{"panic", "POST", "/Greeter/strict", "call ingress_error", nil}, // no Invocations at all
		{"unknown service", "POST", "/Nobody/strict", "call request_error", nil},
		{"bad path", "POST", "/Greeter", "other request_error", nil},
		{"wrong method", "DELETE", "/platform/attach/" + id, "attach request_error", nil},
		{"strange method", "TRACE", "/platform/attach/" + id, "other request_error", nil},
		{"no result yet", "GET", "/platform/output/%s", "output not_ready", &fakeInvocations{output: func(context.Context, ids.Invocation) (routing.Response, error) {
			return routing.Response{}, routing.ErrNotReady
		}}},
		{"health", "GET", "/platform/health", "", nil},
		{"preflight", "OPTIONS", "/Greeter/strict", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			var invocations Invocations // nil: a call would panic
			if tc.invocations != nil {
				invocations = tc.invocations
			}
			s := testServer(t, Config{Metrics: NewMetrics(reg)}, nil)
			s.invocations = invocations
			path := strings.Replace(tc.path, "%s", newID(machine.Target{Service: "Greeter", Handler: "strict"}, nil, "", rand.Uint64, clock).String(), 1)
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, ask(tc.method, path))
			requests, timed := counts(t, reg)
			if tc.want == "" {
				require.Empty(t, requests)
				require.Empty(t, timed)
				return
			}
			require.Equal(t, map[string]int{tc.want: 1}, requests, w.Body.String())
			kind, _, _ := strings.Cut(tc.want, " ")
			require.Equal(t, map[string]int{kind: 1}, timed)
		})
	}
}

// A connection that is cut in the middle of a response is not counted as a success, and no request
// remains in progress.
func TestATruncatedResponseIsCountedAsBroken(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	s := testServer(t, Config{Metrics: m}, &fakeInvocations{})
	s.add(s.router, kindOther, nil, "/platform/broken", brokenHandler)
	require.PanicsWithValue(t, http.ErrAbortHandler, func() {
		s.handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/platform/broken", nil))
	})
	requests, _ := counts(t, reg)
	require.Equal(t, map[string]int{"other ingress_error": 1}, requests)
	require.Zero(t, m.active.Load())
}

// The counting writer must not hide methods of the wrapped one that the server needs.
func TestCountedRequestsKeepDeadlines(t *testing.T) {
	s := testServer(t, Config{Metrics: NewMetrics(prometheus.NewRegistry()), RequestSizeLimit: 10}, &fakeInvocations{})
	addr, _ := start(t, s)
	resp, err := http.Post("http://"+addr+"/Greeter/strict", "application/json", io.LimitReader(zeros{}, 1<<20))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.True(t, resp.Close, "the rest of the body is not read")
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}
