package sdk

import (
	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// output returns the current result of an invocation through a handler.
func (e *env) output(id string) (out contract.Outcome) {
	e.Helper()
	e.call(e.path("Caller", "output"), id, &out)
	return out
}

var outputCases = []testCase{
	{"a handler looks for a result without waiting for it", func(e *env) {
		for _, lang := range e.langs {
			gate := e.id(lang)
			id := e.startIdempotent(lang+"Utils/say", contract.Say{ID: gate, Gate: gate, Value: "done"})
			e.awaitRecords(gate, 1)
			require.Equal(e, contract.Outcome{}, e.output(id), "it has none yet")
			e.recorder.Open(gate)
			var said string
			e.result(id, &said)
			require.Equal(e, contract.Outcome{Value: "done", Index: 1}, e.output(id))
		}
	}},
	{"a handler looks for the result of what failed", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{Code: 418, Message: "teapot"})
		e.awaitFailure(id, 418)
		require.Equal(e, contract.Outcome{Code: 418, Message: "teapot", Index: 1}, e.output(id))
	}},
	{"a handler looks for the result of what is not there", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{Value: "gone"})
		var said string
		e.result(id, &said)
		e.requireOperation(id, "purge")
		require.Equal(e, 404, e.output(id).Code)
	}},
}
