package sdk

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// startAwaiting starts a handler that awaits n awakeables and returns its invocation and
// the awakeable ids.
func (e *env) startAwaiting(name string, n int) (id string, awakeables []string) {
	e.Helper()
	in := contract.Await{ID: e.id(name), N: n}
	id = e.send(e.path("Awakeables", "await"), in, "idempotency-key", e.id(name)).InvocationID
	return id, e.awaitRecords(in.ID, n)
}

// complete completes an awakeable over HTTP and returns the status.
func (e *env) complete(awakeable, verb, body string) int {
	e.Helper()
	path := e.server.Target.Prefix + "/awakeables/" + awakeable + "/" + verb
	resp, err := e.server.Client.Post(e.bounded(), path, []byte(body))
	require.NoError(e, err)
	return resp.Status
}

// resolve resolves an awakeable over HTTP, which must be accepted.
func (e *env) resolve(awakeable, value string) {
	e.Helper()
	require.Equal(e, http.StatusAccepted, e.complete(awakeable, "resolve", strconv.Quote(value)))
}

func came(values ...string) []contract.Outcome {
	out := make([]contract.Outcome, len(values))
	for i, v := range values {
		out[i].Value = v
	}
	return out
}

var awakeableCases = []testCase{
	{"an awakeable is resolved over HTTP", func(e *env) {
		id, awakeables := e.startAwaiting("", 1)
		e.resolve(awakeables[0], "größe ✓")
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, came("größe ✓"), out)
		e.awaitRecords(e.id(""), 1)
	}},
	{"an awakeable is rejected over HTTP", func(e *env) {
		id, awakeables := e.startAwaiting("", 1)
		require.Equal(e, http.StatusAccepted, e.complete(awakeables[0], "reject", "no way"))
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, []contract.Outcome{{Code: 500, Message: "no way"}}, out)
	}},
	{"several awakeables are completed in any order", func(e *env) {
		id, awakeables := e.startAwaiting("", 4)
		e.resolve(awakeables[2], "c")
		e.resolve(awakeables[0], "a")
		require.Equal(e, http.StatusAccepted, e.complete(awakeables[3], "reject", "d"))
		e.resolve(awakeables[1], "b")
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, append(came("a", "b", "c"), contract.Outcome{Code: 500, Message: "d"}), out)
	}},
	{"a completion after the first changes nothing", func(e *env) {
		id, awakeables := e.startAwaiting("", 1)
		e.resolve(awakeables[0], "first")
		var out []contract.Outcome
		e.result(id, &out)
		require.Equal(e, came("first"), out)
		e.resolve(awakeables[0], "second")
		require.Equal(e, http.StatusAccepted, e.complete(awakeables[0], "reject", "third"))
		e.result(id, &out)
		require.Equal(e, came("first"), out)
	}},
	{"handlers of every language complete awakeables", func(e *env) {
		for _, lang := range e.langs {
			id, awakeables := e.startAwaiting(lang, 2)
			path := lang + "Awakeables/complete"
			e.call(path, contract.Completion{Awakeable: awakeables[0], Value: "from " + lang}, nil)
			e.call(path, contract.Completion{Awakeable: awakeables[1], Reject: "no from " + lang}, nil)
			var out []contract.Outcome
			e.result(id, &out)
			require.Equal(e, []contract.Outcome{{Value: "from " + lang}, {Code: 500, Message: "no from " + lang}}, out)
		}
	}},
	{"an object of every language holds an awakeable for another", func(e *env) {
		for _, lang := range e.langs {
			key := e.id(lang)
			in := contract.Delegate{Holder: lang + "Holder", Key: key}
			id := e.send(e.path("Awakeables", "delegate"), in, "idempotency-key", key).InvocationID
			holder := lang + "Holder/" + key + "/"
			require.Eventually(e, func() (held bool) {
				e.call(holder+"has", nil, &held)
				return held
			}, testTimeout, pollInterval)
			e.call(holder+"complete", contract.Completion{Value: "by " + lang}, nil)
			var out string
			e.result(id, &out)
			require.Equal(e, "by "+lang, out)
			e.decodeFailure(e.try(holder+"complete", contract.Completion{}), http.StatusNotFound)
		}
	}},
	{"an invalid id is rejected, an unknown one is not", func(e *env) {
		require.Equal(e, http.StatusBadRequest, e.complete("sign_1nonsense", "resolve", `"x"`))
		require.Equal(e, http.StatusBadRequest, e.complete("inv_1nonsense", "reject", "x"))
		_, awakeables := e.startAwaiting("", 1)
		require.Equal(e, http.StatusAccepted, e.complete(nextAwakeableID(e, awakeables[0]), "resolve", `"x"`))
		e.resolve(awakeables[0], "x")
	}},
}

// nextAwakeableID returns the id after awakeable, which does not exist.
func nextAwakeableID(t require.TestingT, awakeable string) string {
	prefix, text := awakeable[:len("sign_1")], strings.TrimRight(awakeable[len("sign_1"):], "=")
	raw, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	raw[len(raw)-1]++
	return prefix + base64.RawURLEncoding.EncodeToString(raw)
}
