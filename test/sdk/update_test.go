package sdk

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// stateVersion returns the version of the state of a Store's key.
func (e *env) stateVersion(key string) string {
	e.Helper()
	resp := e.admin(http.MethodGet, "/services/"+e.lang+"Store/state?object_key="+key, nil)
	require.Equal(e, http.StatusOK, resp.Status, "%s", resp.Body)
	var state struct {
		Version string `json:"version"`
	}
	require.NoError(e, json.Unmarshal(resp.Body, &state))
	return state.Version
}

// update replaces the state of an object's key.
func (e *env) update(service, key, version string, state map[string]string, query ...string) adminResponse {
	e.Helper()
	return e.admin(http.MethodPost, "/services/"+e.lang+service+"/state"+strings.Join(query, ""), map[string]any{
		"object_key": key, "new_state": state, "version": version,
	})
}

// change is the response to an accepted update.
type change struct {
	ID     string `json:"operation_id"`
	Status string `json:"status"`
}

func (e *env) changed(resp adminResponse) (c change) {
	e.Helper()
	require.Equal(e, http.StatusAccepted, resp.Status, "%s", resp.Body)
	require.NoError(e, json.Unmarshal(resp.Body, &c))
	return c
}

// updateCases test an interface that only this server has.
var updateCases = []testCase{
	{"an operator replaces the state of a key", func(e *env) {
		key := e.id()
		e.script(key, set("a", "1"), set("b", "2"))
		version := e.stateVersion(key)
		require.Equal(e, "applied", e.changed(e.update("Store", key, version, map[string]string{"b": `"3"`, "c": `"4"`})).Status)
		require.Equal(e, []contract.OpResult{absent, value("3"), value("4")}, e.script(key, get("a"), get("b"), get("c")))

		answer := e.update("Store", key, version, map[string]string{})
		require.Equal(e, http.StatusConflict, answer.Status, "the version is that of a state which is gone: %s", answer.Body)
		require.Equal(e, []contract.OpResult{value("3")}, e.script(key, get("b")))
		e.changed(e.update("Store", key, "", map[string]string{}))
		require.Equal(e, []contract.OpResult{keys()}, e.script(key, contract.Op{Op: "keys"}))
	}},
	{"a key that a handler holds is updated after it", func(e *env) {
		key := e.id()
		held := e.send(e.path("Queue", key, "hold"), contract.Step{ID: e.id("held"), Gate: e.id()})
		e.awaitRecords(e.id("held"), 1)
		e.send(e.path("Queue", key, "append"), "before")
		first := e.changed(e.update("Queue", key, "", map[string]string{"values": `["updated"]`}))
		require.Equal(e, "queued", first.Status)
		e.send(e.path("Queue", key, "append"), "after")
		require.Empty(e, e.list(key))

		e.recorder.Open(e.id())
		require.NotEmpty(e, held.InvocationID)
		require.Eventually(e, func() bool { return len(e.list(key)) == 2 }, testTimeout, 10*time.Millisecond)
		require.Equal(e, []string{"updated", "after"}, e.list(key))
		var now change
		require.NoError(e, json.Unmarshal(e.admin(http.MethodGet, "/state-updates/"+first.ID, nil).Body, &now))
		require.Equal(e, "applied", now.Status)
		waited := e.changed(e.update("Queue", key, "", map[string]string{"values": `[]`}, "?wait=true"))
		require.Equal(e, "applied", waited.Status)
	}},
}
