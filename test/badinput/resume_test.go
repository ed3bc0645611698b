package badinput

import (
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowRetries keep an invocation backing off for the duration of a test.
var slowRetries = object{"retryPolicyInitialInterval": 3_600_000, "retryPolicyMaxInterval": 3_600_000}

// TestResumeOnLatestDeployment resumes invocations that back off on the latest deployment
// without pausing them first.
func TestResumeOnLatestDeployment(t *testing.T) {
	offer := manifest(serviceManifest("S", "SERVICE", slowRetries, object{"name": "pinned"}, object{"name": "fresh"}))
	v1, v2 := newEndpoint(t, serveManifest(t, offer)), newEndpoint(t, serveManifest(t, offer))
	v1.script("S/pinned", pinThen(respondStatus(503, "", "", "not yet")))
	v1.script("S/fresh", respondStatus(503, "", "", "not yet"))
	for _, handler := range []string{"S/pinned", "S/fresh"} {
		v2.script(handler, respondValue(`"v2"`))
	}
	w := newFixture(t, nil)
	w.register(v1.URL, nil)
	stuck := map[string]string{}
	for _, handler := range []string{"S/pinned", "S/fresh"} {
		stuck[handler] = w.send(handler)
	}
	for handler, id := range stuck {
		seen := w.awaitInvocation(id, func(i invocation) bool { return i.Status == "backing-off" })
		require.Equal(t, 1, seen.RetryCount, handler)
		explained, _, _ := w.cli("explain", id)
		require.Contains(t, explained, "1 attempt so far")
	}
	latest := w.register(v2.URL, nil)
	for handler, id := range stuck {
		resumed := w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
		require.Equal(t, 200, resumed.status, "%s: %s", handler, resumed.raw)
		require.Equal(t, `"v2"`, string(w.attach(id).Body), handler)
	}
	history, _, _ := w.cli("invocations", "describe", stuck["S/pinned"])
	require.Contains(t, history, "continued on deployment "+latest)
	require.NotContains(t, history, "paused")
}

// TestUnpinnedInvocationsNeedTheirDeployment counts invocations that are not pinned yet.
func TestUnpinnedInvocationsNeedTheirDeployment(t *testing.T) {
	v1 := newEndpoint(t, serveManifest(t, manifest(serviceManifest("S", "SERVICE", slowRetries, object{"name": "h"}))))
	v1.script("S/h", respondStatus(503, "", "", "not yet"))
	w := newFixture(t, nil)
	id := w.register(v1.URL, nil)
	w.awaitInvocation(w.send("S/h"), func(i invocation) bool { return i.Status == "backing-off" })
	w.send("S/h?delay=1h")
	refused := w.admin("DELETE", "/deployments/"+id, nil)
	require.Equal(t, 409, refused.status, "%s", refused.raw)
	require.Contains(t, refused.Message, "2 unfinished invocations need it")
}

// TestResumeElsewhereWhileAPauseIsPending requests a pause of a handler whose step continues for
// a while, and resumes the invocation on the latest deployment right away.
func TestResumeElsewhereWhileAPauseIsPending(t *testing.T) {
	offer := manifest(serviceManifest("S", "SERVICE", nil, object{"name": "busy"}))
	v1, v2 := newEndpoint(t, serveManifest(t, offer)), newEndpoint(t, serveManifest(t, offer))
	paused := make(chan struct{})
	v1.script("S/busy", func(x *exchange) {
		x.replay()
		x.head()
		x.send(runCommand, runProposal)
		_, _, _ = x.read() // the stored result
		<-paused
		panic(http.ErrAbortHandler)
	})
	v2.script("S/busy", respondValue(`"v2"`))
	w := newFixture(t, nil)
	w.register(v1.URL, nil)
	id := w.send("S/busy")
	w.awaitInvocation(id, isPinned)
	w.register(v2.URL, nil)
	refused := w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	require.Equal(t, 409, refused.status, "%s", refused.raw)
	require.Contains(t, refused.Message, "pause it first")

	requested, stderr, exit := w.cli("invocations", "pause", id, "--yes")
	require.Zero(t, exit, stderr)
	require.Contains(t, requested, "Requested the pause of 1 invocation")
	// The handler finishes its step once the request is on its way.
	var finish sync.Once
	early := *w
	early.ctx = httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { finish.Do(func() { close(paused) }) },
	})
	resumed := early.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	for resumed.status == 409 && w.ctx.Err() == nil { // a busy machine has not paused it in time
		require.Contains(t, resumed.Message, "repeat the command")
		resumed = w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	}
	require.Equal(t, 200, resumed.status, "%s", resumed.raw)
	require.Equal(t, `"v2"`, string(w.attach(id).Body))
}

// TestResumeElsewhereBeforeTheFirstStep resumes a handler that has stored no step and whose
// attempt is open: it would end on the deployment where it started.
func TestResumeElsewhereBeforeTheFirstStep(t *testing.T) {
	offer := manifest(serviceManifest("S", "SERVICE", nil, object{"name": "h"}))
	v1, v2 := newEndpoint(t, serveManifest(t, offer)), newEndpoint(t, serveManifest(t, offer))
	started := make(chan struct{})
	v1.script("S/h", func(x *exchange) {
		x.replay()
		x.head()
		close(started)
		_, _, _ = x.read() // until the attempt is stopped
		panic(http.ErrAbortHandler)
	})
	v2.script("S/h", respondValue(`"v2"`))
	w := newFixture(t, nil)
	w.register(v1.URL, nil)
	id := w.send("S/h")
	<-started
	w.register(v2.URL, nil)
	refused := w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	require.Equal(t, 409, refused.status, "%s", refused.raw)
	require.Contains(t, refused.Message, "pause it first")
	_, stderr, exit := w.cli("invocations", "pause", id, "--yes")
	require.Zero(t, exit, stderr)
	resumed := w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	for resumed.status == 409 && w.ctx.Err() == nil { // the handler has not stopped yet
		require.Contains(t, resumed.Message, "repeat the command")
		resumed = w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	}
	require.Equal(t, 200, resumed.status, "%s", resumed.raw)
	require.Equal(t, `"v2"`, string(w.attach(id).Body))
}

// TestResumeSuspendedOnLatestDeployment resumes a sleeping invocation on the latest deployment.
func TestResumeSuspendedOnLatestDeployment(t *testing.T) {
	offer := manifest(serviceManifest("S", "SERVICE", slowRetries, object{"name": "h"}))
	v1, v2 := newEndpoint(t, serveManifest(t, offer)), newEndpoint(t, serveManifest(t, offer))
	v1.script("S/h", respondAndClose(longSleep, awaitsFirst))
	v2.script("S/h", respondValue(`"v2"`))
	w := newFixture(t, nil)
	w.register(v1.URL, nil)
	id := w.send("S/h")
	w.awaitInvocation(id, func(i invocation) bool { return i.Status == "suspended" })
	w.register(v2.URL, nil)
	resumed := w.admin("PATCH", "/invocations/"+id+"/resume?deployment=latest", nil)
	require.Equal(t, 200, resumed.status, "%s", resumed.raw)
	require.Equal(t, `"v2"`, string(w.attach(id).Body))
}
