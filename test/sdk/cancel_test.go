package sdk

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// blocked starts a handler that waits until it is cancelled.
func (e *env) blocked(key string, in contract.Block) string {
	e.Helper()
	in.ID = key
	id := e.begin(e.path("Cancel", key, "block"), in)
	e.seen(key, 1)
	return id
}

// seen waits until n different values were recorded, each as often as there were
// attempts, and returns them.
func (e *env) seen(record string, n int) []string {
	e.Helper()
	var values []string
	require.Eventually(e, func() bool {
		values = e.recorder.Values(record)
		slices.Sort(values)
		values = slices.Compact(values)
		return len(values) >= n
	}, limit, tick, "records of %s", record)
	require.Len(e, values, n)
	return values
}

// free requires that the key of an object is free.
func (e *env) free(service, key string) {
	e.Helper()
	var pong string
	e.call(e.path(service, key, "ping"), nil, &pong)
	require.Equal(e, "pong", pong)
}

// undone requires that what was begun under the record was undone once.
func (e *env) undone(record string) {
	e.Helper()
	require.Equal(e, []string{"409"}, e.recorded(record+"-undone", 1))
}

// waits are the ways to wait that Cancel/block knows.
func (e *env) waits() []string {
	waits := []string{"sleep", "awakeable", "call", "combined", "send", "run"}
	if slices.Contains(e.offering("attach"), e.lang) {
		waits = append(waits, "attach")
	}
	return waits
}

// cancelsChild tells whether the wait has a child that is cancelled with it.
func cancelsChild(wait string) bool { return wait == "call" || wait == "combined" }

// hasChild tells whether the wait begins another invocation. The Go SDK does not
// survive a cancellation before it knows the id of what it has sent, so wait until
// that runs.
func hasChild(wait string) bool { return cancelsChild(wait) || wait == "attach" || wait == "send" }

var cancelCases = []testCase{
	{"a cancelled invocation undoes what it did and ends with 409, whatever it waits for", func(e *env) {
		for _, wait := range e.waits() {
			key := e.id(wait)
			id := e.blocked(key, contract.Block{In: wait, Child: key + "-child"})
			if hasChild(wait) {
				e.seen(key+"-child", 1)
			}
			e.operated(id, "cancel")
			e.undone(key)
			require.Equal(e, "invocation", e.refused(id, http.StatusConflict).Source, wait)
			e.free("Cancel", key)
			if cancelsChild(wait) {
				e.undone(key + "-child")
				e.free("Cancel", key+"-child")
			}
		}
	}},
	{"a handler may go on after its cancellation", func(e *env) {
		for _, wait := range e.waits() {
			key := e.id(wait)
			id := e.blocked(key, contract.Block{In: wait, Child: key + "-child", Catch: true})
			if hasChild(wait) {
				e.seen(key+"-child", 1)
			}
			e.operated(id, "cancel")
			e.undone(key)
			var f contract.Failure
			e.result(id, &f)
			require.Equal(e, http.StatusConflict, f.Code, wait)
			e.free("Cancel", key)
		}
	}},
	{"what was sent one-way is not cancelled with its sender", func(e *env) {
		key := e.id()
		id := e.blocked(key, contract.Block{In: "send", Child: key + "-child"})
		e.seen(key+"-child", 1)
		e.operated(id, "cancel")
		e.refused(id, http.StatusConflict)
		e.undone(key)
		require.Empty(e, e.recorder.Values(key+"-child-undone"))
	}},
	{"all of a tree is cancelled with its root", func(e *env) {
		key := e.id()
		id := e.grown(key, contract.Tree{Depth: 2, Width: 2}, 7)
		e.operated(id, "cancel")
		e.refused(id, http.StatusConflict)
		e.recorded(key+"-ended", 7)
		for _, node := range e.seen(key, 7) {
			e.free("Tree", node)
		}
	}},
	{"a run of a workflow is cancelled while it waits for a promise", func(e *env) {
		key := e.id()
		id := e.flow(key, "p").InvocationID
		e.recorded(key, 1)
		e.operated(id, "cancel")
		e.refused(id, http.StatusConflict)
		require.Zero(e, e.fulfil(key, contract.Completion{Promise: "p", Value: "after the end"}))
	}},
	{"what waits for its key is cancelled without having run", func(e *env) {
		key := e.id()
		first := e.blocked(key, contract.Block{In: "awakeable"})
		queued := e.send(e.path("Cancel", key, "block"), contract.Block{ID: e.id("queued"), In: "sleep"}, "idempotency-key", e.id("queued")).InvocationID
		e.operated(queued, "cancel")
		answer, err := e.server.Client.Attach(e.bounded(), queued)
		require.NoError(e, err)
		// The peer keeps no record of what was cancelled before it ran.
		require.Contains(e, []int{http.StatusConflict, http.StatusNotFound}, answer.Status, "%s", answer.Body)
		e.operated(first, "cancel")
		e.refused(first, http.StatusConflict)
		e.free("Cancel", key)
		require.Empty(e, e.recorder.Values(e.id("queued")))
	}},
	{"what is delayed is cancelled without having run", func(e *env) {
		id := e.send(e.path("Utils", "say")+"?delay=1h", contract.Say{ID: e.id()}, "idempotency-key", e.id()).InvocationID
		e.becomes(id, "scheduled")
		e.operated(id, "cancel")
		require.Eventually(e, func() bool { return e.standing(id).Status != "scheduled" }, limit, tick)
		require.Empty(e, e.recorder.Values(e.id()))
	}},
	{"a second cancellation reaches what the first one left", func(e *env) {
		key := e.id()
		id := e.blocked(key, contract.Block{In: "awakeable"})
		e.operated(id, "cancel")
		e.refused(id, http.StatusConflict)
		require.Equal(e, http.StatusConflict, e.operate(id, "cancel").Status)
		e.undone(key)
	}},
	{"only what exists is cancelled or killed", func(e *env) {
		known := e.call(e.path("Echo", "json"), contract.Message{}, nil).ID()
		unknown := known[:20] + strings.Repeat("1", len(known)-20)
		for _, operation := range []string{"cancel", "kill"} {
			require.Equal(e, http.StatusNotFound, e.operate(unknown, operation).Status)
			require.Equal(e, http.StatusBadRequest, e.operate("inv_1nonsense", operation).Status)
		}
	}},
}

var cancelByHandlerCases = []testCase{
	{"handlers of every language cancel", func(e *env) {
		for _, lang := range e.offering("cancel") {
			key := e.id(lang)
			id := e.blocked(key, contract.Block{In: "awakeable"})
			e.call(lang+"Caller/cancel", id, nil)
			e.refused(id, http.StatusConflict)
			e.undone(key)
		}
	}},
}

// grown starts a tree and waits until all of its nodes run.
func (e *env) grown(key string, in contract.Tree, nodes int) string {
	e.Helper()
	in.ID = key
	id := e.begin(e.path("Tree", key, "grow"), in)
	e.seen(key, nodes)
	return id
}

var killCases = []testCase{
	{"a killed invocation ends at once, undoes nothing and frees its key", func(e *env) {
		for _, wait := range []string{"sleep", "awakeable", "run"} {
			key := e.id(wait)
			id := e.blocked(key, contract.Block{In: wait})
			e.operated(id, "kill")
			f := e.refused(id, http.StatusConflict)
			require.Contains(e, f.Message, "killed")
			e.free("Cancel", key)
			require.Empty(e, e.recorder.Values(key+"-undone"))
		}
	}},
	{"a killed tree frees all keys", func(e *env) {
		key := e.id()
		id := e.grown(key, contract.Tree{Depth: 2, Width: 2}, 7)
		e.operated(id, "kill")
		e.refused(id, http.StatusConflict)
		for _, node := range e.seen(key, 7) {
			e.free("Tree", node)
		}
		require.Empty(e, e.recorder.Values(key+"-ended"))
	}},
	{"a step in flight does not hold up a kill", func(e *env) {
		key := e.id()
		id := e.begin(e.path("Queue", key, "hold"), contract.Step{ID: e.id("held"), Gate: e.id("gate")})
		e.recorded(e.id("held"), 1)
		e.operated(id, "kill")
		e.refused(id, http.StatusConflict)
		var n int
		e.call(e.path("Queue", key, "append"), "v", &n)
		require.Equal(e, 1, n)
		e.recorder.Open(e.id("gate"))
	}},
	{"the caller of a killed invocation gets its error", func(e *env) {
		key := e.id()
		id := e.blocked(key, contract.Block{In: "call", Child: key + "-child"})
		e.seen(key+"-child", 1)
		e.operated(id, "kill")
		e.refused(id, http.StatusConflict)
		e.free("Cancel", key+"-child")
	}},
	{"what waits for a key is killed without having run", func(e *env) {
		key := e.id()
		first := e.blocked(key, contract.Block{In: "awakeable"})
		queued := e.send(e.path("Cancel", key, "block"), contract.Block{ID: e.id("queued"), In: "sleep"}, "idempotency-key", e.id("queued")).InvocationID
		e.operated(queued, "kill")
		e.operated(first, "kill")
		e.free("Cancel", key)
		require.Empty(e, e.recorder.Values(e.id("queued")))
		require.Equal(e, http.StatusConflict, e.operate(first, "kill").Status)
	}},
}
