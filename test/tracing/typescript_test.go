package tracing

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestSpansOfTypeScriptHandlersJoinTheTree runs handlers that the hooks of the published TypeScript SDK
// instrument: each attempt has a span of its handler, with those of its steps below it.
func TestSpansOfTypeScriptHandlersJoinTheTree(t *testing.T) {
	const dir = "../sdk/services/ts"
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: handlers in TypeScript need Node.js")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules/@restatedev/restate-sdk-opentelemetry")); err != nil {
		t.Skip("SKIPPED: the TypeScript SDK is not installed; run `make ts-deps`")
	}
	collector := newReceiver(t)
	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc})
	service := harness.ServiceFor(t, harness.ServiceOptions{Name: "typescript", Command: []string{node, "src/traced.js"}, WorkDir: dir,
		Env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + collector.http}})
	require.NoError(t, server.Register(t.Context(), service.URI(), false))

	r, err := server.Client.Call(t.Context(), "Instrumented/work", nil, append(headers(trace), "tracestate", "vendor=1")...)
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(r.Body))
	expect(t, collector, trace, `
ingress Instrumented/work
  invocation-start Instrumented/work
    invocation-attempt Instrumented/work failed RT0007 [new_command:Run:step run_ended] !not yet
      attempt Instrumented/work [exception] !not yet
        run (step)
          work in a step
    invocation-attempt Instrumented/work completed [new_command:Call new_command:Output]
      attempt Instrumented/work
    invocation-start Instrumented/nap
      invocation-attempt Instrumented/nap suspended [new_command:Sleep suspended]
        attempt Instrumented/nap
      invocation-attempt Instrumented/nap completed [new_command:Output]
        attempt Instrumented/nap
          awake
      invocation-end Instrumented/nap success
    invocation-end Instrumented/work success
`)
	for _, s := range found(collector, "work in a step") {
		require.Equal(t, "vendor=1", s.TraceState, "handlers get the state of the trace")
	}
}
