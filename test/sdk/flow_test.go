package sdk

import (
	"context"
	"net/http"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

// startFlow starts a run of the workflow with this key.
func (e *env) startFlow(key string, promises ...string) harness.Sent {
	e.Helper()
	return e.send(e.path("Flow", key, "run"), contract.Flow{ID: key, Promises: promises, Text: "text of " + key})
}

// completePromise completes a promise and returns the workflow's response.
func (e *env) completePromise(key string, in contract.Completion) contract.Failure {
	e.Helper()
	var f contract.Failure
	e.call(e.path("Flow", key, "complete"), in, &f)
	return f
}

// peek returns the state of a promise.
func (e *env) peek(key, promise string) contract.Outcome {
	e.Helper()
	var o contract.Outcome
	e.call(e.path("Flow", key, "peek"), promise, &o)
	return o
}

// flowResult returns the result of a run by the workflow's key.
func (e *env) flowResult(key, verb string) harness.Response {
	e.Helper()
	resp, err := e.server.Client.Get(e.bounded(), e.server.Target.Prefix+"/workflow/"+e.lang+"Flow/"+key+"/"+verb)
	require.NoError(e, err)
	return resp
}

// text reads the workflow's state "text" while it runs.
func (e *env) text(key string) contract.OpResult {
	e.Helper()
	var out contract.OpResult
	e.call(e.path("Flow", key, "text"), nil, &out)
	return out
}

var flowCases = []testCase{
	{"a run waits for a promise that a shared handler resolves", func(e *env) {
		key := e.id()
		sent := e.startFlow(key, "p")
		e.awaitRecords(key, 1)
		require.Equal(e, contract.Outcome{}, e.peek(key, "p"))
		e.decodeFailure(e.flowResult(key, "output"), 470)
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "größe"}))
		var out []string
		e.result(sent.InvocationID, &out)
		require.Equal(e, []string{"größe"}, out)
		require.Equal(e, contract.Outcome{Index: 1, Value: "größe"}, e.peek(key, "p"))
		for _, verb := range []string{"attach", "output"} {
			require.NoError(e, e.flowResult(key, verb).Decode(&out), verb)
			require.Equal(e, []string{"größe"}, out)
		}
		e.awaitRecords(key, 1)
	}},
	{"a promise is resolved before the run begins", func(e *env) {
		key := e.id()
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "early"}))
		require.Equal(e, contract.Outcome{Index: 1, Value: "early"}, e.peek(key, "p"))
		var out []string
		e.result(e.startFlow(key, "p").InvocationID, &out)
		require.Equal(e, []string{"early"}, out)
	}},
	{"promises are awaited one after the other", func(e *env) {
		key := e.id()
		sent := e.startFlow(key, "a", "b", "c")
		for _, name := range []string{"b", "a", "c"} {
			require.Zero(e, e.completePromise(key, contract.Completion{Promise: name, Value: "value " + name}))
		}
		var out []string
		e.result(sent.InvocationID, &out)
		require.Equal(e, []string{"value a", "value b", "value c"}, out)
	}},
	{"a rejected promise fails the run", func(e *env) {
		key := e.id()
		sent := e.startFlow(key, "p")
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Reject: "no way"}))
		require.Equal(e, "no way", e.awaitFailure(sent.InvocationID, 500).Message)
		e.decodeFailure(e.flowResult(key, "attach"), 500)
	}},
	{"a promise keeps its first value", func(e *env) {
		key := e.id()
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "first"}))
		e.completePromise(key, contract.Completion{Promise: "p", Value: "second"})
		e.completePromise(key, contract.Completion{Promise: "p", Reject: "third"})
		require.Equal(e, contract.Outcome{Index: 1, Value: "first"}, e.peek(key, "p"))
	}},
	{"shared handlers wait for the same promise beside the run", func(e *env) {
		key := e.id()
		sent := e.startFlow(key, "p")
		e.awaitRecords(key, 1)
		waiters := make([]string, 3)
		for i := range waiters {
			waiters[i] = e.send(e.path("Flow", key, "await"), "p", "idempotency-key", e.id("waiter", string(rune('a'+i)))).InvocationID
		}
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "to all"}))
		for _, id := range waiters {
			var out string
			e.result(id, &out)
			require.Equal(e, "to all", out)
		}
		e.attach(sent.InvocationID)
	}},
	{"shared handlers read the state before, during and after the run", func(e *env) {
		key := e.id()
		require.Equal(e, absent, e.text(key))
		sent := e.startFlow(key, "p")
		require.Eventually(e, func() bool { return e.text(key).Value == "text of "+key }, testTimeout, pollInterval)
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "v"}))
		e.attach(sent.InvocationID)
		require.Equal(e, value("text of "+key), e.text(key))
	}},
	{"a key runs once, however often it is started", func(e *env) {
		key := e.id()
		first := e.startFlow(key, "p")
		require.Equal(e, "Accepted", first.Status)
		second := e.startFlow(key, "other")
		require.Equal(e, "PreviouslyAccepted", second.Status)
		require.Equal(e, first.InvocationID, second.InvocationID)
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "v"}))
		e.attach(first.InvocationID)
		require.Equal(e, "PreviouslyAccepted", e.startFlow(key, "p").Status)
		e.awaitRecords(key, 1)
	}},
	{"calling a run again is refused at once", func(e *env) {
		key := e.id()
		again := func() failure {
			return e.decodeFailure(e.try(e.path("Flow", key, "run"), contract.Flow{ID: key}), http.StatusConflict)
		}
		first := e.startFlow(key, "p")
		e.awaitRecords(key, 1)
		require.Equal(e, "invocation", again().Source, "while it runs")
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "v"}))
		e.attach(first.InvocationID)
		require.Contains(e, again().Message, "already invoked")
		var f contract.Failure
		e.call(e.path("Caller", "catch"), e.callTo(e.lang, "Flow", key, "run", contract.Flow{ID: key}), &f)
		require.Equal(e, http.StatusConflict, f.Code, "from a handler")
		e.awaitRecords(key, 1)
	}},
	{"keys have promises and state of their own", func(e *env) {
		a, b := e.id("a"), e.id("b")
		first, second := e.startFlow(a, "p"), e.startFlow(b, "p")
		require.Zero(e, e.completePromise(a, contract.Completion{Promise: "p", Value: "of a"}))
		e.attach(first.InvocationID)
		require.Equal(e, contract.Outcome{}, e.peek(b, "p"))
		require.Zero(e, e.completePromise(b, contract.Completion{Promise: "p", Value: "of b"}))
		var out []string
		e.result(second.InvocationID, &out)
		require.Equal(e, []string{"of b"}, out)
	}},
	{"many wait for one promise", func(e *env) {
		key := e.id()
		const n = 12
		go func() {
			e.recorder.Await(e.Context(), key, 1, testTimeout)
			_, _ = e.server.Client.Call(e.Context(), e.path("Flow", key, "complete"), []byte(`{"promise":"p","value":"v"}`))
		}()
		e.startFlow(key, "p")
		answers := e.concurrently(n, func(ctx context.Context, _ int) (harness.Response, error) {
			return e.server.Client.Call(ctx, e.path("Flow", key, "await"), []byte(`"p"`))
		})
		for _, a := range answers {
			require.Equal(e, `"v"`, string(a.Body))
		}
	}},
	{"workflows are called by handlers of every language", func(e *env) {
		for _, lang := range e.langs {
			key := e.id(lang)
			var f contract.Failure
			e.call(e.path("Caller", "call"), e.callTo(lang, "Flow", key, "complete", contract.Completion{Promise: "p", Value: "v"}), &f)
			require.Zero(e, f)
			var out []string
			e.call(e.path("Caller", "call"), e.callTo(lang, "Flow", key, "run", contract.Flow{ID: key, Promises: []string{"p"}}), &out)
			require.Equal(e, []string{"v"}, out)
		}
	}},
	{"an idempotency key does not go with a run", func(e *env) {
		answer := e.try(e.path("Flow", e.id(), "run"), contract.Flow{ID: e.id()}, "idempotency-key", e.id())
		require.Equal(e, "ingress", e.decodeFailure(answer, http.StatusBadRequest).Source)
	}},
}

var promiseConflictCases = []testCase{
	{"completing a promise again is an error", func(e *env) {
		key := e.id()
		require.Zero(e, e.completePromise(key, contract.Completion{Promise: "p", Value: "first"}))
		require.Equal(e, http.StatusConflict, e.completePromise(key, contract.Completion{Promise: "p", Value: "second"}).Code)
		require.Equal(e, http.StatusConflict, e.completePromise(key, contract.Completion{Promise: "p", Reject: "third"}).Code)
	}},
}
