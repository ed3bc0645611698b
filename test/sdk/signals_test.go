package sdk

import (
	"net/http"
	"strconv"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// startListening starts a handler that awaits signals and returns its invocation.
func (e *env) startListening(record string, names ...string) string {
	e.Helper()
	id := e.send(e.path("Signals", "await"), contract.Wait{ID: record, Names: names}, "idempotency-key", record).InvocationID
	require.Equal(e, []string{id}, e.awaitRecords(record, 1))
	return id
}

var signalCases = []testCase{
	{"handlers of every language send signals", func(e *env) {
		for _, lang := range e.languagesWith("signals") {
			id := e.startListening(e.id(lang), "go", "stop")
			e.call(lang+"Signals/send", contract.Signal{Invocation: id, Name: "go", Value: "from " + lang}, nil)
			e.call(lang+"Signals/send", contract.Signal{Invocation: id, Name: "stop", Reject: "no from " + lang}, nil)
			var out []contract.Outcome
			e.result(id, &out)
			require.Equal(e, []contract.Outcome{{Value: "from " + lang}, {Code: 500, Message: "no from " + lang}}, out)
		}
	}},
	{"signals are sent over HTTP", func(e *env) {
		id := e.startListening(e.id(), "go", "stop")
		send := func(name, verb, body string) int {
			path := e.server.Target.Prefix + "/invocation/" + id + "/signal/" + name + "/" + verb
			answer, err := e.server.Client.Post(e.bounded(), path, []byte(body))
			require.NoError(e, err)
			return answer.Status
		}
		require.Equal(e, http.StatusAccepted, send("stop", "reject", `no`))
		require.Equal(e, http.StatusAccepted, send("go", "resolve", `"from outside"`))
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, []contract.Outcome{{Value: "from outside"}, {Code: 500, Message: "no"}}, out)
		require.Equal(e, http.StatusConflict, send("go", "resolve", `"late"`))
	}},
	{"signals arrive before they are awaited", func(e *env) {
		id := e.startListening(e.id(), "a", "b", "c")
		for _, name := range []string{"c", "b", "a"} {
			e.call(e.path("Signals", "send"), contract.Signal{Invocation: id, Name: name, Value: "value " + name}, nil)
		}
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, came("value a", "value b", "value c"), out)
	}},
	{"a name is used once more after it was awaited", func(e *env) {
		id := e.startListening(e.id(), "n", "between", "n")
		send := func(name, value string) {
			e.call(e.path("Signals", "send"), contract.Signal{Invocation: id, Name: name, Value: value}, nil)
		}
		send("n", "1")
		send("between", "2")
		send("n", "3")
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, came("1", "2", "3"), out)
	}},
	{"several signals of one name arrive in order", func(e *env) {
		const n = 6
		names, want := make([]string, n), make([]string, n)
		for i := range n {
			names[i], want[i] = "same", strconv.Itoa(i)
		}
		id := e.startListening(e.id(), names...)
		for _, v := range want {
			e.call(e.path("Signals", "send"), contract.Signal{Invocation: id, Name: "same", Value: v}, nil)
		}
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, came(want...), out)
	}},
	{"a signal is awaited together with other things", func(e *env) {
		sent := e.run(contract.Command{Do: "id", Name: "me"},
			contract.Command{Do: "first", Of: []contract.Command{{Do: "sleep", Millis: 3_600_000}, {Do: "signal", Name: "s"}}})
		id := e.awaitRecords(e.id("me"), 1)[0]
		e.call(e.path("Signals", "send"), contract.Signal{Invocation: id, Name: "s", Value: "v"}, nil)
		require.Equal(e, contract.Outcome{Index: 1, Of: came("v")}, e.programResult(sent)[1])
	}},
}

var attachCases = []testCase{
	{"a handler attaches to what is running and to what has ended", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{ID: e.id(), Gate: e.id(), Value: "done"})
		e.awaitRecords(e.id(), 1)
		waiting := e.send(e.path("Caller", "attach"), id, "idempotency-key", e.id("waiting")).InvocationID
		e.recorder.Open(e.id())
		var out string
		e.result(waiting, &out)
		require.Equal(e, "done", out)
		e.call(e.path("Caller", "attach"), id, &out)
		require.Equal(e, "done", out)
	}},
	{"a handler attaches to what fails", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{ID: e.id(), Gate: e.id(), Code: 418, Message: "teapot"})
		e.awaitRecords(e.id(), 1)
		waiting := e.send(e.path("Caller", "catchAttach"), id, "idempotency-key", e.id("waiting")).InvocationID
		e.recorder.Open(e.id())
		var f contract.Failure
		e.result(waiting, &f)
		require.Equal(e, contract.Failure{Code: 418, Message: "teapot"}, f)
		e.decodeFailure(e.try(e.path("Caller", "attach"), id), 418)
	}},
	{"handlers of every language attach", func(e *env) {
		id := e.startIdempotent(e.path("Utils", "say"), contract.Say{ID: e.id(), Value: "done"})
		for _, lang := range e.languagesWith("attach") {
			var out string
			e.call(lang+"Caller/attach", id, &out)
			require.Equal(e, "done", out)
		}
	}},
}
