package badinput

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/proto/service"
)

// newMaxAttemptsFixture starts a server with two services that allow three attempts: one
// then pauses, the other is killed.
func newMaxAttemptsFixture(t *testing.T) (*fixture, *endpoint) {
	options := func(then string) object {
		return object{"retryPolicyInitialInterval": 20, "retryPolicyMaxAttempts": 3, "retryPolicyOnMaxAttempts": then}
	}
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("Pausing", "VIRTUAL_OBJECT", options("PAUSE"), object{"name": "add"}),
		serviceManifest("Killed", "VIRTUAL_OBJECT", options("KILL"), object{"name": "add"}),
	)))
	e.script("Pausing/add", respond(errorMessage(500, "boom")))
	e.script("Killed/add", respond(errorMessage(500, "boom")))
	w := newFixture(t, nil)
	w.register(e.URL, nil)
	return w, e
}

func TestInvocationPausesAfterMaxAttempts(t *testing.T) {
	w, e := newMaxAttemptsFixture(t)
	id, next := w.send("Pausing/a/add"), ""
	paused := w.awaitInvocation(id, func(i invocation) bool { return i.Status == "paused" })
	require.Equal(t, "RT0007", paused.LastErrorCode)
	require.Contains(t, paused.LastFailure, "boom")
	require.Equal(t, 3, e.attemptCount("Pausing/add"))

	out, errs, exit := w.cli("invocations", "describe", id)
	require.Zero(t, exit, errs)
	require.Contains(t, out, "paused")
	require.Contains(t, out, "boom")

	// The invocation still locks its key, others run, and a restart changes nothing.
	next = w.send("Pausing/a/add")
	require.Equal(t, "pending", w.describe(next).Status)
	e.script("Pausing/add", succeed)
	w.requireHealthy("Pausing/b/add")
	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	again := w.awaitInvocation(id, func(invocation) bool { return true })
	require.Equal(t, "paused", again.Status)
	require.Equal(t, "RT0007", again.LastErrorCode, "the reason must be stored")
	require.Contains(t, again.LastFailure, "boom")
	require.Equal(t, "pending", w.describe(next).Status)
	w.requireHealthy("Pausing/c/add")
	pending, err := w.server.Client.Output(w.ctx, id)
	require.NoError(t, err)
	require.Equal(t, 470, pending.Status)
}

func TestInvocationIsKilledAfterMaxAttempts(t *testing.T) {
	w, e := newMaxAttemptsFixture(t)
	a := w.call("Killed/a/add")
	require.Equal(t, 500, a.Status)
	require.JSONEq(t, `{"code":500,"message":"boom","source":"invocation"}`, string(a.Body))
	require.Equal(t, "invocation", a.Source())
	require.Equal(t, 3, e.attemptCount("Killed/add"))
	ended := w.describe(a.ID())
	require.Equal(t, "completed", ended.Status)
	require.Contains(t, ended.CompletionFailure, "boom")
	e.script("Killed/add", succeed)
	w.requireHealthy("Killed/a/add") // the key is unlocked
}

// TestFailedAttemptsKeepJournal fails between steps in several ways; the journal must
// contain each step once.
func TestFailedAttemptsKeepJournal(t *testing.T) {
	w, e := newMaxAttemptsFixture(t)
	run := message(journal.Run, &service.RunCommandMessage{ResultCompletionId: 1, Name: "once"})
	proposal := message(protocol.ProposeRunCompletion, &service.ProposeRunCompletionMessage{
		ResultCompletionId: 1, Result: &service.ProposeRunCompletionMessage_Value{Value: []byte("1")},
	})
	var replays [][]journal.Type
	e.script("Pausing/add", func(x *exchange) {
		replays = append(replays, x.replay())
		x.head()
		switch x.attempt {
		case 1:
			x.send(run, proposal)
			_, _, _ = x.read() // the stored result
			panic(http.ErrAbortHandler)
		case 2:
			x.send(errorMessage(500, "again"))
		default:
			x.send(output, end)
		}
		x.drain()
	})
	a := w.call("Pausing/m/add")
	require.Equal(t, 200, a.Status, "%s", a.Body)
	stored := []journal.Type{journal.Input, journal.Run, journal.RunCompletion}
	require.Equal(t, [][]journal.Type{{journal.Input}, stored, stored}, replays)
	require.Len(t, w.describe(a.ID()).Journal, 4)
}

// TestValidMessagesInInvalidOrder has handlers that send valid messages in senseless order.
// The server may accept or reject them, but must not fail.
func TestValidMessagesInInvalidOrder(t *testing.T) {
	w, e := newMaxAttemptsFixture(t)
	sleep := func(completion uint32, at uint64) []byte {
		return message(journal.Sleep, &service.SleepCommandMessage{WakeUpTime: at, ResultCompletionId: completion})
	}
	suspendOn := func(completion uint32) []byte {
		return message(protocol.Suspension, &service.SuspensionMessage{WaitingCompletions: []uint32{completion}})
	}
	journals := map[string][][]byte{
		"two outputs":             {output, output, end},
		"steps after the output":  {output, sleep(1, 1), end},
		"one completion id twice": {sleep(1, 1), sleep(1, 2), output, end},
		"a sleep without end":     {sleep(1, 1<<63), output, end},
		"sleeps in the past":      {sleep(1, 0), sleep(2, 1), output, end},
		"a proposal for nothing": {message(protocol.ProposeRunCompletion, &service.ProposeRunCompletionMessage{
			ResultCompletionId: 99, Result: &service.ProposeRunCompletionMessage_Value{},
		}), output, end},
		"an empty output": {message(journal.Output, &service.OutputCommandMessage{
			Result: &service.OutputCommandMessage_Value{Value: &service.Value{}},
		}), end},
		"a failure with a code that is none": {message(journal.Output, &service.OutputCommandMessage{
			Result: &service.OutputCommandMessage_Failure{Failure: &service.Failure{Code: 99, Message: "what?"}},
		}), end},
		"state with an empty key": {message(journal.SetState, &service.SetStateCommandMessage{Value: &service.Value{}}), output, end},
	}
	for name, messages := range journals {
		e.script("Killed/add", respond(messages...))
		a := w.call("Killed/odd/add")
		require.Contains(t, []int{200, 500}, a.Status, "%s: %s", name, a.Body)
		t.Logf("%s: %d %s", name, a.Status, a.Body)
	}

	// An invocation that awaits an unknown completion stays suspended. It must not occupy a
	// slot or delay a shutdown.
	e.script("Killed/add", respond(suspendOn(77)))
	waiting := w.send("Killed/nothing/add")
	w.awaitInvocation(waiting, func(i invocation) bool { return i.Status == "suspended" })

	e.script("Killed/add", succeed)
	w.requireHealthy("Killed/odd/add")
	w.server.Kill()
	begin := time.Now()
	require.NoError(t, w.server.Restart(w.ctx))
	w.requireHealthy("Killed/odd/add")
	require.Less(t, time.Since(begin), testTimeout)
	require.Equal(t, "suspended", w.describe(waiting).Status)
}
