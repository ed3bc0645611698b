package tracing

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"platform/test/harness"
)

// TestSpansOfHandlersJoinTheTree records spans in a handler with OpenTelemetry's SDK, which gets the
// trace from the request of each attempt: their parent is the span of that attempt.
func TestSpansOfHandlersJoinTheTree(t *testing.T) {
	collector := newReceiver(t)
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(collector.grpc), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })

	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc})
	handlers := &services{tracer: provider.Tracer("test")}
	handlers.failures.Store(1)
	require.NoError(t, server.Register(t.Context(), handlers.serve(t), false))
	send := append(headers(trace), "tracestate", "vendor=1")
	_, err = server.Client.Call(t.Context(), "Traced/work", nil, send...)
	require.NoError(t, err)
	expect(t, collector, trace, `
ingress Traced/work
  invocation-start Traced/work
    invocation-attempt Traced/work failed RT0007 !not yet
      work
    invocation-attempt Traced/work completed [new_command:Run:step run_ended new_command:Output]
      work
        work in a step
    invocation-end Traced/work success
`)
	for _, s := range found(collector, "work") {
		require.Equal(t, "vendor=1", s.TraceState, "handlers get the state of the trace")
	}

	// Without the caller's trace, the cluster starts one that the handler continues.
	_, err = server.Client.Call(t.Context(), "Traced/work", nil)
	require.NoError(t, err)
	var own string
	await(t, func() bool {
		collector.mu.Lock()
		defer collector.mu.Unlock()
		for _, s := range collector.spans {
			if s.Name == "ingress Traced/work" && hex.EncodeToString(s.TraceId) != trace {
				own = hex.EncodeToString(s.TraceId)
			}
		}
		return own != ""
	})
	expect(t, collector, own, `
ingress Traced/work
  invocation-start Traced/work
    invocation-attempt Traced/work completed [new_command:Run:step run_ended new_command:Output]
      work
        work in a step
    invocation-end Traced/work success
`)
}
