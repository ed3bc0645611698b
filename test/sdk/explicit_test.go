package sdk

import (
	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// startExplicit starts a handler that handles cancellation explicitly.
func (e *env) startExplicit(key string, in contract.Block) string {
	e.Helper()
	in.ID = key
	id := e.startIdempotent(e.path("Explicit", key, "block"), in)
	e.awaitDistinct(key, 1)
	return id
}

// requireCancelled requires that the handler observed the cancellation and completed.
func (e *env) requireCancelled(id string) {
	e.Helper()
	var out string
	e.result(id, &out)
	require.Equal(e, "cancelled", out)
}

var explicitCases = []testCase{
	{"a cancellation is what the handler waits for", func(e *env) {
		key := e.id()
		id := e.startExplicit(key, contract.Block{In: "sleep"})
		e.requireOperation(id, "cancel")
		e.requireCancelled(id)
		e.awaitRecords(key+"-undone", 1)
	}},
	{"a cancellation waits until the handler asks for it", func(e *env) {
		key := e.id()
		id := e.startExplicit(key, contract.Block{In: "awakeable"})
		awakeable := e.awaitRecords(key+"-awakeable", 1)[0]
		e.requireOperation(id, "cancel")
		require.Empty(e, e.recorder.Values(key+"-undone"))
		e.resolve(awakeable, "x")
		e.requireCancelled(id)
		e.awaitRecords(key+"-undone", 1)
	}},
	{"children are cancelled only if the handler says so", func(e *env) {
		key := e.id()
		id := e.startExplicit(key, contract.Block{In: "call", Child: key + "-child"})
		e.awaitDistinct(key+"-child", 1)
		e.requireOperation(id, "cancel")
		e.awaitRecords(key+"-undone", 1)
		require.Empty(e, e.recorder.Values(key+"-child-undone"))
		e.requireOperation(id, "cancel")
		e.requireCancelled(id)
		require.Empty(e, e.recorder.Values(key+"-child-undone"))
	}},
	{"the handler cancels its children", func(e *env) {
		key := e.id()
		id := e.startExplicit(key, contract.Block{In: "call", Child: key + "-child", Catch: true})
		e.awaitDistinct(key+"-child", 1)
		e.requireOperation(id, "cancel")
		e.requireCompensated(key + "-child")
		e.requireCancelled(id)
	}},
}
