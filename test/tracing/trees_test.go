package tracing

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// scenario is a call and the tree of spans that it leads to.
type scenario struct {
	name, path, body string
	send             bool
	failures         int64 // attempts of flaky that fail first
	want             string
}

var scenarios = []scenario{
	{name: "call", path: "Traced/greet", body: `"a"`, want: `
ingress Traced/greet
  invocation-start Traced/greet
    invocation-attempt Traced/greet completed [new_command:Output]
    invocation-end Traced/greet success
`},
	{name: "send", path: "Traced/greet", body: `"a"`, send: true, want: `
ingress Traced/greet
  invocation-start Traced/greet
    invocation-attempt Traced/greet completed [new_command:Output]
    invocation-end Traced/greet success
`},
	{name: "delayed send", path: "Traced/greet?delay=10ms", body: `"a"`, send: true, want: `
ingress Traced/greet
  invocation-start Traced/greet
    invocation-attempt Traced/greet completed [new_command:Output]
    invocation-end Traced/greet success
`},
	{name: "steps", path: "Traced/steps", body: `2`, want: `
ingress Traced/steps
  invocation-start Traced/steps
    invocation-attempt Traced/steps completed [new_command:Run:step run_ended new_command:Run:step run_ended new_command:Output]
    invocation-end Traced/steps success
`},
	{name: "terminal failure", path: "Traced/refuse", body: `"no"`, want: `
ingress Traced/refuse !the invocation failed
  invocation-start Traced/refuse
    invocation-attempt Traced/refuse completed [new_command:Output]
    invocation-end Traced/refuse failure 409 !no
`},
	{name: "retries", path: "Traced/flaky", failures: 2, want: `
ingress Traced/flaky
  invocation-start Traced/flaky
    invocation-attempt Traced/flaky failed RT0007 !not yet
    invocation-attempt Traced/flaky failed RT0007 !not yet
    invocation-attempt Traced/flaky completed [new_command:Output]
    invocation-end Traced/flaky success
`},
	{name: "call of another handler", path: "Traced/parent", body: `"a"`, want: `
ingress Traced/parent
  invocation-start Traced/parent
    invocation-attempt Traced/parent completed [new_command:Call new_command:Output]
    invocation-start Traced/greet
      invocation-attempt Traced/greet completed [new_command:Output]
      invocation-end Traced/greet success
    invocation-end Traced/parent success
`},
	{name: "one-way call", path: "Traced/sender", body: `"a"`, want: `
ingress Traced/sender
  invocation-start Traced/sender
    invocation-attempt Traced/sender completed [new_command:OneWayCall new_command:Output]
    invocation-start Traced/greet linked
      invocation-attempt Traced/greet completed [new_command:Output]
      invocation-end Traced/greet success
    invocation-end Traced/sender success
`},
	{name: "fan-out", path: "Traced/fanout", body: `3`, want: `
ingress Traced/fanout
  invocation-start Traced/fanout
    invocation-attempt Traced/fanout completed [new_command:Call new_command:Call new_command:Call new_command:Output]
    invocation-start Traced/greet
      invocation-attempt Traced/greet completed [new_command:Output]
      invocation-end Traced/greet success
    invocation-start Traced/greet
      invocation-attempt Traced/greet completed [new_command:Output]
      invocation-end Traced/greet success
    invocation-start Traced/greet
      invocation-attempt Traced/greet completed [new_command:Output]
      invocation-end Traced/greet success
    invocation-end Traced/fanout success
`},
	{name: "failure of a callee", path: "Traced/catch", body: `"no"`, want: `
ingress Traced/catch
  invocation-start Traced/catch
    invocation-attempt Traced/catch completed [new_command:Call new_command:Output]
    invocation-start Traced/refuse
      invocation-attempt Traced/refuse completed [new_command:Output]
      invocation-end Traced/refuse failure 409 !no
    invocation-end Traced/catch success
`},
	{name: "sleep", path: "Traced/nap", body: `10`, want: `
ingress Traced/nap
  invocation-start Traced/nap
    invocation-attempt Traced/nap completed [new_command:Sleep new_command:Output]
    invocation-end Traced/nap success
`},
	{name: "object", path: "Keyed/k/set", body: `"v"`, want: `
ingress Keyed/k/set
  invocation-start Keyed/k/set
    invocation-attempt Keyed/k/set completed [new_command:SetState new_command:Output]
    invocation-end Keyed/k/set success
`},
	{name: "shared handler", path: "Keyed/k/get", want: `
ingress Keyed/k/get
  invocation-start Keyed/k/get
    invocation-attempt Keyed/k/get completed [new_command:GetEagerState new_command:Output]
    invocation-end Keyed/k/get success
`},
	{name: "workflow", path: "Flow/w/run", body: `"a"`, want: `
ingress Flow/w/run
  invocation-start Flow/w/run
    invocation-attempt Flow/w/run completed [new_command:Call new_command:Output]
    invocation-start Traced/greet
      invocation-attempt Traced/greet completed [new_command:Output]
      invocation-end Traced/greet success
    invocation-end Flow/w/run success
`},
	{name: "unknown handler", path: "Traced/none", body: `"a"`, want: `
`},
}

func TestTrees(t *testing.T) {
	collector := newReceiver(t)
	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc})
	services := &services{}
	require.NoError(t, server.Register(t.Context(), services.serve(t), false))
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			services.failures.Add(s.failures)
			trace := fmt.Sprintf("%032x", 0xabc000+i)
			request := server.Client.Call
			if s.send {
				request = server.Client.Send
			}
			var body []byte // none, for handlers without input
			if s.body != "" {
				body = []byte(s.body)
			}
			r, err := request(t.Context(), s.path, body, headers(trace)...)
			require.NoError(t, err)
			require.Less(t, r.Status, http.StatusInternalServerError, "%s", r.Body)
			expect(t, collector, trace, s.want)
		})
	}
}

// headers are those of a request that is part of a trace.
func headers(trace string) []string {
	return []string{"traceparent", "00-" + trace + "-00000000000000aa-01"}
}

// expect waits until a trace has the given tree.
func expect(t *testing.T, collector *receiver, trace, want string) {
	t.Helper()
	got := ""
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		if got = "\n" + collector.tree(trace); got == want {
			return
		}
		select {
		case <-t.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	require.Equal(t, want, got)
}
