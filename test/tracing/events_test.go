package tracing

import (
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"platform/test/harness"
)

const trace = "0af7651916cd43dd8448eb211c80319c"

// await waits for a condition.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 20*time.Millisecond)
}

// awaitCommand waits until a journal, or that of the given invocation, has a command of a type.
func awaitCommand(t *testing.T, server *harness.Server, kind string, invocation ...string) {
	t.Helper()
	query := "SELECT count(*) AS n FROM sys_journal WHERE entry_type = 'Command: " + kind + "'"
	for _, id := range invocation {
		query += " AND id = '" + id + "'"
	}
	await(t, func() bool {
		r, err := server.Client.Query(t.Context(), query)
		return err == nil && strings.Contains(string(r.Body), `"n":1`)
	})
}

// found returns the spans of the trace whose name begins with a prefix.
func found(c *receiver, prefix string) []*spans.Span {
	var all []*spans.Span
	for _, s := range c.trace(trace) {
		if strings.HasPrefix(s.Name, prefix) {
			all = append(all, s)
		}
	}
	return all
}

// TestASuspensionEndsAnAttempt has one attempt before and one after the suspension.
func TestASuspensionEndsAnAttempt(t *testing.T) {
	collector := newReceiver(t)
	server := harness.ServerFor(t, map[string]string{
		"TRACING_ENDPOINT": "otlp+http://" + collector.http, "WORKER__INVOKER__INACTIVITY_TIMEOUT": "10ms",
		"TRACING_HEADERS": `{ "x-team" = "payments" }`,
	})
	require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
	r, err := server.Client.Call(t.Context(), "Traced/nap", []byte(`2000`), headers(trace)...)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.Status)
	expect(t, collector, trace, `
ingress Traced/nap
  invocation-start Traced/nap
    invocation-attempt Traced/nap suspended [new_command:Sleep suspended]
    invocation-attempt Traced/nap completed [new_command:Output]
    invocation-end Traced/nap success
`)
	collector.mu.Lock()
	defer collector.mu.Unlock()
	require.Equal(t, []string{"payments"}, collector.headers["x-team"])
}

// TestKillAndCancel end an invocation whose attempt is open.
func TestKillAndCancel(t *testing.T) {
	collector := newReceiver(t)
	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc})
	require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
	for verb, want := range map[string]string{
		"kill": `
ingress Traced/nap
  invocation-start Traced/nap
    invocation-attempt Traced/nap abandoned [new_command:Sleep]
    invocation-end Traced/nap failure 409 !killed
`, "cancel": `
ingress Traced/nap
  invocation-start Traced/nap
    invocation-attempt Traced/nap completed [new_command:Sleep new_command:Output]
    invocation-end Traced/nap failure 409 !Cancelled
`} {
		id := strings.Repeat(hex.EncodeToString([]byte(verb[:4])), 4)
		r, err := server.Client.Send(t.Context(), "Traced/nap", []byte(`600000`), headers(id)...)
		require.NoError(t, err)
		var sent harness.Sent
		require.NoError(t, r.Decode(&sent))
		awaitCommand(t, server, "Sleep", sent.InvocationID)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.Admin()+"/invocations/"+sent.InvocationID+"/"+verb, nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_ = answer.Body.Close()
		expect(t, collector, id, want)
	}
}

// TestFailoverContinuesTheTrace kills the node that executes an invocation: another one
// finishes the trace.
func TestFailoverContinuesTheTrace(t *testing.T) {
	collector := newReceiver(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 3, Env: map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc}})
	require.NoError(t, c.AwaitReplicated(t.Context(), time.Minute))
	require.NoError(t, c.Nodes[0].Register(t.Context(), (&services{}).serve(t), false))
	client := c.Nodes[0].Client
	r, err := client.Send(t.Context(), "Traced/nap", []byte(`6000`), headers(trace)...)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, r.Status, "%s", r.Body)
	await(t, func() bool {
		return len(found(collector, "invocation-start")) == 1 && len(found(collector, "ingress")) == 1
	})
	awaitCommand(t, c.Nodes[0], "Sleep")
	first := collector.instance(found(collector, "invocation-start")[0])
	for _, n := range c.Nodes {
		if strings.HasSuffix(first, "/"+n.Name()) {
			n.Kill()
		}
	}
	await(t, func() bool {
		attempts := slices.DeleteFunc(found(collector, "invocation-attempt"), func(s *spans.Span) bool {
			return attribute(s, "platform.attempt.outcome") == "abandoned" // by a leader that was elected and lost this again
		})
		return len(attempts) == 1 && line(attempts[0]) == "invocation-attempt Traced/nap completed [new_command:Output]" &&
			len(found(collector, "invocation-end")) == 1
	})
	var tree []string
	for line := range strings.Lines(collector.tree(trace)) {
		if !strings.Contains(line, " abandoned") {
			tree = append(tree, line)
		}
	}
	require.Equal(t, []string{
		"ingress Traced/nap\n", "  invocation-start Traced/nap\n",
		"    invocation-attempt Traced/nap completed [new_command:Output]\n", "    invocation-end Traced/nap success\n",
	}, tree)
	end := found(collector, "invocation-end")[0]
	require.NotEqual(t, first, collector.instance(end))
	require.Greater(t, end.EndTimeUnixNano-end.StartTimeUnixNano, uint64(5*time.Second))
}

// TestFailuresOfOtherTracesAreKept records nothing of a trace that is not sampled, except
// what failed.
func TestFailuresOfOtherTracesAreKept(t *testing.T) {
	collector := newReceiver(t)
	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "http://" + collector.grpc, "TRACING_SAMPLING_RATIO": "0"})
	require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
	for _, handler := range []string{"greet", "refuse"} {
		_, err := server.Client.Call(t.Context(), "Traced/"+handler, []byte(`"x"`), "content-type", "application/json",
			"traceparent", "00-"+trace+"-00000000000000aa-00")
		require.NoError(t, err)
	}
	expect(t, collector, trace, `
ingress Traced/refuse !the invocation failed
  invocation-start Traced/refuse
    invocation-end Traced/refuse failure 409 !x
`)
	_, err := server.Client.Call(t.Context(), "Traced/refuse", []byte(`"y"`), "content-type", "application/json")
	require.NoError(t, err)
	await(t, func() bool {
		collector.mu.Lock()
		defer collector.mu.Unlock()
		return len(collector.spans) == 6
	})
}

// TestACollectorThatHangsDelaysNothing accepts connections and never responds.
func TestACollectorThatHangsDelaysNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	server := harness.ServerFor(t, map[string]string{"TRACING_ENDPOINT": "otlp+http://" + ln.Addr().String()})
	require.NoError(t, server.Register(t.Context(), (&services{}).serve(t), false))
	for range 3000 { // more spans than the queue holds
		r, err := server.Client.Call(t.Context(), "Traced/greet", []byte(`"x"`), "content-type", "application/json")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status)
	}
	require.NoError(t, server.Stop())
}
