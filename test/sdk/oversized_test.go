package sdk

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

const (
	// resultLimit is the default limit of a message from a service.
	resultLimit = 32 << 20
	// oversized is the smallest result beyond it. A session of Node's HTTP/2 server may hold
	// less than this in memory.
	oversized = resultLimit + 1
	// inputLimit is the limit of other messages in this test, so that a handler can receive
	// what it returns.
	inputLimit = 48 << 20
	// neighborLimit is how long an invocation of another handler may take meanwhile.
	// The handlers that are retried compute for a part of it, some of them in the
	// process's only thread.
	neighborLimit = testTimeout / 2
)

// An invocation whose result is too large is retried with pauses. The server does not
// read the rest of such a result, which must not keep others from the same address.
func TestOversizedResultsConcernNoOtherInvocation(t *testing.T) {
	for _, l := range available(t) {
		t.Run(l.name, func(t *testing.T) {
			server := harness.ServerFor(t, map[string]string{
				"NETWORKING__MESSAGE_SIZE_LIMIT":      fmt.Sprint(inputLimit),
				"WORKER__INVOKER__MESSAGE_SIZE_LIMIT": fmt.Sprint(resultLimit),
			})
			service := l.start(t, harness.RecorderFor(t))
			require.NoError(t, server.Register(t.Context(), service.URI(), false))
			e := &env{T: t, lang: l.name, server: server}
			for range 3 {
				resp, err := server.Client.Send(e.bounded(), e.path("Echo", "bytes"), make([]byte, oversized), "content-type", "application/octet-stream")
				require.NoError(t, err)
				require.Equal(t, http.StatusAccepted, resp.Status, string(resp.Body))
			}
			refused := func(attempts int) func() bool {
				return func() bool { return e.refusals(attempts) == 3 }
			}
			require.Eventually(t, refused(1), testTimeout, pollInterval, "no attempt has failed")
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), neighborLimit)
				resp, err := server.Client.Call(ctx, e.path("Echo", "nothing"), nil)
				cancel()
				require.NoError(t, err)
				require.Less(t, resp.Status, 300, string(resp.Body))
			}
			require.Eventually(t, refused(2), testTimeout, pollInterval, "no further attempt has failed")
		})
	}
}

// refusals is the number of invocations that have failed that often because of the size
// of a message.
func (e *env) refusals(attempts int) int {
	resp, err := e.server.Client.Query(e.bounded(), fmt.Sprintf(
		"SELECT COUNT(*) AS n FROM sys_invocation WHERE last_failure_error_code = 'RT0003' AND retry_count > %d", attempts))
	require.NoError(e, err)
	var found struct{ Rows []struct{ N int } }
	require.NoError(e, resp.Decode(&found))
	require.Len(e, found.Rows, 1, string(resp.Body))
	return found.Rows[0].N
}
