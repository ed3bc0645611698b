package sdk

import (
	"context"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

// script runs state operations in one invocation of the object's key.
func (e *env) script(key string, ops ...contract.Op) []contract.OpResult {
	e.Helper()
	var out []contract.OpResult
	e.call(e.path("Store", key, "script"), ops, &out)
	for i := range out {
		if len(out[i].Keys) == 0 {
			out[i].Keys = nil // languages differ in how they write an empty list
		}
	}
	return out
}

// list reads the values of Queue/append without waiting for exclusive handlers.
func (e *env) list(key string) []string {
	e.Helper()
	var out []string
	e.call(e.path("Queue", key, "list"), nil, &out)
	return out
}

var (
	absent = contract.OpResult{}
	pause  = contract.Op{Op: "sleep"}
)

func set(key, value string) contract.Op { return contract.Op{Op: "set", Key: key, Value: value} }
func get(key string) contract.Op        { return contract.Op{Op: "get", Key: key} }
func clear(key string) contract.Op      { return contract.Op{Op: "clear", Key: key} }
func value(v string) contract.OpResult  { return contract.OpResult{Present: true, Value: v} }
func keys(k ...string) contract.OpResult {
	return contract.OpResult{Keys: k}
}

var stateCases = []testCase{
	{"state set by one invocation is seen by the next", func(e *env) {
		key := e.id()
		require.Equal(e, []contract.OpResult{absent}, e.script(key, get("a")))
		e.script(key, set("a", "1"), set("b", "two, a longer value that exceeds a small limit"))
		require.Equal(e,
			[]contract.OpResult{value("1"), value("two, a longer value that exceeds a small limit"), absent},
			e.script(key, get("a"), get("b"), get("c")))
	}},
	{"an invocation sees its own writes, also after a pause", func(e *env) {
		got := e.script(e.id(), get("a"), set("a", "1"), get("a"), pause, get("a"), set("a", "2"), pause, get("a"), clear("a"), get("a"), pause, get("a"))
		require.Equal(e, []contract.OpResult{absent, value("1"), value("1"), value("2"), absent, absent}, got)
	}},
	{"clear removes one key and clear all the rest", func(e *env) {
		key := e.id()
		e.script(key, set("a", "1"), set("b", "2"), set("c", "3"))
		require.Equal(e, []contract.OpResult{absent, value("2")}, e.script(key, clear("a"), get("a"), get("b")))
		require.Equal(e, []contract.OpResult{absent, value("2"), value("3")}, e.script(key, get("a"), get("b"), get("c")))
		require.Equal(e, []contract.OpResult{absent, absent}, e.script(key, contract.Op{Op: "clearAll"}, get("b"), pause, get("c")))
		require.Equal(e, []contract.OpResult{absent, absent}, e.script(key, get("b"), get("c")))
	}},
	{"keys lists what is present", func(e *env) {
		key := e.id()
		list := contract.Op{Op: "keys"}
		require.Equal(e, []contract.OpResult{keys()}, e.script(key, list))
		e.script(key, set("a", "1"), set("b", "2"), set("c", "a longer value that exceeds a small limit"))
		require.Equal(e, []contract.OpResult{keys("a", "b", "c")}, e.script(key, list))
		e.script(key, clear("b"))
		require.Equal(e, []contract.OpResult{keys("a", "c")}, e.script(key, list))
	}},
	{"an empty value is present", func(e *env) {
		key := e.id()
		read := []contract.Op{{Op: "getBytes", Key: "empty"}, {Op: "getBytes", Key: "none"}, {Op: "keys"}}
		e.script(key, contract.Op{Op: "setBytes", Key: "empty"})
		require.Equal(e, []contract.OpResult{value(""), absent, keys("empty")}, e.script(key, read...))
	}},
	{"state of one key is not seen by another", func(e *env) {
		e.script(e.id("x"), set("a", "x"))
		require.Equal(e, []contract.OpResult{absent}, e.script(e.id("y"), get("a")))
	}},
	{"a shared handler reads state", func(e *env) {
		key := e.id()
		var out contract.OpResult
		e.call(e.path("Store", key, "peek"), "a", &out)
		require.Equal(e, absent, out)
		e.script(key, set("a", "1"))
		e.call(e.path("Store", key, "peek"), "a", &out)
		require.Equal(e, value("1"), out)
	}},
	{"exclusive handlers of a key run in the order of arrival, shared ones beside them", func(e *env) {
		key := e.id()
		e.send(e.path("Queue", key, "hold"), contract.Step{ID: e.id("held"), Gate: e.id()})
		e.awaitRecords(e.id("held"), 1)
		var want []string
		for i := range 12 {
			e.send(e.path("Queue", key, "append"), strconv.Itoa(i))
			want = append(want, strconv.Itoa(i))
		}
		require.Empty(e, e.list(key), "an exclusive handler overtook the one that holds the key")
		e.recorder.Open(e.id())
		require.Eventually(e, func() bool { return len(e.list(key)) == len(want) }, testTimeout, 10*time.Millisecond)
		require.Equal(e, want, e.list(key))
	}},
	{"concurrent exclusive calls lose no update", func(e *env) {
		key := e.id()
		const n = 16
		answers := e.concurrently(n, func(ctx context.Context, i int) (harness.Response, error) {
			return e.server.Client.Call(ctx, e.path("Queue", key, "append"), []byte(strconv.Quote(strconv.Itoa(i))))
		})
		var got, want []string
		for i, a := range answers {
			got = append(got, string(a.Body))
			want = append(want, strconv.Itoa(i+1))
		}
		require.ElementsMatch(e, want, got)
		require.Len(e, e.list(key), n)
	}},
	{"a held key does not hold others", func(e *env) {
		e.send(e.path("Queue", e.id("held"), "hold"), contract.Step{ID: e.id("held"), Gate: e.id()})
		defer e.recorder.Open(e.id())
		e.awaitRecords(e.id("held"), 1)
		for i := range 10 {
			var n int
			e.call(e.path("Queue", e.id(strconv.Itoa(i)), "append"), "v", &n)
			require.Equal(e, 1, n)
		}
	}},
}
