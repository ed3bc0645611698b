package sdk

import (
	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// explicit starts a handler that is cancelled only when it asks for that.
func (e *env) explicit(key string, in contract.Block) string {
	e.Helper()
	in.ID = key
	id := e.begin(e.path("Explicit", key, "block"), in)
	e.seen(key, 1)
	return id
}

// cancelled requires that the handler found out and ended as it liked.
func (e *env) cancelled(id string) {
	e.Helper()
	var out string
	e.result(id, &out)
	require.Equal(e, "cancelled", out)
}

var explicitCases = []testCase{
	{"a cancellation is what the handler waits for", func(e *env) {
		key := e.id()
		id := e.explicit(key, contract.Block{In: "sleep"})
		e.operated(id, "cancel")
		e.cancelled(id)
		e.recorded(key+"-undone", 1)
	}},
	{"a cancellation waits until the handler asks for it", func(e *env) {
		key := e.id()
		id := e.explicit(key, contract.Block{In: "awakeable"})
		awakeable := e.recorded(key+"-awakeable", 1)[0]
		e.operated(id, "cancel")
		require.Empty(e, e.recorder.Values(key+"-undone"))
		e.resolve(awakeable, "x")
		e.cancelled(id)
		e.recorded(key+"-undone", 1)
	}},
	{"children are cancelled only if the handler says so", func(e *env) {
		key := e.id()
		id := e.explicit(key, contract.Block{In: "call", Child: key + "-child"})
		e.seen(key+"-child", 1)
		e.operated(id, "cancel")
		e.recorded(key+"-undone", 1)
		require.Empty(e, e.recorder.Values(key+"-child-undone"))
		e.operated(id, "cancel")
		e.cancelled(id)
		require.Empty(e, e.recorder.Values(key+"-child-undone"))
	}},
	{"the handler cancels its children", func(e *env) {
		key := e.id()
		id := e.explicit(key, contract.Block{In: "call", Child: key + "-child", Catch: true})
		e.seen(key+"-child", 1)
		e.operated(id, "cancel")
		e.undone(key + "-child")
		e.cancelled(id)
	}},
}
