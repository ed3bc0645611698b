package sizes

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestAnInvocationExceedsASmallLimit has a limit of 256 KiB per invocation. One whose input is larger
// fails with a code and is paused, and others continue.
func TestAnInvocationExceedsASmallLimit(t *testing.T) {
	server := harness.ServerFor(t, map[string]string{
		"WORKER__INVOKER__MEMORY_LIMIT": "1MiB", "WORKER__INVOKER__PER_INVOCATION_MEMORY_LIMIT": "256KiB",
	})
	small := restate.NewService("Small", restate.WithInvocationRetryPolicy(
		restate.WithInitialRetryInterval(10*time.Millisecond), restate.WithMaxRetryAttempts(2), restate.PauseOnMaxAttempts())).
		Handler("first", restate.NewServiceHandler(func(_ restate.Context, b []byte) ([]byte, error) { return b[:1], nil }, restate.WithBinary)).
		Handler("make", restate.NewServiceHandler(func(_ restate.Context, b []byte) ([]byte, error) { return make([]byte, 300*kibi), nil }, restate.WithBinary))
	require.NoError(t, server.Register(t.Context(), services(t, small), false))
	fits := func() {
		r, err := server.Client.Call(t.Context(), "Small/first", make([]byte, 200*kibi), "content-type", "application/octet-stream")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.Status, "%s", r.Body)
	}
	fits()
	for handler, size := range map[string]int{"first": 300 * kibi, "make": 1} {
		r, err := server.Client.Send(t.Context(), "Small/"+handler, make([]byte, size), "content-type", "application/octet-stream")
		require.NoError(t, err)
		var sent harness.Sent
		require.NoError(t, r.Decode(&sent))
		require.Eventually(t, func() bool {
			r, err := server.Client.Query(t.Context(), fmt.Sprintf("SELECT status, last_failure_error_code FROM sys_invocation WHERE id = '%s'", sent.InvocationID))
			return err == nil && strings.Contains(string(r.Body), `"status":"paused"`) && strings.Contains(string(r.Body), `"RT0001"`)
		}, 2*time.Minute, 50*time.Millisecond, handler)
		fits()
	}
}
