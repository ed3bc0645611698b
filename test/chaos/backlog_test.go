package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

const (
	// backlog exceeds the default limit of concurrent invocations of a node.
	backlog = 1005
	// neighborCalls is the number of calls of another service during the backlog.
	neighborCalls = 200
	// neighborLimit bounds their latency. Those that wait for the backlog wait longer.
	neighborLimit = requestTimeout / 2
)

// TestABacklogOfOneServiceDelaysNoOther sends more invocations to one service than a node
// runs concurrently. The handlers wait in a step, so none of them can be suspended.
func TestABacklogOfOneServiceDelaysNoOther(t *testing.T) {
	env := newEnvironment(t)
	post := func(send bool, path string, in any) harness.Response {
		body, err := json.Marshal(in)
		require.NoError(t, err)
		request := env.server.Client.Call
		if send {
			request = env.server.Client.Send
		}
		resp, err := request(t.Context(), path, body)
		require.NoError(t, err)
		return resp
	}
	post(false, harness.Path("Counter", "idle", "add"), 1)

	const name = "backlog"
	var sent atomic.Int64
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() {
			for sent.Add(1) <= backlog {
				if resp := post(true, harness.Path("Waiting", "gate"), name); resp.Status != http.StatusAccepted {
					t.Errorf("send: %d %s", resp.Status, resp.Body)
				}
			}
		})
	}
	senders.Wait()
	waiting := 0
	require.Eventually(t, func() bool { // until no further handler starts
		before := waiting
		waiting = len(env.recorder.Values(name))
		return waiting > 0 && waiting == before
	}, requestTimeout, time.Second)

	var took []time.Duration
	for i := range neighborCalls {
		begin := time.Now()
		resp := post(false, harness.Path("Counter", fmt.Sprint("neighbor-", i), "add"), 1)
		took = append(took, time.Since(begin))
		require.Equal(t, http.StatusOK, resp.Status, string(resp.Body))
	}
	t.Logf("%d of %d handlers started; latency of another service: median %s, p99 %s, longest %s",
		waiting, backlog, quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1))
	require.Less(t, quantile(took, 1), neighborLimit)

	env.recorder.Open(name)
	require.GreaterOrEqual(t, len(env.recorder.Await(t.Context(), name, backlog, requestTimeout)), backlog)
}
