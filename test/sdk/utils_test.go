package sdk

import (
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

var utilCases = []testCase{
	{"an invocation knows its id", func(e *env) {
		var id string
		answer := e.call(e.path("Utils", "id"), nil, &id)
		require.Equal(e, answer.ID(), id)
	}},
	{"headers of a call reach the callee", func(e *env) {
		for _, lang := range e.langs {
			order := e.callTo(lang, "Echo", "", "header", "x-case")
			order.Headers = map[string]string{"x-case": "from " + e.lang}
			var out string
			e.call(e.path("Caller", "call"), order, &out)
			require.Equal(e, "from "+e.lang, out)
		}
	}},
	{"steps begun at once run once each", func(e *env) {
		const n = 40
		var sum int
		e.call(e.path("Utils", "effects"), contract.Step{ID: e.id(), N: n}, &sum)
		require.Equal(e, n, sum)
		want := make([]string, n)
		for i := range want {
			want[i] = strconv.Itoa(i)
		}
		require.ElementsMatch(e, want, e.awaitRecords(e.id(), n))
	}},
	{"sleeps begun at once pass at once", func(e *env) {
		const n, ms = 60, 1500 // one after the other they would take longer than testTimeout
		in := contract.Race{}
		for range n {
			in.Millis = append(in.Millis, ms)
		}
		begin := time.Now()
		var slept int
		e.call(e.path("Utils", "sleeps"), in, &slept)
		require.Equal(e, n, slept)
		require.GreaterOrEqual(e, time.Since(begin), ms*time.Millisecond)
	}},
	{"sleeps begun at once end by their length", func(e *env) {
		var slept int
		e.call(e.path("Utils", "sleeps"), contract.Race{Millis: []int{300, 1, 100, 1, 50, 200}}, &slept)
		require.Equal(e, 6, slept)
	}},
}
