package sdk

import (
	"net/http"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// drifting starts a handler that does something else from its second attempt on.
func (e *env) drifting(service, first, second string, heal int) (id, record string) {
	e.Helper()
	record = e.id(first, second)
	id = e.startIdempotent(e.path(service, record, "run"), contract.Drift{ID: record, First: first, Second: second, Heal: heal})
	return id, record
}

var driftCases = []testCase{
	{"an attempt that does something else is retried until the handler is itself again", func(e *env) {
		const heal = 5
		for _, d := range [][2]string{{"sleep", "run"}, {"run", "other"}, {"call", "sleep"}, {"set", "get"}, {"get", "call"}} {
			id, record := e.drifting("Drift", d[0], d[1], heal)
			var n int
			e.result(id, &n)
			require.GreaterOrEqual(e, n, heal, "%v", d)
			require.GreaterOrEqual(e, len(e.recorder.Values(record)), heal)
		}
	}},
	{"an operator sees that the handler did something else", func(e *env) {
		id, record := e.drifting("Drift", "sleep", "run", 1_000_000)
		e.recorder.Await(e.Context(), record, 3, testTimeout)
		require.Eventually(e, func() bool { return e.statusOf(id).LastFailureErrorCode == "RT0016" }, testTimeout, pollInterval)
		e.requireOperation(id, "kill")
		e.awaitFailure(id, http.StatusConflict)
	}},
}

var mismatchCases = []testCase{
	{"a handler may ask to fail when it did something else", func(e *env) {
		id, _ := e.drifting("DriftFailed", "sleep", "run", 5)
		require.Equal(e, "invocation", e.awaitFailure(id, 570).Source)
	}},
	{"a handler may ask to be paused when it did something else", func(e *env) {
		id, record := e.drifting("DriftPaused", "sleep", "run", 3)
		e.awaitStatus(id, "paused")
		attempts := len(e.recorder.Values(record))
		require.Equal(e, 2, attempts)
		e.requireOperation(id, "resume")
		var n int
		e.result(id, &n)
		require.Equal(e, 3, n)
	}},
}
