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

// atTheEnd starts a server with two services that fail three times at most: one
// pauses then and one is killed.
func atTheEnd(t *testing.T) (*world, *endpoint) {
	options := func(then string) object {
		return object{"retryPolicyInitialInterval": 20, "retryPolicyMaxAttempts": 3, "retryPolicyOnMaxAttempts": then}
	}
	e := newEndpoint(t, offering(t, manifest(
		svc("Pausing", "VIRTUAL_OBJECT", options("PAUSE"), object{"name": "add"}),
		svc("Killed", "VIRTUAL_OBJECT", options("KILL"), object{"name": "add"}),
	)))
	e.script("Pausing/add", answer(errorOf(500, "boom")))
	e.script("Killed/add", answer(errorOf(500, "boom")))
	w := newWorld(t, nil)
	w.register(e.URL, nil)
	return w, e
}

func TestInvocationsPauseAtTheEndOfThePolicy(t *testing.T) {
	w, e := atTheEnd(t)
	id, next := w.send("Pausing/a/add"), ""
	paused := w.await(id, func(i invocation) bool { return i.Status == "paused" })
	require.Equal(t, "RT0007", paused.LastErrorCode)
	require.Contains(t, paused.LastFailure, "boom")
	require.Equal(t, 3, e.asked("Pausing/add"))

	out, errs, exit := w.cli("invocations", "describe", id)
	require.Zero(t, exit, errs)
	require.Contains(t, out, "paused")
	require.Contains(t, out, "boom")

	// The object is still held, others are free, and a restart changes nothing.
	next = w.send("Pausing/a/add")
	require.Equal(t, "pending", w.look(next).Status)
	e.script("Pausing/add", proper)
	w.healthy("Pausing/b/add")
	w.server.Kill()
	require.NoError(t, w.server.Restart(w.ctx))
	again := w.await(id, func(invocation) bool { return true })
	require.Equal(t, "paused", again.Status)
	require.Equal(t, "RT0007", again.LastErrorCode, "why it paused is stored")
	require.Contains(t, again.LastFailure, "boom")
	require.Equal(t, "pending", w.look(next).Status)
	w.healthy("Pausing/c/add")
	pending, err := w.server.Client.Output(w.ctx, id)
	require.NoError(t, err)
	require.Equal(t, 470, pending.Status)
}

func TestInvocationsAreKilledAtTheEndOfThePolicy(t *testing.T) {
	w, e := atTheEnd(t)
	a := w.call("Killed/a/add")
	require.Equal(t, 500, a.Status)
	require.JSONEq(t, `{"code":500,"message":"boom","source":"invocation"}`, string(a.Body))
	require.Equal(t, "invocation", a.Source())
	require.Equal(t, 3, e.asked("Killed/add"))
	ended := w.look(a.ID())
	require.Equal(t, "completed", ended.Status)
	require.Contains(t, ended.CompletionFailure, "boom")
	e.script("Killed/add", proper)
	w.healthy("Killed/a/add") // the key is free again
}

// TestFailuresInTheMiddleKeepWhatWasDone fails between steps in many ways: the
// journal keeps each step once.
func TestFailuresInTheMiddleKeepWhatWasDone(t *testing.T) {
	w, e := atTheEnd(t)
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
			x.send(errorOf(500, "again"))
		default:
			x.send(output, end)
		}
		x.rest()
	})
	a := w.call("Pausing/m/add")
	require.Equal(t, 200, a.Status, "%s", a.Body)
	stored := []journal.Type{journal.Input, journal.Run, journal.RunCompletion}
	require.Equal(t, [][]journal.Type{{journal.Input}, stored, stored}, replays)
	require.Len(t, w.look(a.ID()).Journal, 4)
}

// TestOddButWellFormedJournals has handlers that break no rule of the format and
// make no sense. The server may do as it likes with them, but not fail.
func TestOddButWellFormedJournals(t *testing.T) {
	w, e := atTheEnd(t)
	sleep := func(completion uint32, at uint64) []byte {
		return message(journal.Sleep, &service.SleepCommandMessage{WakeUpTime: at, ResultCompletionId: completion})
	}
	suspendOn := func(completion uint32) []byte {
		return message(protocol.Suspension, &service.SuspensionMessage{WaitingCompletions: []uint32{completion}})
	}
	odd := map[string][][]byte{
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
	for name, messages := range odd {
		e.script("Killed/add", answer(messages...))
		a := w.call("Killed/odd/add")
		require.Contains(t, []int{200, 500}, a.Status, "%s: %s", name, a.Body)
		t.Logf("%s: %d %s", name, a.Status, a.Body)
	}

	// What waits for nothing can only wait; it must not keep a slot, nor the node
	// from stopping, and wakes nobody.
	e.script("Killed/add", answer(suspendOn(77)))
	waits := w.send("Killed/nothing/add")
	w.await(waits, func(i invocation) bool { return i.Status == "suspended" })

	e.script("Killed/add", proper)
	w.healthy("Killed/odd/add")
	w.server.Kill()
	begin := time.Now()
	require.NoError(t, w.server.Restart(w.ctx))
	w.healthy("Killed/odd/add")
	require.Less(t, time.Since(begin), patience)
	require.Equal(t, "suspended", w.look(waits).Status)
}
