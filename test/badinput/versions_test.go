package badinput

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/proto/service"
)

var (
	runCommand  = message(journal.Run, &service.RunCommandMessage{ResultCompletionId: 1, Name: "once"})
	runProposal = message(protocol.ProposeRunCompletion, &service.ProposeRunCompletionMessage{
		ResultCompletionId: 1, Result: &service.ProposeRunCompletionMessage_Value{Value: []byte("1")},
	})
)

// respondValue is a handler that returns a value.
func respondValue(text string) script {
	return respond(message(journal.Output, &service.OutputCommandMessage{
		Result: &service.OutputCommandMessage_Value{Value: &service.Value{Content: []byte(text)}},
	}), end)
}

// pinThen stores a step in the first attempt, which pins the invocation to the
// deployment; later attempts run then.
func pinThen(then script) script {
	return func(x *exchange) {
		if x.attempt > 1 {
			then(x)
			return
		}
		x.replay()
		x.head()
		x.send(runCommand, runProposal)
		_, _, _ = x.read() // the stored result
		panic(http.ErrAbortHandler)
	}
}

var quickRetries = object{"retryPolicyInitialInterval": 20, "retryPolicyMaxInterval": 100}

func isPinned(i invocation) bool { return len(i.Journal) >= 3 }

// TestRunningInvocationsStayOnTheirDeployment registers a second version while the first
// one has a running invocation, across a crash of the server.
func TestRunningInvocationsStayOnTheirDeployment(t *testing.T) {
	offer := manifest(serviceManifest("S", "SERVICE", quickRetries, object{"name": "h"}))
	v1, v2 := newEndpoint(t, serveManifest(t, offer)), newEndpoint(t, serveManifest(t, offer))
	v1.script("S/h", pinThen(respondStatus(503, "", "", "not yet")))
	v2.script("S/h", respondValue(`"v2"`))
	w := newFixture(t, nil)
	old := w.register(v1.URL, nil)
	id := w.send("S/h")
	w.awaitInvocation(id, isPinned)

	latest := w.register(v2.URL, nil)
	require.Equal(t, `"v2"`, string(w.call("S/h").Body), "new invocations use the new version")
	shown := string(w.admin("GET", "/services/S", nil).raw)
	require.Contains(t, shown, `"deployment_id":"`+latest+`"`)
	require.Contains(t, shown, `"revision":2`)
	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	w.awaitInvocation(id, func(i invocation) bool { return i.RetryCount > 0 })
	refused := w.admin("DELETE", "/deployments/"+old, nil)
	require.Equal(t, 409, refused.status, "%s", refused.raw)
	require.Contains(t, refused.Message, "1 unfinished invocation needs it")
	busy, _, exit := w.cli("services", "status", "S")
	require.Zero(t, exit)
	require.Contains(t, busy, id)
	draining, _, _ := w.cli("deployments", "list", "--extra")
	require.Contains(t, draining, "Draining")

	v1.script("S/h", respondValue(`"v1"`))
	require.Equal(t, `"v1"`, string(w.attach(id).Body), "a pinned invocation completes on its version")
	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+old, nil).status, "the deployment is drained")
	require.Equal(t, `"v2"`, string(w.call("S/h").Body))
	require.Equal(t, 1, strings.Count(string(w.admin("GET", "/deployments", nil).raw), `"uri"`))
}

// TestServiceFallsBackToPreviousDeployment deletes the newest version; the previous
// deployment must serve again.
func TestServiceFallsBackToPreviousDeployment(t *testing.T) {
	offer := manifest(serviceManifest("S", "SERVICE", quickRetries, object{"name": "h"}))
	v1, v2 := newEndpoint(t, serveManifest(t, offer)), newEndpoint(t, serveManifest(t, offer))
	v1.script("S/h", respondValue(`"v1"`))
	v2.script("S/h", pinThen(respondStatus(503, "", "", "not yet")))
	w := newFixture(t, nil)
	w.register(v1.URL, nil)
	latest := w.register(v2.URL, nil)
	id := w.send("S/h")
	w.awaitInvocation(id, isPinned)
	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+latest+"?force=true", nil).status)
	require.Equal(t, `"v1"`, string(w.call("S/h").Body))
	lost := w.awaitInvocation(id, func(i invocation) bool { return i.LastErrorCode == "RT0011" })
	require.Equal(t, "backing-off", lost.Status)
}

// TestInPlaceUpdateMovesRunningInvocations repairs a deployment whose invocations fail.
func TestInPlaceUpdateMovesRunningInvocations(t *testing.T) {
	h, other := object{"name": "h"}, object{"name": "other"}
	broken := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", quickRetries, h))))
	repaired := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", quickRetries, h, other))))
	unsuited := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", quickRetries, other))))
	broken.script("S/h", pinThen(respond(errorMessage(500, "boom"))))
	repaired.script("S/h", respondValue(`"repaired"`))
	unsuited.script("S/other", succeed)
	w := newFixture(t, nil)
	id := w.register(broken.URL, object{"additional_headers": object{"x-a": "1"}})
	invocationID := w.send("S/h")
	w.awaitInvocation(invocationID, func(i invocation) bool { return isPinned(i) && i.RetryCount > 1 })

	refused := w.admin("PATCH", "/deployments/"+id, object{"uri": unsuited.URL})
	require.Equal(t, 400, refused.status, "%s", refused.raw)
	require.Equal(t, "META0016", refused.code())
	require.Contains(t, refused.Message, "handler S/h is missing")
	require.Equal(t, "META0003", w.admin("PATCH", "/deployments/"+id, object{"uri": closedPort(t)}).code())

	before := w.registry()
	planned := w.admin("PATCH", "/deployments/"+id, object{"uri": repaired.URL, "dry_run": true})
	require.Equal(t, 200, planned.status, "%s", planned.raw)
	require.Equal(t, before, w.registry())
	updated := w.admin("PUT", "/deployments/"+id, object{"uri": repaired.URL})
	require.Equal(t, 200, updated.status, "%s", updated.raw)
	require.Contains(t, string(updated.raw), "new S/other")
	require.Equal(t, `"repaired"`, string(w.attach(invocationID).Body))
	stored := string(w.admin("GET", "/deployments/"+id, nil).raw)
	require.Contains(t, stored, repaired.URL)
	require.Contains(t, stored, `"x-a":"***"`)
	require.Contains(t, stored, `"revision":1`)
	require.NotContains(t, stored, `"name":"other"`, "services are unchanged without overwrite")

	overwritten := w.admin("PATCH", "/deployments/"+id, object{"uri": unsuited.URL, "overwrite": true})
	require.Equal(t, 200, overwritten.status, "%s", overwritten.raw)
	require.Equal(t, 404, w.call("S/h").Status)
	w.requireHealthy("S/other")

	// With two deployments at one address, force is ambiguous.
	w.register(repaired.URL, nil)
	shown, preview, exit := w.cli("deployments", "update", id, repaired.URL, "--overwrite", "--yes")
	require.Zero(t, exit, preview)
	require.Contains(t, shown, "[OK]: Updated deployment "+id)
	require.Contains(t, preview, unsuited.URL+"/ -> "+repaired.URL+"/")
	require.Contains(t, preview, "+ h")
	twice := w.admin("POST", "/deployments", object{"uri": repaired.URL, "force": true})
	require.Equal(t, 409, twice.status, "%s", twice.raw)
	require.Equal(t, "META0017", twice.code())
}

// TestPrivateServices makes a service private and public again.
func TestPrivateServices(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("S", "SERVICE", nil, object{"name": "h"}, object{"name": "hidden", "ingressPrivate": true}),
		serviceManifest("Caller", "SERVICE", quickRetries, object{"name": "h"}, object{"name": "hidden"}),
	)))
	e.script("S/h", succeed)
	e.script("S/hidden", succeed)
	calling := func(handler string) script {
		return func(x *exchange) {
			x.replay()
			x.head()
			x.send(callMessage("S", handler, ""))
			for range 2 { // the id, the result
				if kind, _, ok := x.read(); ok && kind == journal.CallCompletion {
					x.send(output, end)
				}
			}
			x.drain()
		}
	}
	e.script("Caller/h", calling("h"))
	e.script("Caller/hidden", calling("hidden"))
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	w.requireHealthy("S/h")
	require.Equal(t, 400, w.call("S/hidden").Status)
	w.requireHealthy("Caller/hidden")

	require.Equal(t, 200, w.admin("PATCH", "/services/S", object{"public": false}).status)
	refused := w.call("S/h")
	require.Equal(t, 400, refused.Status)
	require.Contains(t, string(refused.Body), "not public")
	w.requireHealthy("Caller/h")

	shown, _, exit := w.cli("services", "patch", "S", "--public", "--yes")
	require.Zero(t, exit)
	require.Contains(t, shown, "[OK]: Changed service S")
	w.requireHealthy("S/h")
	require.Equal(t, 400, w.call("S/hidden").Status, "the handler's own setting has precedence")
}

// TestModifiedServiceOptions changes options while invocations run.
func TestModifiedServiceOptions(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", quickRetries, object{"name": "fail"}, object{"name": "h"}))))
	e.script("S/fail", respond(errorMessage(500, "boom")))
	e.script("S/h", succeed)
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	failing := w.send("S/fail")
	w.awaitInvocation(failing, func(i invocation) bool { return i.RetryCount > 2 })
	retained := w.call("S/h")

	modified := w.admin("PATCH", "/services/S", object{
		"journal_retention": "0", "retry_policy": object{"max_attempts": 2, "on_max_attempts": "Kill"},
	})
	require.Equal(t, 200, modified.status, "%s", modified.raw)
	require.Contains(t, string(modified.raw), `"revision":1`)
	a := w.attach(failing)
	require.Equal(t, 500, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "boom")

	notRetained := w.call("S/h")
	require.Equal(t, 200, notRetained.Status)
	w.awaitInvocation(notRetained.ID(), func(i invocation) bool { return len(i.Journal) == 0 })
	require.Len(t, w.describe(retained.ID()).Journal, 2, "earlier invocations keep their retention")

	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	require.Contains(t, string(w.admin("GET", "/services/S", nil).raw), `"max_attempts":2`)
	forced := w.admin("POST", "/deployments", object{"uri": e.URL, "force": true})
	require.Contains(t, string(forced.raw), `"max_attempts":70`, "a new revision resets options to the manifest")
	require.Equal(t, 422, w.admin("PATCH", "/services/S", object{"abort_timeout": "soon"}).status)
	require.Equal(t, 400, w.admin("PATCH", "/services/S", object{"workflow_completion_retention": "1h"}).status)
	require.Equal(t, 404, w.admin("PATCH", "/services/T", object{}).status)
}

// TestServerLimitsAreReported announces options beyond the server's limits.
func TestServerLimitsAreReported(t *testing.T) {
	m := manifest(serviceManifest("S", "SERVICE", object{"journalRetention": 7_200_000, "inactivityTimeout": 1000}, object{"name": "h"}))
	m["protocolMode"] = "REQUEST_RESPONSE"
	e := newEndpoint(t, serveManifest(t, m))
	w := newFixture(t, map[string]string{"MAX_JOURNAL_RETENTION": "1h"})
	created := w.admin("POST", "/deployments", object{"uri": e.URL})
	var shown struct {
		Services []struct {
			JournalRetention string `json:"journal_retention"`
		}
		Info []struct{ Code string }
	}
	require.NoError(t, json.Unmarshal(created.raw, &shown))
	require.Equal(t, "1h", shown.Services[0].JournalRetention)
	require.Equal(t, []struct{ Code string }{{"RT0021"}, {"RT0022"}}, shown.Info)
	id := strings.TrimPrefix(created.header.Get("location"), "deployments/")
	for _, path := range []string{"/services/S", "/deployments/" + id, "/deployments"} {
		require.Contains(t, string(w.admin("GET", path, nil).raw), "RT0022", path)
	}
}
