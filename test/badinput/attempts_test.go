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

const mebi = 1 << 20

// endpointFault is a misbehavior of a handler and the error that is reported for it.
type endpointFault struct {
	script  script
	code    string
	message string
}

// endpointFaults are keyed by the name of the handler that has them.
var endpointFaults = map[string]endpointFault{
	"wrong_frame":           {respond([]byte("this is not a frame at all")), "RT0012", "unexpected message 0x7468"},
	"unknown_control_type":  {respond(frame(0x0099, nil)), "RT0012", "unexpected message"},
	"unknown_command_type":  {respond(frame(0x0499, []byte("x"))), "RT0012", "unexpected message"},
	"custom_command":        {respond(frame(0xFC01, nil)), "RT0012", "unexpected message"},
	"message_of_the_server": {respond(frame(protocol.Start, nil)), "RT0012", "unexpected message Start"},
	"notification":          {respond(frame(journal.RunCompletion, []byte{8, 1, 0x22, 0})), "RT0012", "unexpected message"},
	"second_input":          {respond(frame(journal.Input, nil)), "RT0012", "unexpected message"},
	"newer_protocol":        {respond(frame(protocol.AwaitingOn, []byte{0x0a, 2, 0x10, 1})), "RT0012", "unexpected message"},
	"undecodable":           {respond(frame(journal.Output, []byte{0x72, 0xff})), "RT0012", "cannot be decoded"},
	"over_the_limit":        {respond(frame(journal.Output, make([]byte, 2*mebi))), "RT0003", "worker.invoker.message-size-limit"},
	"large_announcement":    {respondAndClose(protocol.AppendHeader(nil, journal.Output, -1)), "RT0003", "4294967295 bytes"},
	"early_close":           {respondAndClose(), "RT0007", "without an end, a suspension or an error"},
	"close_in_a_message":    {respondAndClose(output[:len(output)-1]), "RT0010", "middle of a message"},
	"end_without_output":    {respond(end), "RT0012", "without an output"},
	"empty_suspension":      {respond(frame(protocol.Suspension, nil)), "RT0012", "Suspension"},
	"proposal_no_result":    {respond(message(protocol.ProposeRunCompletion, &service.ProposeRunCompletionMessage{ResultCompletionId: 1})), "RT0012", "no result"},
	"state_of_a_service":    {respond(message(journal.SetState, &service.SetStateCommandMessage{Key: []byte("k"), Value: &service.Value{}})), "RT0017", "plain service has no state"},
	"key_of_a_service":      {respond(callMessage("Good", "greet", "key")), "RT0017", "takes no key"},
	"unknown_service":       {respond(callMessage("Nobody", "greet", "")), "RT0018", "Nobody/greet"},
	"unknown_handler":       {respond(callMessage("Good", "nope", "")), "RT0018", "Good/nope"},
	"error_message":         {respond(errorMessage(500, "boom\nat line 1")), "RT0007", "boom"},
	"journal_mismatch":      {respond(errorMessage(570, "other steps")), "RT0016", "other steps"},
	"protocol_violation":    {respond(errorMessage(571, "what is this?")), "RT0012", "what is this?"},

	"status_502":         {respondStatus(502, "", "", "no way"), "RT0010", "status 502: no way"},
	"status_503":         {respondStatus(503, "", "", ""), "RT0023", "status 503"},
	"status_429":         {respondStatus(429, "Retry-After", "0", ""), "RT0023", "status 429"},
	"status_415":         {respondStatus(415, "", "", "unsupported"), "RT0015", "status 415"},
	"status_413":         {respondStatus(413, "", "", ""), "RT0019", "status 413"},
	"status_404":         {respondStatus(404, "", "", "<html>"), "RT0012", "status 404"},
	"status_500":         {respondStatus(500, "", "", ""), "RT0012", "status 500"},
	"status_204":         {respondStatus(204, "", "", ""), "RT0012", "content type"},
	"redirect":           {respondStatus(307, "Location", "http://127.0.0.1:1/", ""), "RT0012", "status 307"},
	"wrong_content_type": {respondStatus(200, "Content-Type", "text/html", "<html>"), "RT0012", `content type "text/html"`},
	"other_version":      {respondStatus(200, "Content-Type", "application/vnd.restate.invocation.v5", ""), "RT0012", "content type"},
	"endless_refusal":    {endlessErrorBody, "RT0023", "status 503: xxx"},
	"reset":              {func(*exchange) { panic(http.ErrAbortHandler) }, "RT0010", "connection to the endpoint"},
	"reset_in_between":   {func(x *exchange) { respondAndClose(output)(x); panic(http.ErrAbortHandler) }, "RT0010", "connection to the endpoint"},

	// The handlers of these have short timeouts.
	"silent_before_the_head": {func(x *exchange) { <-x.r.Context().Done() }, "RT0001", "sent no response headers since the request, and nothing for 100ms"},
	"silent_after_the_head":  {func(x *exchange) { x.replay(); x.head(); <-x.r.Context().Done() }, "RT0001", "sent nothing for 100ms"},
}

func callMessage(service_, handler, key string) []byte {
	return message(journal.Call, &service.CallCommandMessage{
		ServiceName: service_, HandlerName: handler, Key: key, InvocationIdNotificationIdx: 1, ResultCompletionId: 2,
	})
}

func errorMessage(code uint32, text string) []byte {
	return message(protocol.Error, &service.ErrorMessage{Code: code, Message: text})
}

func endlessErrorBody(x *exchange) {
	x.w.WriteHeader(http.StatusServiceUnavailable)
	for block := bytes.Repeat([]byte("x"), 4096); ; {
		if _, err := x.w.Write(block); err != nil {
			return
		}
	}
}

// newFaultyEndpoint starts a server with an endpoint that has all faults and one healthy
// service.
func newFaultyEndpoint(t *testing.T) (*fixture, *endpoint) {
	var handlers []object
	for name := range endpointFaults {
		h := object{"name": name}
		if strings.HasPrefix(name, "silent") {
			h["inactivityTimeout"], h["abortTimeout"] = 100, 100
		}
		handlers = append(handlers, h)
	}
	// A slow machine takes long to check all faults, and none may run out of attempts meanwhile.
	quick := object{"retryPolicyInitialInterval": 50, "retryPolicyMaxInterval": 2000, "retryPolicyMaxAttempts": 10_000}
	e := newEndpoint(t, serveManifest(t, manifest(
		serviceManifest("Bad", "SERVICE", quick, handlers...),
		serviceManifest("Good", "SERVICE", nil, object{"name": "greet"}),
	)))
	e.script("Good/greet", succeed)
	w := newFixture(t, map[string]string{"WORKER__INVOKER__MESSAGE_SIZE_LIMIT": "1 MiB"})
	w.register(e.URL, nil)
	return w, e
}

// TestEndpointFaultsAreReportedAndRetried starts an invocation for every fault, checks the
// reported errors, fixes the handlers and requires that all invocations complete.
func TestEndpointFaultsAreReportedAndRetried(t *testing.T) {
	w, e := newFaultyEndpoint(t)
	ids := map[string]string{}
	for name, f := range endpointFaults {
		e.script("Bad/"+name, f.script)
		ids[name] = w.send("Bad/" + name)
	}
	for name, f := range endpointFaults {
		t.Run(name, func(t *testing.T) {
			w := w.withT(t)
			failing := w.awaitInvocation(ids[name], func(i invocation) bool { return i.RetryCount >= 2 && i.LastErrorCode != "" })
			require.Equal(t, f.code, failing.LastErrorCode, failing.LastFailure)
			require.Contains(t, failing.LastFailure, f.message)
			require.Contains(t, []string{"backing-off", "running"}, failing.Status)
			require.Equal(t, "Command: Input", failing.Journal[0].Type)
			if name != "reset_in_between" {
				require.Len(t, failing.Journal, 1)
			}
		})
	}
	w.requireHealthy("Good/greet")
	t.Run("in the command line client", func(t *testing.T) {
		w := w.withT(t)
		out, errs, exit := w.cli("invocations", "describe", ids["unknown_handler"])
		require.Zero(t, exit, errs)
		require.Contains(t, out, "RT0018")
		require.Contains(t, out, "Good/nope")
		out, _, _ = w.cli("invocations", "list", "--status", "backing-off,running", "--service", "Bad")
		require.Contains(t, out, "RT0003")
		require.NotContains(t, out, "\x1b")
	})
	for name := range endpointFaults {
		e.script("Bad/"+name, succeed)
	}
	require.Less(t, e.attemptCount("Bad/status_429"), 100, "a Retry-After of 0 must not cause a busy loop")
	for name, id := range ids {
		a := w.attach(id)
		require.Equal(t, 200, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, `"hi"`, string(a.Body), name)
	}
	log := w.server.Process.LogTail(10_000)
	require.NotContains(t, log, "goroutine ", "a stack trace in the log")
	require.NotContains(t, log, " ERROR ", "faults of endpoints are not errors of the server")
}

// TestLargeResponseHeadAffectsOnlyItsEndpoint has an endpoint whose response headers break
// the connection that its attempts share.
func TestLargeResponseHeadAffectsOnlyItsEndpoint(t *testing.T) {
	w, _ := newFaultyEndpoint(t)
	e := newEndpoint(t, serveManifest(t, manifest(serviceManifest("Huge", "SERVICE", object{"retryPolicyInitialInterval": 50}, object{"name": "head"}))))
	e.script("Huge/head", respondStatus(200, "x-long", strings.Repeat("x", 4*mebi), ""))
	w.register(e.URL, nil)
	id := w.send("Huge/head")
	failing := w.awaitInvocation(id, func(i invocation) bool { return i.RetryCount >= 3 })
	require.Equal(t, "RT0010", failing.LastErrorCode)
	w.requireHealthy("Good/greet")
	e.script("Huge/head", succeed)
	require.Equal(t, 200, w.attach(id).Status)
}

func TestRetryAfterSetsTheNextDelay(t *testing.T) {
	w, e := newFaultyEndpoint(t)
	begin := time.Now()
	e.script("Bad/status_429", func(x *exchange) {
		if x.attempt > 1 {
			succeed(x)
			return
		}
		respondStatus(429, "Retry-After", "4", "slow down")(x)
	})
	id := w.send("Bad/status_429")
	waiting := w.awaitInvocation(id, func(i invocation) bool { return i.NextRetryAt != "" })
	require.Equal(t, "backing-off", waiting.Status)
	at, err := time.Parse(time.RFC3339Nano, waiting.NextRetryAt)
	require.NoError(t, err)
	require.WithinRange(t, at, begin.Add(3900*time.Millisecond), time.Now().Add(4*time.Second))
	require.Equal(t, 200, w.attach(id).Status)
	require.GreaterOrEqual(t, time.Since(begin), 3900*time.Millisecond)
}

// TestDataAfterEndIsIgnored has handlers that send data after the End message.
func TestDataAfterEndIsIgnored(t *testing.T) {
	w, e := newFaultyEndpoint(t)
	for name, garbage := range map[string][]byte{
		"status_404": []byte("garbage after the end, and more of it"),
		"status_413": slices.Concat(output, end, end, frame(0x0099, nil)),
		"status_415": make([]byte, 4*mebi),
		"status_500": errorMessage(500, "changed my mind"),
	} {
		e.script("Bad/"+name, respondAndClose(output, end, garbage))
		a := w.call("Bad/" + name)
		require.Equal(t, 200, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, `"hi"`, string(a.Body))
		require.Len(t, w.describe(a.ID()).Journal, 2)
		require.Equal(t, 1, e.attemptCount("Bad/"+name))
	}
	w.requireHealthy("Good/greet")
}
