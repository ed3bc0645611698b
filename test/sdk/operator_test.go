package sdk

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// restarted restarts a completed invocation as a new one and returns its id.
func (e *env) restarted(id, query string) string {
	e.Helper()
	resp := e.requireOperation(id, "restart-as-new"+query)
	var out struct {
		ID string `json:"new_invocation_id"`
	}
	require.NoError(e, json.Unmarshal(resp.Body, &out))
	require.NotEqual(e, id, out.ID)
	return out.ID
}

var operatorCases = []testCase{
	{"a paused invocation does nothing until it is resumed", func(e *env) {
		id := e.startIdempotent(e.path("Steps", "flaky"), contract.Step{ID: e.id(), Fail: 1_000_000})
		e.recorder.Await(e.Context(), e.id(), 2, testTimeout)
		e.requireOperation(id, "pause")
		e.awaitStatus(id, "paused")
		before := len(e.recorder.Values(e.id()))
		require.Equal(e, http.StatusOK, e.operate(id, "pause").Status, "it is paused already")
		require.Equal(e, before, len(e.recorder.Values(e.id())))
		e.requireOperation(id, "resume")
		e.recorder.Await(e.Context(), e.id(), before+1, testTimeout)
		e.requireOperation(id, "kill")
		e.awaitFailure(id, http.StatusConflict)
		e.awaitRecords(e.id("step"), 1)
	}},
	{"a pause lets the step under way end, which is not executed again", func(e *env) {
		id := e.startIdempotent(e.path("Steps", "once"), contract.Step{ID: e.id(), Gate: e.id()})
		e.awaitRecords(e.id(), 1)
		require.Equal(e, http.StatusAccepted, e.operate(id, "pause").Status)
		e.recorder.Open(e.id())
		e.awaitStatus(id, "paused")
		e.requireOperation(id, "resume")
		require.Equal(e, "1", string(e.attach(id).Body), "of the first execution")
		e.awaitRecords(e.id(), 1)
	}},
	{"what has ended is not paused, resumed or purged twice", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{Value: "v"})
		e.attach(id)
		require.Equal(e, http.StatusConflict, e.operate(id, "pause").Status)
		require.Equal(e, http.StatusConflict, e.operate(id, "resume").Status)
		e.requireOperation(id, "purge")
		require.Equal(e, http.StatusNotFound, e.operate(id, "purge").Status)
	}},
	{"what runs is not purged", func(e *env) {
		id := e.startBlocked(e.id(), contract.Block{In: "awakeable"})
		for _, operation := range []string{"purge", "purge-journal", "restart-as-new"} {
			require.Equal(e, http.StatusConflict, e.operate(id, operation).Status, operation)
		}
		e.requireOperation(id, "kill")
	}},
	{"a purged result is forgotten and its key runs again", func(e *env) {
		step := contract.Step{ID: e.id()}
		first := e.call(e.path("Steps", "once"), step, nil, "idempotency-key", e.id())
		e.requireOperation(first.ID(), "purge")
		answer, err := e.server.Client.Output(e.bounded(), first.ID())
		require.NoError(e, err)
		e.decodeFailure(answer, http.StatusNotFound)
		second := e.call(e.path("Steps", "once"), step, nil, "idempotency-key", e.id())
		require.Equal(e, first.ID(), second.ID())
		require.Equal(e, "2", string(second.Body))
	}},
	{"a purged workflow runs again, without state and promises", func(e *env) {
		key := e.id()
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "first"}))
		id := e.startFlow(key, "p").InvocationID
		e.attach(id)
		e.requireOperation(id, "purge")
		require.Equal(e, contract.Outcome{}, e.peek(key, "p"))
		require.Equal(e, absent, e.text(key))
		require.Equal(e, "Accepted", e.startFlow(key, "p").Status)
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "second"}))
		var out []string
		e.result(id, &out)
		require.Equal(e, []string{"second"}, out)
	}},
	{"without its journal a result is still there", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{Value: "v"})
		e.attach(id)
		e.requireOperation(id, "purge-journal")
		require.Equal(e, `"v"`, string(e.attach(id).Body))
		require.Equal(e, http.StatusGone, e.operate(id, "restart-as-new").Status)
	}},
	{"an ended invocation is started again as a new one", func(e *env) {
		id := e.startIdempotent(e.path("Steps", "once"), contract.Step{ID: e.id()})
		require.Equal(e, "1", string(e.attach(id).Body))
		again := e.restarted(id, "")
		require.Equal(e, "2", string(e.attach(again).Body))
		require.Equal(e, "1", string(e.attach(id).Body))
	}},
	{"a workflow is not started again as a new one", func(e *env) {
		key := e.id()
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "v"}))
		id := e.startFlow(key, "p").InvocationID
		e.attach(id)
		require.Equal(e, http.StatusUnprocessableEntity, e.operate(id, "restart-as-new").Status)
	}},
	{"what is delayed is too early for a resume or a restart", func(e *env) {
		id := e.send(e.path("Utils", "say")+"?delay=1h", contract.Say{}, "idempotency-key", e.id()).InvocationID
		e.awaitStatus(id, "scheduled")
		require.Equal(e, http.StatusTooEarly, e.operate(id, "resume").Status)
		refused := e.operate(id, "restart-as-new")
		require.Equal(e, http.StatusTooEarly, refused.Status)
		require.Contains(e, string(refused.Body), "it is scheduled")
		require.Equal(e, http.StatusConflict, e.operate(id, "pause").Status)
		e.requireOperation(id, "kill")
	}},
	{"the server speaks the protocol that was agreed", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{Value: "v"})
		e.attach(id)
		require.Equal(e, e.protocol(), e.statusOf(id).PinnedProtocolVersion)
	}},
}

// prefixCases require a protocol whose random seed can be kept.
var prefixCases = []testCase{
	{"an invocation starts again from the middle of its journal", func(e *env) {
		step := contract.Step{ID: e.id(), N: 3}
		id := e.startIdempotent(e.path("Steps", "many"), step)
		require.Equal(e, "3", string(e.attach(id).Body))
		again := e.restarted(id, "?from=2") // input, first step and its result
		require.Equal(e, "3", string(e.attach(again).Body))
		require.Equal(e, []string{"0", "1", "2", "1", "2"}, e.awaitRecords(e.id(), 5))
		require.Equal(e, http.StatusBadRequest, e.operate(id, "restart-as-new?from=99").Status)
	}},
}

// protocol is the version that the server and this language negotiate.
func (e *env) protocol() int {
	i := slices.IndexFunc(e.suite.langs, func(l language) bool { return l.name == e.lang })
	return e.suite.langs[i].protocolVersion(e.suite.variation)
}
