package badinput

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failureGroup is a failure group in the admin API.
type failureGroup struct {
	Service   string    `json:"service"`
	Count     int       `json:"count"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
}

// failures returns the failure groups, each with one invocation.
func (w *fixture) failures() map[string]failureGroup {
	w.Helper()
	r := w.admin("GET", "/failures", nil)
	require.Equal(w, 200, r.status, "%s", r.raw)
	var page struct{ Groups []failureGroup }
	require.NoError(w, json.Unmarshal(r.raw, &page))
	groups := map[string]failureGroup{}
	for _, g := range page.Groups {
		require.Equal(w, 1, g.Count)
		groups[g.Service] = g
	}
	require.Len(w, groups, len(page.Groups))
	return groups
}

// TestFailureGroupsBeginWithTheFirstFailure has invocations that are retried, paused and ended
// after attempts that failed for the same cause, with other failures in between.
func TestFailureGroupsBeginWithTheFirstFailure(t *testing.T) {
	options := func(attempts int, then string) object {
		return object{"retryPolicyInitialInterval": 30, "retryPolicyExponentiationFactor": 1.0, "retryPolicyMaxAttempts": attempts, "retryPolicyOnMaxAttempts": then}
	}
	services := map[string]object{"Retried": options(10_000, "PAUSE"), "Paused": options(6, "PAUSE"), "Ended": options(6, "KILL")}
	var manifests []object
	for name, o := range services {
		manifests = append(manifests, serviceManifest(name, "SERVICE", o, object{"name": "run"}))
	}
	e := newEndpoint(t, serveManifest(t, manifest(manifests...)))
	var mu sync.Mutex
	begun := map[string][]time.Time{}
	for name := range services {
		e.script(name+"/run", func(x *exchange) {
			mu.Lock()
			begun[name] = append(begun[name], time.Now().Truncate(time.Millisecond))
			mu.Unlock()
			message := fmt.Sprintf("attempt %d: no stock", x.attempt)
			if x.attempt%2 == 0 {
				message = "no route"
			}
			respond(errorMessage(500, message))(x)
		})
	}
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	sent := map[string]string{}
	for name := range services {
		sent[name] = w.send(name + "/run")
	}
	w.awaitInvocation(sent["Retried"], func(i invocation) bool { return i.RetryCount >= 6 })
	w.awaitInvocation(sent["Paused"], func(i invocation) bool { return i.Status == "paused" })
	w.awaitInvocation(sent["Ended"], func(i invocation) bool { return i.Status == "completed" })
	check := func() {
		groups := w.failures()
		require.Len(t, groups, len(services))
		mu.Lock()
		defer mu.Unlock()
		for name := range services {
			g, at := groups[name], begun[name]
			require.WithinRange(t, g.FirstSeen, at[0], at[2].Add(-time.Millisecond), "%s: the current cause occurred first in the first or second of the attempts at %v", name, at)
			require.False(t, g.LastSeen.Before(at[4]), "%s was last seen at %v in one of the attempts at %v", name, g.LastSeen, at)
		}
	}
	check()
	rows := w.admin("POST", "/query", object{"query": "SELECT count(*) AS n FROM sys_failure_group WHERE first_seen_at < last_seen_at"})
	require.Contains(t, string(rows.raw), `"n":3`)

	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	failed := e.attemptCount("Retried/run")
	w.awaitInvocation(sent["Retried"], func(i invocation) bool { return i.LastFailure != "" && e.attemptCount("Retried/run") > failed+1 })
	check()
}
