package sdk

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

const (
	// attemptSlots is the limit of open attempts in this test.
	attemptSlots = 20
	// silentWaiters is the number of handlers that wait without having sent a command.
	silentWaiters = 300
)

// Handlers that wait for a signal do not announce it before protocol 7. They must not keep
// their attempts open while others need the slots, although the inactivity timeout is far
// longer than this test.
func TestWaitingHandlersReleaseTheirSlots(t *testing.T) {
	for _, l := range available(t) {
		if !l.hasFeature("signals") || l.name == "Rust" { // whose service is built beforehand
			continue
		}
		for _, v7 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/v7=%t", l.name, v7), func(t *testing.T) { waitersReleaseSlots(t, l, v7) })
		}
	}
}

func waitersReleaseSlots(t *testing.T, l language, v7 bool) {
	server := harness.ServerFor(t, map[string]string{
		"WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT": strconv.Itoa(attemptSlots),
		"WORKER__INVOKER__INACTIVITY_TIMEOUT":           "1h",
		protocol7:                                       strconv.FormatBool(v7),
	})
	recorder := harness.RecorderFor(t)
	require.NoError(t, server.Register(t.Context(), l.start(t, recorder).URI(), false))
	e := &env{T: t, lang: l.name, server: server, recorder: recorder}

	ids := make([]string, silentWaiters)
	for i := range ids {
		ids[i] = e.send(e.path("Signals", "await"), contract.Wait{Names: []string{"go"}}, "idempotency-key", strconv.Itoa(i)).InvocationID
	}
	require.Eventually(t, func() bool {
		return e.suspended() >= silentWaiters-attemptSlots
	}, 4*testTimeout, pollInterval, "all but those that hold the slots must have been suspended")
	e.call(e.path("Echo", "nothing"), nil, nil)

	var g sync.WaitGroup
	for _, id := range ids {
		path := server.Target.Prefix + "/invocation/" + id + "/signal/go/resolve"
		resp, err := server.Client.Post(e.bounded(), path, []byte(`"on"`))
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, resp.Status, string(resp.Body))
	}
	for _, id := range ids {
		g.Go(func() {
			var out []contract.Outcome
			resp, err := server.Client.Attach(e.bounded(), id)
			if err == nil {
				err = resp.Decode(&out)
			}
			if err != nil || len(out) != 1 || out[0].Value != "on" {
				t.Errorf("%s: %v, %v", id, err, out)
			}
		})
	}
	g.Wait()
}

// suspended returns the number of suspended invocations.
func (e *env) suspended() int {
	resp, err := e.server.Client.Query(e.bounded(), "SELECT COUNT(*) AS n FROM sys_invocation WHERE status = 'suspended'")
	require.NoError(e, err)
	var found struct{ Rows []struct{ N int } }
	require.NoError(e, resp.Decode(&found))
	require.Len(e, found.Rows, 1, string(resp.Body))
	return found.Rows[0].N
}
