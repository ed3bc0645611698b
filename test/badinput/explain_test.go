package badinput

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/proto/service"
)

var farAway = uint64(time.Now().Add(time.Hour).UnixMilli())

var (
	longSleep   = message(journal.Sleep, &service.SleepCommandMessage{WakeUpTime: farAway, ResultCompletionId: 1})
	promiseGet  = message(journal.GetPromise, &service.GetPromiseCommandMessage{Key: "approved", ResultCompletionId: 1})
	awaitsFirst = suspension(&service.SuspensionMessage{WaitingCompletions: []uint32{1}, WaitingSignals: []uint32{journal.CancelSignal}})
)

func suspension(m *service.SuspensionMessage) []byte { return message(protocol.Suspension, m) }

// TestExplainReportsWhatIsAwaited suspends an invocation on each kind of thing that can be
// awaited, and reads what the command line client says.
func TestExplainReportsWhatIsAwaited(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("S", "SERVICE", slowRetries, object{"name": "sleep"}, object{"name": "call"}, object{"name": "awakeable"}, object{"name": "signal"}, object{"name": "stuck"}),
		serviceManifest("W", "WORKFLOW", slowRetries, object{"name": "run", "ty": "WORKFLOW"}),
		serviceManifest("O", "VIRTUAL_OBJECT", slowRetries, object{"name": "hold"}),
	)))
	e.script("S/sleep", respondAndClose(longSleep, awaitsFirst))
	e.script("S/call", respondAndClose(callMessage("S", "stuck", ""), suspension(&service.SuspensionMessage{WaitingCompletions: []uint32{2}, WaitingSignals: []uint32{journal.CancelSignal}})))
	e.script("S/awakeable", respondAndClose(suspension(&service.SuspensionMessage{WaitingSignals: []uint32{journal.CancelSignal, ids.FirstAwakeable}})))
	e.script("S/signal", respondAndClose(suspension(&service.SuspensionMessage{WaitingSignals: []uint32{journal.CancelSignal}, WaitingNamedSignals: []string{"approve"}})))
	e.script("W/run", respondAndClose(promiseGet, awaitsFirst))
	e.script("O/hold", respondAndClose(longSleep, awaitsFirst))
	e.script("S/stuck", respondStatus(503, "", "", "not yet"))
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	for path, says := range map[string]func(id string) []string{
		"S/sleep": func(string) []string { return []string{"the end of a sleep at", "it continues automatically"} },
		"S/call":  func(string) []string { return []string{"the result of inv_", "S/stuck, backing-off"} },
		"S/awakeable": func(id string) []string {
			inv, err := ids.ParseInvocation(id)
			require.NoError(t, err)
			return []string{"the awakeable " + ids.Awakeable{Invocation: inv, Signal: ids.FirstAwakeable}.String()}
		},
		"S/signal": func(id string) []string {
			return []string{"the signal approve", "platform signals send " + id + " approve <value>"}
		},
		"W/k/run":  func(string) []string { return []string{"the promise approved of the workflow"} },
		"O/k/hold": func(string) []string { return []string{"the end of a sleep at"} },
	} {
		t.Run(path, func(t *testing.T) {
			w := w.withT(t)
			id := w.send(path)
			w.awaitInvocation(id, func(i invocation) bool { return i.Status == "suspended" })
			var explained string
			require.Eventually(t, func() bool { // what it called has to fail first
				explained, _, _ = w.cli("explain", id)
				for _, text := range says(id) {
					if !strings.Contains(explained, text) {
						return false
					}
				}
				return true
			}, testTimeout, 50*time.Millisecond, "%s", &explained)
			require.Contains(t, explained, "It is suspended")
		})
	}
	t.Run("a key that is held", func(t *testing.T) {
		w := w.withT(t)
		holder := w.send("O/j/hold")
		w.awaitInvocation(holder, func(i invocation) bool { return i.Status == "suspended" })
		explained, _, _ := w.cli("explain", w.send("O/j/hold"))
		require.Contains(t, explained, "The key is held by "+holder+" (O/j/hold, suspended)")
	})
	t.Run("backing off", func(t *testing.T) {
		w := w.withT(t)
		id := w.send("S/stuck")
		w.awaitInvocation(id, func(i invocation) bool { return i.Status == "backing-off" })
		explained, _, _ := w.cli("explain", id)
		require.Contains(t, explained, "Its last attempt failed; the next one starts at")
		require.Contains(t, explained, "(in ")
	})
}

// TestPausesAndCancelsAreRecorded reads who paused, and what was cancelled.
func TestPausesAndCancelsAreRecorded(t *testing.T) {
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("S", "SERVICE", slowRetries, object{"name": "sleep"}, object{"name": "stuck"}),
		serviceManifest("P", "SERVICE", object{"retryPolicyMaxAttempts": 1, "retryPolicyOnMaxAttempts": "PAUSE"}, object{"name": "h"}),
	)))
	e.script("S/sleep", respondAndClose(longSleep, awaitsFirst))
	e.script("S/stuck", respondStatus(503, "", "", "not yet"))
	e.script("P/h", respondStatus(503, "", "", "not yet"))
	w := newFixture(t, nil)
	w.register(e.URL, nil)

	byOperator := w.send("S/sleep")
	w.awaitInvocation(byOperator, func(i invocation) bool { return i.Status == "suspended" })
	paused := w.admin("PATCH", "/invocations/"+byOperator+"/pause?reason=a+deploy", nil)
	require.Equal(t, 202, paused.status, "%s", paused.raw)
	explained, _, _ := w.cli("explain", byOperator)
	require.Contains(t, explained, "It was paused by an operator at ")
	require.Contains(t, explained, " from 127.0.0.1: a deploy.")
	described, _, _ := w.cli("invocations", "describe", byOperator)
	require.Contains(t, described, "by an operator from 127.0.0.1: a deploy")
	events, _, _ := w.cli("sql", "--json", fmt.Sprintf("SELECT event_type, event_json FROM sys_journal_events WHERE id = '%s'", byOperator))
	require.Contains(t, events, `\"cause\":\"operator\"`)
	w.admin("PATCH", "/invocations/"+byOperator+"/resume", nil)
	explained, _, _ = w.cli("explain", byOperator)
	require.Contains(t, explained, "It was paused at ")
	require.Contains(t, explained, ", and resumed at ")

	byPolicy := w.send("P/h")
	w.awaitInvocation(byPolicy, func(i invocation) bool { return i.Status == "paused" })
	explained, _, _ = w.cli("explain", byPolicy)
	require.Contains(t, explained, "the maximum number of attempts of its retry policy was reached")
	columns, _, _ := w.cli("sql", "--json", fmt.Sprintf("SELECT last_pause_cause, last_pause_by, last_resumed_at FROM sys_invocation WHERE id = '%s'", byPolicy))
	require.Contains(t, columns, "attempts-used-up")

	failing, delayed := w.send("S/stuck"), w.send("S/stuck?delay=1h")
	w.awaitInvocation(failing, func(i invocation) bool { return i.Status == "backing-off" })
	answer, errs, exit := w.cli("invocations", "cancel", "S/stuck", "--yes")
	require.Zero(t, exit, errs)
	require.Contains(t, answer, "Requested the cancellation of 1 invocation: the handler gets it at its next await point")
	require.Contains(t, answer, "Cancelled 1 invocation\n")
	w.awaitInvocation(delayed, func(i invocation) bool { return i.Status == "completed" })
	explained, _, _ = w.cli("explain", failing)
	require.Contains(t, explained, "the handler gets it at its next await point")
	described, _, _ = w.cli("invocations", "describe", failing)
	require.Contains(t, described, "the handler gets it at its next await point")
}
