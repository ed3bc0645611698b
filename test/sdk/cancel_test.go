package sdk

import (
	"net/http"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// startBlocked starts a handler that waits until it is cancelled.
func (e *env) startBlocked(key string, in contract.Block) string {
	e.Helper()
	in.ID = key
	id := e.startIdempotent(e.path("Cancel", key, "block"), in)
	e.awaitDistinct(key, 1)
	return id
}

// awaitDistinct waits until n distinct values were recorded, in any number of attempts, and
// returns them.
func (e *env) awaitDistinct(record string, n int) []string {
	e.Helper()
	var values []string
	require.Eventually(e, func() bool {
		values = e.recorder.Values(record)
		slices.Sort(values)
		values = slices.Compact(values)
		return len(values) >= n
	}, testTimeout, pollInterval, "records of %s", record)
	require.Len(e, values, n)
	return values
}

// requireUnlocked requires that the key of an object is unlocked.
func (e *env) requireUnlocked(service, key string) {
	e.Helper()
	var pong string
	e.call(e.path(service, key, "ping"), nil, &pong)
	require.Equal(e, "pong", pong)
}

// requireCompensated requires that the work of the record was compensated once.
func (e *env) requireCompensated(record string) {
	e.Helper()
	require.Equal(e, []string{"409"}, e.awaitRecords(record+"-undone", 1))
}

// requireCompensatedAfter requires that the work of the record was compensated once, after a
// wait of a kind. If the handler has waited for a step that keeps failing, its compensation
// may be executed again: the cancel may arrive while that step is executed, which then fails
// while the step "undo" is executed. A failed step fails the attempt as a whole, and a step
// whose result is not stored by then is executed again.
func (e *env) requireCompensatedAfter(wait, record string) {
	e.Helper()
	if wait == "run" {
		require.Equal(e, []string{"409"}, e.awaitDistinct(record+"-undone", 1))
		return
	}
	e.requireCompensated(record)
}

// waitKinds are the kinds of waits that Cancel/block supports.
func (e *env) waitKinds() []string {
	waits := []string{"sleep", "awakeable", "call", "combined", "send", "run"}
	if slices.Contains(e.languagesWith("attach"), e.lang) {
		waits = append(waits, "attach")
	}
	return waits
}

// cancelsChild reports whether the wait has a child that is cancelled with it.
func cancelsChild(wait string) bool { return wait == "call" || wait == "combined" }

// hasChild reports whether the wait starts another invocation. The Go SDK fails if it is
// cancelled before it knows the id of a sent invocation, so wait until that runs.
func hasChild(wait string) bool { return cancelsChild(wait) || wait == "attach" || wait == "send" }

var cancelCases = []testCase{
	{"a cancelled invocation compensates and ends with 409 in every kind of wait", func(e *env) {
		for _, wait := range e.waitKinds() {
			key := e.id(wait)
			id := e.startBlocked(key, contract.Block{In: wait, Child: key + "-child"})
			if hasChild(wait) {
				e.awaitDistinct(key+"-child", 1)
			}
			e.requireOperation(id, "cancel")
			e.requireCompensatedAfter(wait, key)
			require.Equal(e, "invocation", e.awaitFailure(id, http.StatusConflict).Source, wait)
			e.requireUnlocked("Cancel", key)
			if cancelsChild(wait) {
				e.requireCompensated(key + "-child")
				e.requireUnlocked("Cancel", key+"-child")
			}
		}
	}},
	{"a handler may continue after its cancellation", func(e *env) {
		for _, wait := range e.waitKinds() {
			key := e.id(wait)
			id := e.startBlocked(key, contract.Block{In: wait, Child: key + "-child", Catch: true})
			if hasChild(wait) {
				e.awaitDistinct(key+"-child", 1)
			}
			e.requireOperation(id, "cancel")
			e.requireCompensatedAfter(wait, key)
			var f contract.Failure
			e.result(id, &f)
			require.Equal(e, http.StatusConflict, f.Code, wait)
			e.requireUnlocked("Cancel", key)
		}
	}},
	{"a one-way call is not cancelled with its caller", func(e *env) {
		key := e.id()
		id := e.startBlocked(key, contract.Block{In: "send", Child: key + "-child"})
		e.awaitDistinct(key+"-child", 1)
		e.requireOperation(id, "cancel")
		e.awaitFailure(id, http.StatusConflict)
		e.requireCompensated(key)
		require.Empty(e, e.recorder.Values(key+"-child-undone"))
	}},
	{"a whole tree is cancelled with its root", func(e *env) {
		key := e.id()
		id := e.startTree(key, contract.Tree{Depth: 2, Width: 2}, 7)
		e.requireOperation(id, "cancel")
		e.awaitFailure(id, http.StatusConflict)
		e.awaitRecords(key+"-ended", 7)
		for _, node := range e.awaitDistinct(key, 7) {
			e.requireUnlocked("Tree", node)
		}
	}},
	{"a run of a workflow is cancelled while it waits for a promise", func(e *env) {
		key := e.id()
		id := e.startFlow(key, "p").InvocationID
		e.awaitRecords(key, 1)
		e.requireOperation(id, "cancel")
		e.awaitFailure(id, http.StatusConflict)
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "after the end"}))
	}},
	{"an invocation that waits for its key is cancelled without running", func(e *env) {
		key := e.id()
		first := e.startBlocked(key, contract.Block{In: "awakeable"})
		queued := e.send(e.path("Cancel", key, "block"), contract.Block{ID: e.id("queued"), In: "sleep"}, "idempotency-key", e.id("queued")).InvocationID
		e.requireOperation(queued, "cancel")
		answer, err := e.server.Client.Attach(e.bounded(), queued)
		require.NoError(e, err)
		// The peer keeps no record of invocations cancelled before they ran.
		require.Contains(e, []int{http.StatusConflict, http.StatusNotFound}, answer.Status, "%s", answer.Body)
		e.requireOperation(first, "cancel")
		e.awaitFailure(first, http.StatusConflict)
		e.requireUnlocked("Cancel", key)
		require.Empty(e, e.recorder.Values(e.id("queued")))
	}},
	{"a scheduled invocation is cancelled without running", func(e *env) {
		id := e.send(e.path("Utils", "say")+"?delay=1h", contract.Say{ID: e.id()}, "idempotency-key", e.id()).InvocationID
		e.awaitStatus(id, "scheduled")
		e.requireOperation(id, "cancel")
		require.Eventually(e, func() bool { return e.statusOf(id).Status != "scheduled" }, testTimeout, pollInterval)
		require.Empty(e, e.recorder.Values(e.id()))
	}},
	{"a second cancellation has no effect", func(e *env) {
		key := e.id()
		id := e.startBlocked(key, contract.Block{In: "awakeable"})
		e.requireOperation(id, "cancel")
		e.awaitFailure(id, http.StatusConflict)
		require.Equal(e, http.StatusConflict, e.operate(id, "cancel").Status)
		e.requireCompensated(key)
	}},
	{"only existing invocations are cancelled or killed", func(e *env) {
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
		for _, lang := range e.languagesWith("cancel") {
			key := e.id(lang)
			id := e.startBlocked(key, contract.Block{In: "awakeable"})
			e.call(lang+"Caller/cancel", id, nil)
			e.awaitFailure(id, http.StatusConflict)
			e.requireCompensated(key)
		}
	}},
}

// startTree starts a tree of invocations and waits until all its nodes run.
func (e *env) startTree(key string, in contract.Tree, nodes int) string {
	e.Helper()
	in.ID = key
	id := e.startIdempotent(e.path("Tree", key, "grow"), in)
	e.awaitDistinct(key, nodes)
	return id
}

var killCases = []testCase{
	{"a killed invocation ends immediately, without compensation, and unlocks its key", func(e *env) {
		for _, wait := range []string{"sleep", "awakeable", "run"} {
			key := e.id(wait)
			id := e.startBlocked(key, contract.Block{In: wait})
			e.requireOperation(id, "kill")
			f := e.awaitFailure(id, http.StatusConflict)
			require.Contains(e, f.Message, "killed")
			e.requireUnlocked("Cancel", key)
			require.Empty(e, e.recorder.Values(key+"-undone"))
		}
	}},
	{"a killed tree unlocks all keys", func(e *env) {
		key := e.id()
		id := e.startTree(key, contract.Tree{Depth: 2, Width: 2}, 7)
		e.requireOperation(id, "kill")
		e.awaitFailure(id, http.StatusConflict)
		for _, node := range e.awaitDistinct(key, 7) {
			e.requireUnlocked("Tree", node)
		}
		require.Empty(e, e.recorder.Values(key+"-ended"))
	}},
	{"a running step does not delay a kill", func(e *env) {
		key := e.id()
		id := e.startIdempotent(e.path("Queue", key, "hold"), contract.Step{ID: e.id("held"), Gate: e.id("gate")})
		e.awaitRecords(e.id("held"), 1)
		e.requireOperation(id, "kill")
		e.awaitFailure(id, http.StatusConflict)
		var n int
		e.call(e.path("Queue", key, "append"), "v", &n)
		require.Equal(e, 1, n)
		e.recorder.Open(e.id("gate"))
	}},
	{"the caller of a killed invocation gets its error", func(e *env) {
		key := e.id()
		id := e.startBlocked(key, contract.Block{In: "call", Child: key + "-child"})
		e.awaitDistinct(key+"-child", 1)
		e.requireOperation(id, "kill")
		e.awaitFailure(id, http.StatusConflict)
		e.requireUnlocked("Cancel", key+"-child")
	}},
	{"an invocation that waits for a key is killed without running", func(e *env) {
		key := e.id()
		first := e.startBlocked(key, contract.Block{In: "awakeable"})
		queued := e.send(e.path("Cancel", key, "block"), contract.Block{ID: e.id("queued"), In: "sleep"}, "idempotency-key", e.id("queued")).InvocationID
		e.requireOperation(queued, "kill")
		e.requireOperation(first, "kill")
		e.requireUnlocked("Cancel", key)
		require.Empty(e, e.recorder.Values(e.id("queued")))
		require.Equal(e, http.StatusConflict, e.operate(first, "kill").Status)
	}},
}
