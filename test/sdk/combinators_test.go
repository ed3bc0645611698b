package sdk

import (
	"net/http"
	"slices"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

type command = contract.Command

// run starts a program and returns its invocation.
func (e *env) run(commands ...command) string {
	e.Helper()
	return e.startIdempotent(e.path("Interpreter", e.id(), "run"), contract.Program{ID: e.id(), Commands: commands})
}

// programResult waits for the end of a program and returns the outcomes of its commands.
func (e *env) programResult(id string) []contract.Outcome {
	e.Helper()
	var out []contract.Outcome
	e.result(id, &out)
	return out
}

// runProgram runs a program to its end.
func (e *env) runProgram(commands ...command) []contract.Outcome {
	e.Helper()
	return e.programResult(e.run(commands...))
}

// awakeable waits for the id of an awakeable that a program named.
func (e *env) awakeable(name string) string {
	e.Helper()
	return e.awaitRecords(e.id(name), 1)[0]
}

func of(do string, parts ...command) command { return command{Do: do, Of: parts} }
func named(name string, part command) command {
	return command{Do: "start", Name: name, Of: []command{part}}
}
func kept(name string) command      { return command{Do: "wait", Name: name} }
func after(ms int) command          { return command{Do: "sleep", Millis: ms} }
func gives(v string) command        { return command{Do: "run", Value: v} }
func awakeable(name string) command { return command{Do: "awakeable", Name: name} }
func fails(code int, message string) command {
	return command{Do: "run", Code: code, Message: message}
}

const neverMillis = 3_600_000 // ms

// asks calls Utils/say of the given language.
func (e *env) asks(lang string, in contract.Say) command {
	order := e.callTo(lang, "Utils", "", "say", in)
	return command{Do: "call", Call: &order}
}

var combinatorCases = []testCase{
	{"commands have the specified outcomes", func(e *env) {
		out := e.runProgram(gives("a"), after(1), fails(422, "no"), e.asks(e.lang, contract.Say{Value: "b"}),
			e.asks(e.lang, contract.Say{Code: 418, Message: "teapot"}), command{Do: "set", Name: "s", Value: "c"}, command{Do: "get", Name: "s"})
		require.Equal(e, []contract.Outcome{{Value: "a"}, {Value: "slept"}, {Code: 422, Message: "no"}, {Value: "b"},
			{Code: 418, Message: "teapot"}, {}, {Value: "c"}}, out)
	}},
	{"what was begun is awaited in another order", func(e *env) {
		id := e.run(named("a", after(100)), named("b", awakeable("b")), named("c", e.asks(e.lang, contract.Say{Value: "c"})),
			kept("c"), kept("b"), kept("a"))
		e.resolve(e.awakeable("b"), "b")
		require.Equal(e, came("", "", "", "c", "b", "slept"), e.programResult(id))
	}},
	{"what was awaited is awaited again", func(e *env) {
		require.Equal(e, came("", "slept", "slept"), e.runProgram(named("a", after(10)), kept("a"), kept("a")))
	}},
	{"the first of several ends the wait", func(e *env) {
		id := e.run(of("first", after(neverMillis), awakeable("x"), e.asks(e.lang, contract.Say{Millis: neverMillis})))
		e.resolve(e.awakeable("x"), "x")
		require.Equal(e, []contract.Outcome{{Index: 1, Of: came("x")}}, e.programResult(id))
	}},
	{"the first may be a failure", func(e *env) {
		id := e.run(of("first", awakeable("x"), after(neverMillis)))
		require.Equal(e, http.StatusAccepted, e.complete(e.awakeable("x"), "reject", "no"))
		require.Equal(e, []contract.Outcome{{Of: []contract.Outcome{{Code: 500, Message: "no"}}}}, e.programResult(id))
	}},
	{"waiting until all have ended gives all outcomes", func(e *env) {
		id := e.run(of("settled", after(50), awakeable("x"), awakeable("y"), e.asks(e.lang, contract.Say{Code: 422, Message: "no"})))
		require.Equal(e, http.StatusAccepted, e.complete(e.awakeable("x"), "reject", "rejected"))
		e.resolve(e.awakeable("y"), "y")
		want := []contract.Outcome{{Value: "slept"}, {Code: 500, Message: "rejected"}, {Value: "y"}, {Code: 422, Message: "no"}}
		require.Equal(e, []contract.Outcome{{Of: want}}, e.programResult(id))
	}},
	{"callees of every language answer at once", func(e *env) {
		var calls []command
		for range 4 {
			for _, lang := range e.langs {
				calls = append(calls, e.asks(lang, contract.Say{Value: lang, Millis: 20}))
			}
		}
		out := e.runProgram(of("settled", calls...))
		require.Equal(e, slices.Repeat(came(e.langs...), 4), out[0].Of)
	}},
	{"losers are awaited after the race", func(e *env) {
		id := e.run(named("slow", awakeable("slow")), of("first", kept("slow"), after(10)), kept("slow"))
		slow := e.awakeable("slow")
		// The race is lost once the program waits for nothing but the loser; a
		// completion before that may win it.
		e.awaitStatus(id, "suspended", "running")
		e.resolve(slow, "late")
		out := e.programResult(id)
		require.Equal(e, contract.Outcome{Value: "late"}, out[2])
	}},
}

var anyCases = []testCase{
	{"the first success ends the wait, failures do not", func(e *env) {
		id := e.run(of("any", fails(422, "no"), awakeable("x"), awakeable("y"), after(neverMillis)))
		require.Equal(e, http.StatusAccepted, e.complete(e.awakeable("x"), "reject", "no"))
		e.resolve(e.awakeable("y"), "yes")
		require.Equal(e, []contract.Outcome{{Index: 2, Of: came("yes")}}, e.programResult(id))
	}},
	{"no success at all is a failure", func(e *env) {
		out := e.runProgram(of("any", fails(422, "a"), e.asks(e.lang, contract.Say{Code: 418, Message: "b"})))
		require.NotZero(e, out[0].Code)
	}},
}

var allCases = []testCase{
	{"all successes give all values", func(e *env) {
		id := e.run(of("all", awakeable("x"), after(20), e.asks(e.lang, contract.Say{Value: "c"}), awakeable("y")))
		e.resolve(e.awakeable("y"), "y")
		e.resolve(e.awakeable("x"), "x")
		require.Equal(e, []contract.Outcome{{Of: came("x", "slept", "c", "y")}}, e.programResult(id))
	}},
	{"the first failure ends the wait for all", func(e *env) {
		id := e.run(of("all", after(neverMillis), awakeable("x"), awakeable("y")))
		require.Equal(e, http.StatusAccepted, e.complete(e.awakeable("y"), "reject", "no"))
		require.Equal(e, []contract.Outcome{{Code: 500, Message: "no"}}, e.programResult(id))
	}},
}

var nestedCases = []testCase{
	{"the first of two groups", func(e *env) {
		id := e.run(of("first", of("settled", after(neverMillis), after(1)), of("settled", awakeable("x"), awakeable("y"))))
		e.resolve(e.awakeable("x"), "x")
		e.resolve(e.awakeable("y"), "y")
		require.Equal(e, []contract.Outcome{{Index: 1, Of: []contract.Outcome{{Of: came("x", "y")}}}}, e.programResult(id))
	}},
	{"all of several races", func(e *env) {
		id := e.run(of("settled", of("first", after(neverMillis), awakeable("x")), of("first", awakeable("y"), after(neverMillis)), after(5)))
		e.resolve(e.awakeable("x"), "x")
		e.resolve(e.awakeable("y"), "y")
		want := []contract.Outcome{{Index: 1, Of: came("x")}, {Of: came("y")}, {Value: "slept"}}
		require.Equal(e, []contract.Outcome{{Of: want}}, e.programResult(id))
	}},
	{"three deep", func(e *env) {
		id := e.run(of("first", after(neverMillis), of("settled", of("first", of("settled", awakeable("x"), after(1)), after(neverMillis)), awakeable("y"))))
		e.resolve(e.awakeable("y"), "y")
		e.resolve(e.awakeable("x"), "x")
		inner := contract.Outcome{Of: []contract.Outcome{{Of: came("x", "slept")}}}
		require.Equal(e, []contract.Outcome{{Index: 1, Of: []contract.Outcome{{Of: []contract.Outcome{inner, {Value: "y"}}}}}}, e.programResult(id))
	}},
}
