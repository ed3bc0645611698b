package sdk

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// callTo returns a call of a handler of the given language.
func (e *env) callTo(lang, service, key, handler string, in any) contract.Call {
	return contract.Call{Service: lang + service, Key: key, Handler: handler, Input: e.encode(in)}
}

var callCases = []testCase{
	{"a service calls services of every language", func(e *env) {
		for _, lang := range e.langs {
			in := contract.Message{Text: "to " + lang}
			var out contract.Message
			e.call(e.path("Caller", "call"), e.callTo(lang, "Echo", "", "json", in), &out)
			require.Equal(e, in, out)
		}
	}},
	{"a service calls objects of every language sequentially", func(e *env) {
		for _, lang := range e.langs {
			for i := range 3 {
				var n int
				e.call(e.path("Caller", "call"), e.callTo(lang, "Queue", e.id(lang, "ü/ä ?"), "append", "v"), &n)
				require.Equal(e, i+1, n)
			}
		}
	}},
	{"a callee's terminal error reaches the caller", func(e *env) {
		for _, lang := range e.langs {
			var f contract.Failure
			e.call(e.path("Caller", "catch"), e.callTo(lang, "Steps", "", "fail", contract.Step{Code: 422, Message: "no"}), &f)
			require.Equal(e, contract.Failure{Code: 422, Message: "no"}, f)
		}
	}},
	{"a one-way call runs once", func(e *env) {
		var id string
		e.call(e.path("Caller", "send"), e.callTo(e.lang, "Steps", "", "once", contract.Step{ID: e.id()}), &id)
		require.Regexp(e, `^inv_1`, id)
		e.awaitRecords(e.id(), 1)
	}},
	{"a delayed one-way call waits", func(e *env) {
		const delay = 400 * time.Millisecond
		order := e.callTo(e.lang, "Steps", "", "once", contract.Step{ID: e.id()})
		order.DelayMillis = int(delay.Milliseconds())
		begin := time.Now()
		e.call(e.path("Caller", "send"), order, nil)
		e.awaitRecords(e.id(), 1)
		require.GreaterOrEqual(e, time.Since(begin), delay)
	}},
	{"concurrent calls all complete", func(e *env) {
		var orders []contract.Call
		for i := range 24 {
			lang := e.langs[i%len(e.langs)]
			orders = append(orders, e.callTo(lang, "Echo", "", "json", contract.Message{Text: strconv.Itoa(i)}))
		}
		var out []contract.Message
		e.call(e.path("Caller", "fanout"), orders, &out)
		require.Len(e, out, len(orders))
		for i, m := range out {
			require.Equal(e, strconv.Itoa(i), m.Text)
		}
	}},
	{"waiting for all calls returns the failures", func(e *env) {
		var out []contract.Failure
		e.call(e.path("Caller", "settle"), []contract.Call{
			e.callTo(e.lang, "Steps", "", "sleep", contract.Step{ID: e.id("a"), Millis: 150}),
			e.callTo(e.lang, "Steps", "", "fail", contract.Step{Code: 451, Message: "second"}),
			e.callTo(e.lang, "Steps", "", "once", contract.Step{ID: e.id("c")}),
		}, &out)
		require.Equal(e, []contract.Failure{{}, {Code: 451, Message: "second"}, {}}, out)
	}},
	{"the shortest of several sleeps wins", func(e *env) {
		var winner int
		e.call(e.path("Caller", "race"), contract.Race{Millis: []int{120_000, 100, 180_000}}, &winner)
		require.Equal(e, 1, winner)
	}},
	{"a call can time out", func(e *env) {
		gated := contract.Step{ID: e.id("gated"), Gate: e.id()}
		defer e.recorder.Open(e.id())
		inTime := true
		e.call(e.path("Caller", "timeout"), contract.Timeout{
			Call: e.callTo(e.lang, "Steps", "", "once", gated), Millis: 150,
		}, &inTime)
		require.False(e, inTime)
		e.call(e.path("Caller", "timeout"), contract.Timeout{
			Call: e.callTo(e.lang, "Echo", "", "json", contract.Message{}), Millis: 30_000,
		}, &inTime)
		require.True(e, inTime)
	}},
	{"calls with one idempotency key run once", func(e *env) {
		order := e.callTo(e.lang, "Steps", "", "once", contract.Step{ID: e.id()})
		order.IdempotencyKey = e.id("key")
		for i := range 3 {
			var out json.RawMessage
			e.call(e.path("Caller", "call"), order, &out)
			require.Equal(e, "1", string(out), fmt.Sprintf("call %d", i))
		}
		e.awaitRecords(e.id(), 1)
	}},
}
