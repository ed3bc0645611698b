package observability

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// read returns what a server answers at its admin port.
func read(t testing.TB, s *harness.Server, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Admin()+path, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", path, body)
	return string(body)
}

// TestHistoryKeepsTheNewestEvents lets more attempts fail than a history has events, each with a
// message of its own. The oldest are dropped, and the sequence of the first one shows how many. Their
// bytes are bounded as well, so there may be fewer than the number that a history can have.
func TestHistoryKeepsTheNewestEvents(t *testing.T) {
	const failures, most = 80, 64
	s := harness.ServerFor(t, nil)
	var attempts atomic.Int64
	quick := restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(time.Millisecond), restate.WithMaxRetryInterval(time.Millisecond), restate.WithMaxRetryAttempts(2*failures))
	require.NoError(t, s.Register(t.Context(), harness.EndpointFor(t, restate.NewService("Flaky", quick).
		Handler("run", restate.NewServiceHandler(func(restate.Context, restate.Void) (int64, error) {
			if n := attempts.Add(1); n <= failures {
				return 0, fmt.Errorf("failure %d", n)
			}
			return attempts.Load(), nil
		}))), false))
	r, err := s.Client.Call(t.Context(), "Flaky/run", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.Status, "%s", r.Body)

	var history struct {
		Events []struct {
			Type     string `json:"event_type"`
			Sequence uint32
			Content  struct {
				Message string `json:"error_message"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, s, "/invocations/"+r.ID()+"/events")), &history))
	kept := len(history.Events)
	require.LessOrEqual(t, kept, most)
	require.GreaterOrEqual(t, kept, most/4, "the journal of a completed invocation has its history")
	for i, e := range history.Events {
		require.EqualValues(t, failures-kept+i, e.Sequence)
		require.Equal(t, "TransientError", e.Type)
		require.Equal(t, fmt.Sprintf("failure %d", failures-kept+i+1), e.Content.Message)
	}
}

// TestMetricsWithoutHandlers requires that services are distinguished and their handlers are not.
func TestMetricsWithoutHandlers(t *testing.T) {
	s := harness.ServerFor(t, map[string]string{"METRICS_PER_HANDLER": "false"})
	require.NoError(t, s.Register(t.Context(), harness.EndpointFor(t, lifeServices()...), false))
	for _, call := range [][2]string{{"Life/echo", `"x"`}, {"Life/nap", `1`}} {
		r, err := s.Client.Call(t.Context(), call[0], []byte(call[1]), "content-type", "application/json")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status, "%s", r.Body)
	}
	metrics := read(t, s, "/metrics")
	require.Regexp(t, regexp.MustCompile(`(?m)^platform_invocations_completed_total\{[^}]*handler="",[^}]*result="success",service="Life"\} 2$`), metrics)
	require.NotContains(t, metrics, `handler="echo"`)
}
