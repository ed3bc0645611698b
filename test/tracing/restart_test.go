package tracing

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestARestartContinuesTheTrace kills the server while a handler that called another one and that
// one are both open, and starts it again: their spans form one tree.
func TestARestartContinuesTheTrace(t *testing.T) {
	collector := newReceiver(t)
	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc})
	handlers := &services{held: make(chan struct{})}
	require.NoError(t, server.Register(t.Context(), handlers.serve(t), false))
	r, err := server.Client.Send(t.Context(), "Traced/outer", []byte(`"a"`), headers(trace)...)
	require.NoError(t, err)
	require.Less(t, r.Status, 300, "%s", r.Body)
	await(t, func() bool {
		return len(found(collector, "ingress")) == 1 && len(found(collector, "invocation-start")) == 2
	})
	awaitCommand(t, server, "Run")

	server.Kill()
	close(handlers.held) // attempts of the killed process end without a result that counts
	server.Client.Close()
	require.NoError(t, server.Restart(t.Context()))
	expect(t, collector, trace, `
ingress Traced/outer
  invocation-start Traced/outer
    invocation-start Traced/hold
      invocation-attempt Traced/hold completed [run_ended new_command:Output]
      invocation-end Traced/hold success
    invocation-attempt Traced/outer completed [new_command:Output]
    invocation-end Traced/outer success
`)
	starts := slices.DeleteFunc(collector.names(), func(name string) bool { return !strings.HasPrefix(name, "invocation-start") })
	require.Len(t, starts, 2, "each is recorded once, although its attempts are repeated")
}
