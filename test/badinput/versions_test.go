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
	oneStep   = message(journal.Run, &service.RunCommandMessage{ResultCompletionId: 1, Name: "once"})
	stepsDone = message(protocol.ProposeRunCompletion, &service.ProposeRunCompletionMessage{
		ResultCompletionId: 1, Result: &service.ProposeRunCompletionMessage_Value{Value: []byte("1")},
	})
)

// saying is a handler that answers with a text.
func saying(text string) script {
	return answer(message(journal.Output, &service.OutputCommandMessage{
		Result: &service.OutputCommandMessage_Value{Value: &service.Value{Content: []byte(text)}},
	}), end)
}

// pinning stores a step, which pins the invocation to the deployment, and goes on
// with then after that.
func pinning(then script) script {
	return func(x *exchange) {
		if x.attempt > 1 {
			then(x)
			return
		}
		x.replay()
		x.head()
		x.send(oneStep, stepsDone)
		_, _, _ = x.read() // the stored result
		panic(http.ErrAbortHandler)
	}
}

var quickRetries = object{"retryPolicyInitialInterval": 20, "retryPolicyMaxInterval": 100}

func pinned(i invocation) bool { return len(i.Journal) >= 3 }

// TestWorkInFlightStaysOnItsDeployment registers a second version while the first
// one has work in the middle of it, across a crash of the server.
func TestWorkInFlightStaysOnItsDeployment(t *testing.T) {
	offer := manifest(svc("S", "SERVICE", quickRetries, object{"name": "h"}))
	v1, v2 := newEndpoint(t, offering(t, offer)), newEndpoint(t, offering(t, offer))
	v1.script("S/h", pinning(refuse(503, "", "", "not yet")))
	v2.script("S/h", saying(`"v2"`))
	w := newWorld(t, nil)
	old := w.register(v1.URL, nil)
	began := w.send("S/h")
	w.await(began, pinned)

	latest := w.register(v2.URL, nil)
	require.Equal(t, `"v2"`, string(w.call("S/h").Body), "new work goes to the new version")
	shown := string(w.admin("GET", "/services/S", nil).raw)
	require.Contains(t, shown, `"deployment_id":"`+latest+`"`)
	require.Contains(t, shown, `"revision":2`)
	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	w.await(began, func(i invocation) bool { return i.RetryCount > 0 })
	refused := w.admin("DELETE", "/deployments/"+old, nil)
	require.Equal(t, 409, refused.status, "%s", refused.raw)
	require.Contains(t, refused.Message, "1 unfinished invocation needs it")
	busy, _, exit := w.cli("services", "status", "S")
	require.Zero(t, exit)
	require.Contains(t, busy, began)
	draining, _, _ := w.cli("deployments", "list", "--extra")
	require.Contains(t, draining, "Draining")

	v1.script("S/h", saying(`"v1"`))
	require.Equal(t, `"v1"`, string(w.attach(began).Body), "what began on a version ends on it")
	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+old, nil).status, "it is drained")
	require.Equal(t, `"v2"`, string(w.call("S/h").Body))
	require.Equal(t, 1, strings.Count(string(w.admin("GET", "/deployments", nil).raw), `"uri"`))
}

// TestServicesFallBack deletes the newest version: what another deployment still
// holds serves again.
func TestServicesFallBack(t *testing.T) {
	offer := manifest(svc("S", "SERVICE", quickRetries, object{"name": "h"}))
	v1, v2 := newEndpoint(t, offering(t, offer)), newEndpoint(t, offering(t, offer))
	v1.script("S/h", saying(`"v1"`))
	v2.script("S/h", pinning(refuse(503, "", "", "not yet")))
	w := newWorld(t, nil)
	w.register(v1.URL, nil)
	latest := w.register(v2.URL, nil)
	began := w.send("S/h")
	w.await(began, pinned)
	require.Equal(t, 202, w.admin("DELETE", "/deployments/"+latest+"?force=true", nil).status)
	require.Equal(t, `"v1"`, string(w.call("S/h").Body))
	lost := w.await(began, func(i invocation) bool { return i.LastErrorCode == "RT0011" })
	require.Equal(t, "backing-off", lost.Status)
}

// TestAnUpdateInPlaceMovesWorkInFlight repairs a deployment whose work cannot go on.
func TestAnUpdateInPlaceMovesWorkInFlight(t *testing.T) {
	h, other := object{"name": "h"}, object{"name": "other"}
	broken := newEndpoint(t, offering(t, manifest(svc("S", "SERVICE", quickRetries, h))))
	repaired := newEndpoint(t, offering(t, manifest(svc("S", "SERVICE", quickRetries, h, other))))
	unsuited := newEndpoint(t, offering(t, manifest(svc("S", "SERVICE", quickRetries, other))))
	broken.script("S/h", pinning(answer(errorOf(500, "boom"))))
	repaired.script("S/h", saying(`"repaired"`))
	unsuited.script("S/other", proper)
	w := newWorld(t, nil)
	id := w.register(broken.URL, object{"additional_headers": object{"x-a": "1"}})
	began := w.send("S/h")
	w.await(began, func(i invocation) bool { return pinned(i) && i.RetryCount > 1 })

	refused := w.admin("PATCH", "/deployments/"+id, object{"uri": unsuited.URL})
	require.Equal(t, 400, refused.status, "%s", refused.raw)
	require.Equal(t, "META0016", refused.code())
	require.Contains(t, refused.Message, "handler S/h is missing")
	require.Equal(t, "META0003", w.admin("PATCH", "/deployments/"+id, object{"uri": closedPort(t)}).code())

	before := w.kept()
	planned := w.admin("PATCH", "/deployments/"+id, object{"uri": repaired.URL, "dry_run": true})
	require.Equal(t, 200, planned.status, "%s", planned.raw)
	require.Equal(t, before, w.kept())
	updated := w.admin("PUT", "/deployments/"+id, object{"uri": repaired.URL})
	require.Equal(t, 200, updated.status, "%s", updated.raw)
	require.Contains(t, string(updated.raw), "new S/other")
	require.Equal(t, `"repaired"`, string(w.attach(began).Body))
	stored := string(w.admin("GET", "/deployments/"+id, nil).raw)
	require.Contains(t, stored, repaired.URL)
	require.Contains(t, stored, `"x-a":"1"`)
	require.Contains(t, stored, `"revision":1`)
	require.NotContains(t, stored, `"name":"other"`, "services stay without overwrite")

	overwritten := w.admin("PATCH", "/deployments/"+id, object{"uri": unsuited.URL, "overwrite": true})
	require.Equal(t, 200, overwritten.status, "%s", overwritten.raw)
	require.Equal(t, 404, w.call("S/h").Status)
	w.healthy("S/other")

	// Two deployments at one address; then force does not know which one is meant.
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

// TestPrivateServicesAreForHandlersOnly makes a service private and public again.
func TestPrivateServicesAreForHandlersOnly(t *testing.T) {
	e := newEndpoint(t, offering(t, manifest(
		svc("S", "SERVICE", nil, object{"name": "h"}, object{"name": "hidden", "ingressPrivate": true}),
		svc("Caller", "SERVICE", quickRetries, object{"name": "h"}, object{"name": "hidden"}),
	)))
	e.script("S/h", proper)
	e.script("S/hidden", proper)
	calling := func(handler string) script {
		return func(x *exchange) {
			x.replay()
			x.head()
			x.send(callOf("S", handler, ""))
			for range 2 { // the id, the result
				if kind, _, ok := x.read(); ok && kind == journal.CallCompletion {
					x.send(output, end)
				}
			}
			x.rest()
		}
	}
	e.script("Caller/h", calling("h"))
	e.script("Caller/hidden", calling("hidden"))
	w := newWorld(t, nil)
	w.register(e.URL, nil)
	w.healthy("S/h")
	require.Equal(t, 404, w.call("S/hidden").Status)
	w.healthy("Caller/hidden")

	require.Equal(t, 200, w.admin("PATCH", "/services/S", object{"public": false}).status)
	refused := w.call("S/h")
	require.Equal(t, 404, refused.Status)
	require.Contains(t, string(refused.Body), "not public")
	w.healthy("Caller/h")

	shown, _, exit := w.cli("services", "patch", "S", "--public", "--yes")
	require.Zero(t, exit)
	require.Contains(t, shown, "[OK]: Changed service S")
	w.healthy("S/h")
	require.Equal(t, 404, w.call("S/hidden").Status, "what a handler says itself stays")
}

// TestModifiedServicesActOnWhatComesNext changes options while work is under way.
func TestModifiedServicesActOnWhatComesNext(t *testing.T) {
	e := newEndpoint(t, offering(t, manifest(svc("S", "SERVICE", quickRetries, object{"name": "fail"}, object{"name": "h"}))))
	e.script("S/fail", answer(errorOf(500, "boom")))
	e.script("S/h", proper)
	w := newWorld(t, nil)
	w.register(e.URL, nil)
	failing := w.send("S/fail")
	w.await(failing, func(i invocation) bool { return i.RetryCount > 2 })
	kept := w.call("S/h")

	modified := w.admin("PATCH", "/services/S", object{
		"journal_retention": "0", "retry_policy": object{"max_attempts": 2, "on_max_attempts": "Kill"},
	})
	require.Equal(t, 200, modified.status, "%s", modified.raw)
	require.Contains(t, string(modified.raw), `"revision":1`)
	a := w.attach(failing)
	require.Equal(t, 500, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "boom")

	forgotten := w.call("S/h")
	require.Equal(t, 200, forgotten.Status)
	w.await(forgotten.ID(), func(i invocation) bool { return len(i.Journal) == 0 })
	require.Len(t, w.look(kept.ID()).Journal, 2, "what was accepted before is kept as was said then")

	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	require.Contains(t, string(w.admin("GET", "/services/S", nil).raw), `"max_attempts":2`)
	forced := w.admin("POST", "/deployments", object{"uri": e.URL, "force": true})
	require.Contains(t, string(forced.raw), `"max_attempts":70`, "a new revision starts from what the endpoint says")
	require.Equal(t, 422, w.admin("PATCH", "/services/S", object{"abort_timeout": "soon"}).status)
	require.Equal(t, 400, w.admin("PATCH", "/services/S", object{"workflow_completion_retention": "1h"}).status)
	require.Equal(t, 404, w.admin("PATCH", "/services/T", object{}).status)
}

// TestWhatTheServerBoundsIsSaid announces more than the server allows.
func TestWhatTheServerBoundsIsSaid(t *testing.T) {
	m := manifest(svc("S", "SERVICE", object{"journalRetention": 7_200_000, "inactivityTimeout": 1000}, object{"name": "h"}))
	m["protocolMode"] = "REQUEST_RESPONSE"
	e := newEndpoint(t, offering(t, m))
	w := newWorld(t, map[string]string{"MAX_JOURNAL_RETENTION": "1h"})
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
