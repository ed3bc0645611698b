package sdk

import (
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

// restart kills the server and starts it again on the same data.
func (e *env) restart() {
	e.server.Kill()
	require.NoError(e, e.server.Restart(e.Context()))
}

// attach waits for the result of an invocation.
func (e *env) attach(id string) harness.Response {
	resp, err := e.server.Client.Attach(e.bounded(), id)
	require.NoError(e, err)
	require.Equal(e, 200, resp.Status, "%s", resp.Body)
	return resp
}

var crashCases = []testCase{
	{"a sleep survives a killed server and the step before it does not run again", func(e *env) {
		const ms = 1500
		sent := e.send(e.path("Steps", "sleep"), contract.Step{ID: e.id(), Millis: ms}, "idempotency-key", e.id("key"))
		before := e.awaitRecords(e.id(), 1)
		e.recorder.Await(e.Context(), e.id("kept"), 1, testTimeout)
		e.restart()
		var at []int64
		require.NoError(e, e.attach(sent.InvocationID).Decode(&at))
		require.GreaterOrEqual(e, at[1]-at[0], int64(ms))
		require.Equal(e, before[0], e.awaitRecords(e.id(), 2)[0])
	}},
	{"state and results survive a killed server", func(e *env) {
		var first int
		e.call(e.path("Queue", e.id(), "append"), "v", &first, "idempotency-key", e.id("key"))
		e.restart()
		var again, second int
		e.call(e.path("Queue", e.id(), "append"), "v", &again, "idempotency-key", e.id("key"))
		require.Equal(e, first, again)
		e.call(e.path("Queue", e.id(), "append"), "w", &second)
		require.Equal(e, 2, second)
		require.Equal(e, []string{"v", "w"}, e.list(e.id()))
	}},
	{"a step in flight runs again after a killed server", func(e *env) {
		sent := e.send(e.path("Steps", "once"), contract.Step{ID: e.id(), Gate: e.id()}, "idempotency-key", e.id("key"))
		e.awaitRecords(e.id(), 1)
		e.restart()
		e.recorder.Await(e.Context(), e.id(), 2, testTimeout)
		e.recorder.Open(e.id())
		e.attach(sent.InvocationID)
	}},
	{"what waits for a key survives a killed server in its order", func(e *env) {
		key := e.id()
		e.send(e.path("Queue", key, "hold"), contract.Step{ID: e.id("held"), Gate: e.id()})
		e.awaitRecords(e.id("held"), 1)
		var want []string
		for i := range 8 {
			e.send(e.path("Queue", key, "append"), strconv.Itoa(i))
			want = append(want, strconv.Itoa(i))
		}
		e.restart()
		e.recorder.Open(e.id())
		require.Eventually(e, func() bool { return len(e.list(key)) == len(want) }, testTimeout, 10*time.Millisecond)
		require.Equal(e, want, e.list(key))
	}},
	{"an invocation goes on after its service was killed", func(e *env) {
		sent := e.send(e.path("Steps", "once"), contract.Step{ID: e.id(), Gate: e.id()}, "idempotency-key", e.id("key"))
		e.awaitRecords(e.id(), 1)
		e.service.Kill()
		require.NoError(e, e.service.Restart(e.Context()))
		e.recorder.Await(e.Context(), e.id(), 2, testTimeout)
		e.recorder.Open(e.id())
		require.Equal(e, "2", string(e.attach(sent.InvocationID).Body))
	}},
}
