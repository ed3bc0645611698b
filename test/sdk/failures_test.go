package sdk

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// failAttempts fails attempts of Store/script, which are counted under the record.
func failAttempts(record string, times int) contract.Op {
	return contract.Op{Op: "retry", Key: record, Value: strconv.Itoa(times)}
}

var failureCases = []testCase{
	{"state set before a failed attempt is set once", func(e *env) {
		key := e.id()
		got := e.script(key, get("a"), set("a", "1"), failAttempts(e.id("attempts"), 2), get("a"), set("b", "2"), get("b"))
		require.Equal(e, []contract.OpResult{absent, value("1"), value("2")}, got)
		require.Equal(e, []contract.OpResult{value("1"), value("2")}, e.script(key, get("a"), get("b")))
	}},
	{"state set before a terminal error stays and the key is free", func(e *env) {
		key := e.id()
		answer := e.try(e.path("Store", key, "script"), []contract.Op{set("a", "1"), pause, {Op: "fail", Value: "on purpose"}, set("a", "2")})
		require.Equal(e, "on purpose", e.decodeFailure(answer, 422).Message)
		require.Equal(e, []contract.OpResult{value("1")}, e.script(key, get("a")))
	}},
	{"a failing key does not hold others", func(e *env) {
		stuck := e.startIdempotent(e.path("Store", e.id("stuck"), "script"), []contract.Op{failAttempts(e.id("attempts"), 1_000_000)})
		e.recorder.Await(e.Context(), e.id("attempts"), 3, testTimeout)
		e.script(e.id("free"), set("a", "1"))
		e.requireOperation(stuck, "kill")
	}},
	{"a callee's failed attempts are not seen by its caller", func(e *env) {
		var n int
		e.call(e.path("Caller", "call"), e.callTo(e.lang, "Steps", "", "flaky", contract.Step{ID: e.id(), Fail: 2}), &n)
		require.Equal(e, 3, n)
		e.awaitRecords(e.id(), 3)
		e.awaitRecords(e.id("step"), 1)
	}},
	{"unreadable input is an error of the caller", func(e *env) {
		answer, err := e.server.Client.Call(e.bounded(), e.path("Steps", "once"), []byte(`{"id":`))
		require.NoError(e, err)
		require.Equal(e, "invocation", e.decodeFailure(answer, answer.Status).Source)
		require.GreaterOrEqual(e, answer.Status, 400)
	}},
}

var exhaustTimeCases = []testCase{
	{"a step's own time limit ends in a terminal error", func(e *env) {
		begin := time.Now()
		var f contract.Failure
		e.call(e.path("Steps", "exhaustTime"), contract.Step{ID: e.id(), Millis: 1000, Message: "never works"}, &f)
		require.Equal(e, 500, f.Code)
		require.Contains(e, f.Message, "never works")
		require.Less(e, time.Since(begin), testTimeout)
		require.NotEmpty(e, e.recorder.Values(e.id())) // on a slow machine the first try alone takes that long
	}},
}

var retryDelayCases = []testCase{
	{"a step chooses when it is tried again", func(e *env) {
		const ms = 400
		var n int
		e.call(e.path("Steps", "later"), contract.Step{ID: e.id(), Fail: 2, Millis: ms}, &n)
		require.Equal(e, 3, n)
		var at [3]int64
		for i, text := range e.awaitRecords(e.id(), 3) {
			var err error
			at[i], err = strconv.ParseInt(text, 10, 64)
			require.NoError(e, err)
		}
		for i := range 2 {
			gap := at[i+1] - at[i]
			require.GreaterOrEqual(e, gap, int64(ms), "retry %d came early", i+1)
			require.Less(e, gap, int64(ms)+testTimeout.Milliseconds(), "retry %d came late", i+1)
		}
	}},
}

var metadataCases = []testCase{
	{"metadata of a terminal error is part of the answer", func(e *env) {
		want := map[string]string{"reason": "full", "größe": "✓"}
		answer := e.try(e.path("Steps", "fail"), contract.Step{Code: 409, Message: "no", Metadata: want})
		e.decodeFailure(answer, http.StatusConflict)
		var out contract.Failure
		require.NoError(e, json.Unmarshal(answer.Body, &out))
		require.Equal(e, contract.Failure{Code: 409, Message: "no", Metadata: want}, out)
	}},
	{"metadata of a terminal error reaches the caller", func(e *env) {
		want := contract.Failure{Code: 422, Message: "no", Metadata: map[string]string{"a": "1", "b": ""}}
		for _, lang := range e.languagesWith("metadata") {
			in := contract.Step{Code: want.Code, Message: want.Message, Metadata: want.Metadata}
			var f contract.Failure
			e.call(e.path("Caller", "catch"), e.callTo(lang, "Steps", "", "fail", in), &f)
			require.Equal(e, want, f)
		}
	}},
}

var retryPolicyCases = []testCase{
	{"a handler that may be killed ends after its last attempt", func(e *env) {
		answer := e.try(e.path("Killed", "work"), contract.Step{ID: e.id(), Fail: 100})
		f := e.decodeFailure(answer, answer.Status)
		require.Equal(e, "invocation", f.Source)
		require.GreaterOrEqual(e, f.Code, 400)
		e.awaitRecords(e.id(), 3)
	}},
	{"a handler succeeds on its last attempt", func(e *env) {
		var n int
		e.call(e.path("Killed", "work"), contract.Step{ID: e.id(), Fail: 2}, &n)
		require.Equal(e, 3, n)
	}},
	{"a handler that may be paused waits after its last attempt and is resumed", func(e *env) {
		id := e.startIdempotent(e.path("Paused", "work"), contract.Step{ID: e.id(), Fail: 4})
		e.awaitStatus(id, "paused")
		e.awaitRecords(e.id(), 3)
		e.requireOperation(id, "resume") // three more attempts, of which the second succeeds
		var n int
		e.result(id, &n)
		require.Equal(e, 5, n)
		e.awaitRecords(e.id(), 5)
	}},
	{"what is paused can be cancelled and killed", func(e *env) {
		for _, operation := range []string{"cancel", "kill"} {
			step := contract.Step{ID: e.id(operation), Fail: 3}
			id := e.send(e.path("Paused", "work"), step, "idempotency-key", e.id(operation)).InvocationID
			e.awaitStatus(id, "paused")
			e.requireOperation(id, operation)
			if operation == "kill" {
				e.awaitFailure(id, http.StatusConflict)
				continue
			}
			var n int
			e.result(id, &n) // the handler awaits nothing, so it does not notice
			require.Equal(e, 4, n)
		}
	}},
}

var pauseErrorCases = []testCase{
	{"a step can ask for a pause", func(e *env) {
		id := e.startIdempotent(e.path("Paused", "step"), contract.Step{ID: e.id(), Fail: 1})
		e.awaitStatus(id, "paused")
		e.awaitRecords(e.id(), 1)
		e.requireOperation(id, "resume")
		var n int
		e.result(id, &n)
		require.Equal(e, 2, n)
	}},
}
