package badinput

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/proto/service"
)

const mega = 1 << 20

// fault is one way in which a handler misbehaves, and what people are told.
type fault struct {
	script  script
	code    string
	message string
}

// faults are told by the name of the handler that has them.
var faults = map[string]fault{
	"wrong_frame":           {answer([]byte("this is not a frame at all")), "RT0003", "reaches the limit"},
	"unknown_control_type":  {answer(frame(0x0099, nil)), "RT0012", "unexpected message"},
	"unknown_command_type":  {answer(frame(0x0499, []byte("x"))), "RT0012", "unexpected message"},
	"custom_command":        {answer(frame(0xFC01, nil)), "RT0012", "unexpected message"},
	"message_of_the_server": {answer(frame(protocol.Start, nil)), "RT0012", "unexpected message Start"},
	"notification":          {answer(frame(journal.RunCompletion, []byte{8, 1, 0x22, 0})), "RT0012", "unexpected message"},
	"second_input":          {answer(frame(journal.Input, nil)), "RT0012", "unexpected message"},
	"newer_protocol":        {answer(frame(protocol.AwaitingOn, []byte{0x0a, 2, 0x10, 1})), "RT0012", "unexpected message"},
	"undecodable":           {answer(frame(journal.Output, []byte{0x72, 0xff})), "RT0012", "cannot be understood"},
	"over_the_limit":        {answer(frame(journal.Output, make([]byte, 2*mega))), "RT0003", "worker.invoker.message-size-limit"},
	"large_announcement":    {leave(protocol.AppendHeader(nil, journal.Output, -1)), "RT0003", "4294967295 bytes"},
	"early_close":           {leave(), "RT0007", "without saying how the invocation goes on"},
	"close_in_a_message":    {leave(output[:len(output)-1]), "RT0010", "middle of a message"},
	"end_without_output":    {answer(end), "RT0012", "without an output"},
	"empty_suspension":      {answer(frame(protocol.Suspension, nil)), "RT0012", "Suspension"},
	"proposal_no_result":    {answer(message(protocol.ProposeRunCompletion, &service.ProposeRunCompletionMessage{ResultCompletionId: 1})), "RT0012", "no result"},
	"state_of_a_service":    {answer(message(journal.SetState, &service.SetStateCommandMessage{Key: []byte("k"), Value: &service.Value{}})), "RT0017", "plain service has no state"},
	"key_of_a_service":      {answer(callOf("Good", "greet", "key")), "RT0017", "takes no key"},
	"unknown_service":       {answer(callOf("Nobody", "greet", "")), "RT0018", "Nobody/greet"},
	"unknown_handler":       {answer(callOf("Good", "nope", "")), "RT0018", "Good/nope"},
	"error_message":         {answer(errorOf(500, "boom\nat line 1")), "RT0007", "boom"},
	"journal_mismatch":      {answer(errorOf(570, "other steps")), "RT0016", "other steps"},
	"protocol_violation":    {answer(errorOf(571, "what is this?")), "RT0012", "what is this?"},

	"status_502":         {refuse(502, "", "", "no way"), "RT0010", "status 502: no way"},
	"status_503":         {refuse(503, "", "", ""), "RT0023", "status 503"},
	"status_429":         {refuse(429, "Retry-After", "0", ""), "RT0023", "status 429"},
	"status_415":         {refuse(415, "", "", "unsupported"), "RT0015", "status 415"},
	"status_413":         {refuse(413, "", "", ""), "RT0019", "status 413"},
	"status_404":         {refuse(404, "", "", "<html>"), "RT0012", "status 404"},
	"status_500":         {refuse(500, "", "", ""), "RT0012", "status 500"},
	"status_204":         {refuse(204, "", "", ""), "RT0012", "content type"},
	"redirect":           {refuse(307, "Location", "http://127.0.0.1:1/", ""), "RT0012", "status 307"},
	"wrong_content_type": {refuse(200, "Content-Type", "text/html", "<html>"), "RT0012", `content type "text/html"`},
	"other_version":      {refuse(200, "Content-Type", "application/vnd.restate.invocation.v5", ""), "RT0012", "content type"},
	"endless_refusal":    {endlessRefusal, "RT0023", "status 503: xxx"},
	"reset":              {func(*exchange) { panic(http.ErrAbortHandler) }, "RT0010", "connection to the endpoint"},
	"reset_in_between":   {func(x *exchange) { leave(output)(x); panic(http.ErrAbortHandler) }, "RT0010", "connection to the endpoint"},

	// These have time-outs of their own.
	"silent_before_the_head": {func(x *exchange) { <-x.r.Context().Done() }, "RT0001", "sent no response head since the request, and nothing for 100ms"},
	"silent_after_the_head":  {func(x *exchange) { x.replay(); x.head(); <-x.r.Context().Done() }, "RT0001", "sent nothing for 100ms"},
}

func callOf(service_, handler, key string) []byte {
	return message(journal.Call, &service.CallCommandMessage{
		ServiceName: service_, HandlerName: handler, Key: key, InvocationIdNotificationIdx: 1, ResultCompletionId: 2,
	})
}

func errorOf(code uint32, text string) []byte {
	return message(protocol.Error, &service.ErrorMessage{Code: code, Message: text})
}

func endlessRefusal(x *exchange) {
	x.w.WriteHeader(http.StatusServiceUnavailable)
	for block := bytes.Repeat([]byte("x"), 4096); ; {
		if _, err := x.w.Write(block); err != nil {
			return
		}
	}
}

// hostile starts a server with an endpoint that has all the faults and a proper
// service.
func hostile(t *testing.T) (*world, *endpoint) {
	var handlers []object
	for name := range faults {
		h := object{"name": name}
		if strings.HasPrefix(name, "silent") {
			h["inactivityTimeout"], h["abortTimeout"] = 100, 100
		}
		handlers = append(handlers, h)
	}
	quick := object{"retryPolicyInitialInterval": 50, "retryPolicyMaxInterval": 200}
	e := newEndpoint(t, offering(t, manifest(
		svc("Bad", "SERVICE", quick, handlers...),
		svc("Good", "SERVICE", nil, object{"name": "greet"}),
	)))
	e.script("Good/greet", proper)
	w := newWorld(t, map[string]string{"WORKER__INVOKER__MESSAGE_SIZE_LIMIT": "1 MiB"})
	w.register(e.URL, nil)
	return w, e
}

// TestEveryFaultIsNamedRetriedAndSurvived starts an invocation for every fault at
// the same time, looks at what people are told, heals the handlers and waits for
// the results.
func TestEveryFaultIsNamedRetriedAndSurvived(t *testing.T) {
	w, e := hostile(t)
	ids := map[string]string{}
	for name, f := range faults {
		e.script("Bad/"+name, f.script)
		ids[name] = w.send("Bad/" + name)
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			w := w.with(t)
			failing := w.await(ids[name], func(i invocation) bool { return i.RetryCount >= 2 && i.LastErrorCode != "" })
			require.Equal(t, f.code, failing.LastErrorCode, failing.LastFailure)
			require.Contains(t, failing.LastFailure, f.message)
			require.Contains(t, []string{"backing-off", "running"}, failing.Status)
			require.Equal(t, "Command: Input", failing.Journal[0].Type)
			if name != "reset_in_between" {
				require.Len(t, failing.Journal, 1)
			}
		})
	}
	w.healthy("Good/greet")
	t.Run("in the command line client", func(t *testing.T) {
		w := w.with(t)
		out, errs, exit := w.cli("invocations", "describe", ids["unknown_handler"])
		require.Zero(t, exit, errs)
		require.Contains(t, out, "RT0018")
		require.Contains(t, out, "Good/nope")
		out, _, _ = w.cli("invocations", "list", "--status", "backing-off,running", "--service", "Bad")
		require.Contains(t, out, "RT0003")
		require.NotContains(t, out, "\x1b")
	})
	for name := range faults {
		e.script("Bad/"+name, proper)
	}
	require.Less(t, e.asked("Bad/status_429"), 100, "an endpoint that asks for no delay is not asked in a loop")
	for name, id := range ids {
		a := w.attach(id)
		require.Equal(t, 200, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, `"hi"`, string(a.Body), name)
	}
	log := w.server.Process.LogTail(10_000)
	require.NotContains(t, log, "goroutine ", "a stack trace in the log")
	require.NotContains(t, log, " ERROR ", "faults of endpoints are not errors of the server")
}

// TestALargeHeadCostsOnlyItsOwnEndpoint has an endpoint whose response heads break
// the connection that its attempts share.
func TestALargeHeadCostsOnlyItsOwnEndpoint(t *testing.T) {
	w, _ := hostile(t)
	e := newEndpoint(t, offering(t, manifest(svc("Huge", "SERVICE", object{"retryPolicyInitialInterval": 50}, object{"name": "head"}))))
	e.script("Huge/head", refuse(200, "x-long", strings.Repeat("x", 4*mega), ""))
	w.register(e.URL, nil)
	id := w.send("Huge/head")
	failing := w.await(id, func(i invocation) bool { return i.RetryCount >= 3 })
	require.Equal(t, "RT0010", failing.LastErrorCode)
	w.healthy("Good/greet")
	e.script("Huge/head", proper)
	require.Equal(t, 200, w.attach(id).Status)
}

func TestRetryAfterSetsTheNextDelay(t *testing.T) {
	w, e := hostile(t)
	begin := time.Now()
	e.script("Bad/status_429", func(x *exchange) {
		if x.attempt > 1 {
			proper(x)
			return
		}
		refuse(429, "Retry-After", "4", "slow down")(x)
	})
	id := w.send("Bad/status_429")
	waiting := w.await(id, func(i invocation) bool { return i.NextRetryAt != "" })
	require.Equal(t, "backing-off", waiting.Status)
	at, err := time.Parse(time.RFC3339Nano, waiting.NextRetryAt)
	require.NoError(t, err)
	require.WithinRange(t, at, begin.Add(3900*time.Millisecond), time.Now().Add(4*time.Second))
	require.Equal(t, 200, w.attach(id).Status)
	require.GreaterOrEqual(t, time.Since(begin), 3900*time.Millisecond)
}

// TestWhatComesAfterTheEndIsIgnored has handlers that go on after they ended.
func TestWhatComesAfterTheEndIsIgnored(t *testing.T) {
	w, e := hostile(t)
	for name, garbage := range map[string][]byte{
		"status_404": []byte("garbage after the end, and more of it"),
		"status_413": slices.Concat(output, end, end, frame(0x0099, nil)),
		"status_415": make([]byte, 4*mega),
		"status_500": errorOf(500, "changed my mind"),
	} {
		e.script("Bad/"+name, leave(output, end, garbage))
		a := w.call("Bad/" + name)
		require.Equal(t, 200, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, `"hi"`, string(a.Body))
		require.Len(t, w.look(a.ID()).Journal, 2)
		require.Equal(t, 1, e.asked("Bad/"+name))
	}
	w.healthy("Good/greet")
}
