package sdk

import (
	"strconv"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

var stepCases = []testCase{
	{"a step runs once and its result is kept", func(e *env) {
		var n int
		e.call(e.path("Steps", "once"), contract.Step{ID: e.id()}, &n)
		require.Equal(e, 1, n)
		e.awaitRecords(e.id(), 1)
	}},
	{"two hundred steps run once each, in order", func(e *env) {
		const n = 200
		var sum int
		e.call(e.path("Steps", "many"), contract.Step{ID: e.id(), N: n}, &sum)
		require.Equal(e, n*(n-1)/2, sum)
		for i, value := range e.awaitRecords(e.id(), n) {
			require.Equal(e, strconv.Itoa(i), value)
		}
	}},
	{"a failing step is retried until it succeeds", func(e *env) {
		var n int
		e.call(e.path("Steps", "retry"), contract.Step{ID: e.id(), Fail: 3}, &n)
		require.Equal(e, 4, n)
		e.awaitRecords(e.id(), 4)
	}},
	{"a step's own retry limit ends in a terminal error", func(e *env) {
		var f contract.Failure
		e.call(e.path("Steps", "exhaust"), contract.Step{ID: e.id(), N: 3, Message: "never works"}, &f)
		require.Equal(e, 500, f.Code)
		require.Contains(e, f.Message, "never works")
		e.awaitRecords(e.id(), 3)
	}},
	{"a step's terminal error is not retried and can be caught", func(e *env) {
		var f contract.Failure
		e.call(e.path("Steps", "refuse"), contract.Step{ID: e.id(), Code: 409, Message: "taken"}, &f)
		require.Equal(e, contract.Failure{Code: 409, Message: "taken"}, f)
		e.awaitRecords(e.id(), 1)
	}},
	{"a failing handler is retried and skips the steps it did", func(e *env) {
		var attempts int
		e.call(e.path("Steps", "flaky"), contract.Step{ID: e.id(), Fail: 3}, &attempts)
		require.Equal(e, 4, attempts)
		e.awaitRecords(e.id(), 4)
		e.awaitRecords(e.id("step"), 1)
	}},
	{"a terminal error is the answer, with its code", func(e *env) {
		answer := e.try(e.path("Steps", "fail"), contract.Step{Code: 418, Message: "short and stout"})
		f := e.decodeFailure(answer, 418)
		require.Equal(e, failure{418, "short and stout", "invocation"}, f)
		require.NotEmpty(e, answer.ID())
	}},
	{"a sleep takes its time and nothing runs twice around it", func(e *env) {
		const ms = 300
		var at []int64
		e.call(e.path("Steps", "sleep"), contract.Step{ID: e.id(), Millis: ms}, &at)
		require.Len(e, at, 2)
		require.GreaterOrEqual(e, at[1]-at[0], int64(ms), "the timer fired early")
		require.Less(e, at[1]-at[0], testTimeout.Milliseconds())
		e.awaitRecords(e.id(), 2)
	}},
	{"random values are the same on every attempt and differ between invocations", func(e *env) {
		var first, second contract.Random
		e.call(e.path("Steps", "random"), contract.Step{ID: e.id("a"), Fail: 2}, &first)
		e.call(e.path("Steps", "random"), contract.Step{ID: e.id("b")}, &second)
		drawn := e.awaitRecords(e.id("a"), 3)
		require.Equal(e, []string{drawn[0], drawn[0], drawn[0]}, drawn)
		require.NotEqual(e, first, second)
	}},
	{"a step's result of a megabyte is kept", func(e *env) {
		const n = 1 << 20
		var out string
		e.call(e.path("Steps", "big"), contract.Step{N: n}, &out)
		require.Len(e, out, n)
	}},
}
