package badinput

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/journal"
	"platform/proto/service"
)

func setState(key string, size int) []byte {
	return message(journal.SetState, &service.SetStateCommandMessage{
		Key: []byte(key), Value: &service.Value{Content: []byte(strings.Repeat("v", size))},
	})
}

// TestStateOfAnObjectIsBounded lets handlers and an operator write too much, and then less.
func TestStateOfAnObjectIsBounded(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("Store", "VIRTUAL_OBJECT", object{}, object{"name": "set"}))))
	w := newFixture(t, map[string]string{
		"WORKER__INVOKER__OBJECT_STATE_SIZE_LIMIT": "1000",
		"WORKER__INVOKER__EAGER_STATE_SIZE_LIMIT":  "0",
	})
	w.register(e.URL, nil)
	e.script("Store/set", respond(setState("a", 400), output, end))
	w.requireHealthy("Store/k/set")

	replace := func(size int) *adminResponse {
		return w.admin(http.MethodPost, "/services/Store/state?wait=true", object{"object_key": "k", "new_state": object{"z": strings.Repeat("v", size)}})
	}
	refused := replace(1000)
	require.Equal(t, http.StatusRequestEntityTooLarge, refused.status)
	require.Equal(t, "RT0027", refused.code())
	require.Contains(t, refused.Message, "1065 bytes")
	require.Equal(t, http.StatusAccepted, replace(900).status)

	// What the server knows about the size is that of the new state.
	id := w.send("Store/k/set")
	paused := w.awaitInvocation(id, func(i invocation) bool { return i.Status == "paused" })
	require.Equal(t, "RT0027", paused.LastErrorCode)
	require.Contains(t, paused.LastFailure, "1430 bytes")
	out, errs, exit := w.cli("invocations", "describe", id)
	require.Zero(t, exit, errs)
	require.Contains(t, out, "object-state-size-limit")

	e.script("Store/set", respond(message(journal.ClearAllState, &service.ClearAllStateCommandMessage{}), setState("b", 935), output, end))
	require.Equal(t, http.StatusOK, w.admin(http.MethodPatch, "/invocations/"+id+"/resume", nil).status)
	w.awaitInvocation(id, func(i invocation) bool { return i.Status == "completed" })
}
