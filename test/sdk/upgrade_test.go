package sdk

import (
	"net/http"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// startVersioned starts a handler that returns the versions it ran on, and waits until it
// awaits its awakeable.
func (e *env) startVersioned(name string) (id, awakeable string) {
	e.Helper()
	id = e.startIdempotent(e.path("Versioned", e.id(name), "work"), contract.Step{ID: e.id(name)})
	return id, e.awaitRecords(e.id(name), 1)[0]
}

// upgrade starts version v2 of the services in addition to the first and registers it.
func (e *env) upgrade() {
	e.Helper()
	for _, l := range e.suite.langs {
		if l.name == e.lang {
			service := l.start(e.T, e.recorder, e.suite.variation.service, map[string]string{"VERSION": "v2"})
			e.register(e.suite.address(e.T, service))
		}
	}
	var version string
	e.call(e.path("Versioned", e.id(), "version"), nil, &version)
	require.Equal(e, "v2", version)
}

var upgradeCases = []testCase{
	{"work in flight stays on its version until it is told otherwise", func(e *env) {
		stays, first := e.startVersioned("stays")
		moves, second := e.startVersioned("moves")
		broken := e.startIdempotent(e.path("Versioned", e.id("chain"), "chain"), contract.Step{ID: e.id("chain"), Fail: 1})
		require.Equal(e, "broken in v1", e.awaitFailure(broken, 500).Message)
		e.upgrade()

		fresh, third := e.startVersioned("fresh")
		for _, awakeable := range []string{first, third} {
			e.resolve(awakeable, "go")
		}
		var versions contract.Versions
		e.result(stays, &versions)
		require.Equal(e, contract.Versions{Before: "v1", After: "v1"}, versions)
		e.result(fresh, &versions)
		require.Equal(e, contract.Versions{Before: "v2", After: "v2"}, versions)

		e.move(moves)
		e.resolve(second, "go")
		e.result(moves, &versions)
		require.Equal(e, contract.Versions{Before: "v1", After: "v2"}, versions)

		e.repair(broken)
	}},
}

// move moves a waiting invocation to the latest version.
func (e *env) move(id string) {
	e.Helper()
	e.requireOperation(id, "pause") // of a suspended one this does nothing
	e.awaitStatus(id, "paused", "suspended")
	e.requireOperation(id, "resume?deployment=latest")
}

// repair restarts a failed chain on the latest version: after its first step, which protocol
// 5 does not support, and from the beginning.
func (e *env) repair(broken string) {
	e.Helper()
	require.Equal(e, http.StatusConflict, e.operate(broken, "resume").Status)
	var out string
	if e.protocol() >= 6 {
		e.result(e.restarted(broken, "?from=2&deployment=latest"), &out)
		require.Equal(e, "v1,v2,v2", out)
		require.Equal(e, []string{"v1"}, e.recorder.Values(e.id("chain", "a")))
		require.Equal(e, []string{"v1", "v2"}, e.recorder.Values(e.id("chain", "b")))
	}
	e.result(e.restarted(broken, ""), &out)
	require.Equal(e, "v2,v2,v2", out)
}
