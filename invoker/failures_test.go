package invoker

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/target"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

func answerWith(messages string) func(*exchange) {
	return func(x *exchange) {
		x.replay(1)
		x.head()
		x.send(messages)
	}
}

func status(code int, header, value, body string) func(*exchange) {
	return func(x *exchange) {
		if header != "" {
			x.w.Header().Set(header, value)
		}
		x.w.WriteHeader(code)
		_, _ = x.w.Write([]byte(body))
	}
}

// TestFailedAttempts covers everything that an endpoint can do wrong. Each time the next attempt
// succeeds and the invocation ends.
func TestFailedAttempts(t *testing.T) {
	call := func(service, handler, rest string) string {
		return frame(journal.Call, "0a"+length(service)+"12"+length(handler)+rest+"50015802")
	}
	for name, c := range map[string]struct {
		script  func(*exchange)
		code    errcode.Code
		message string
	}{
		"wrong frame":          {answerWith("7468697320697320 6e6f742061206672616d65"), errcode.RT0012, "unexpected message 0x7468"},
		"unknown control type": {answerWith(frame(0x0099, "")), errcode.RT0012, "unexpected message"},
		"unknown command type": {answerWith(frame(0x0499, "")), errcode.RT0012, "unexpected message"},
		"custom command":       {answerWith(frame(0xFC01, "")), errcode.RT0012, "unexpected message"},
		"server's message":     {answerWith(frame(protocol.Start, "")), errcode.RT0012, "unexpected message Start"},
		"a notification":       {answerWith(frame(journal.SleepCompletion, "08012200")), errcode.RT0012, "unexpected message"},
		"an input":             {answerWith(frame(journal.Input, "7200")), errcode.RT0012, "unexpected message"},
		"message of version 7": {answerWith(frame(protocol.AwaitingOn, "0a021001")), errcode.RT0012, "unexpected message"},
		"undecodable":          {answerWith(frame(journal.SetState, "0aff")), errcode.RT0012, "cannot be decoded"},
		"over the limit":       {answerWith("0401000000100000"), errcode.RT0003, "1048576 bytes"},
		"early close":          {answerWith(""), errcode.RT0007, "without an end, a suspension or an error"},
		"close in a message":   {answerWith("0401000000000008 7206"), errcode.RT0010, "middle of a message"},
		"end without output":   {answerWith(end), errcode.RT0012, "without an output"},
		"empty suspension":     {answerWith(frame(protocol.Suspension, "")), errcode.RT0012, "Suspension"},
		"proposal w/o result":  {answerWith(frame(protocol.ProposeRunCompletion, "0801")), errcode.RT0012, "ProposeRunCompletion"},
		"error message": {answerWith(frame(protocol.Error, "08f403"+"12"+length("boom"))),
			errcode.RT0007, "boom"},
		"journal mismatch":   {answerWith(frame(protocol.Error, "08ba04"+"12"+length("boom"))), errcode.RT0016, "boom"},
		"protocol violation": {answerWith(frame(protocol.Error, "08bb04"+"12"+length("boom"))), errcode.RT0012, "boom"},
		"state of a service": {answerWith(frame(journal.SetState, "0a01611a00")), errcode.RT0017, "plain service"},
		"read of a service":  {answerWith(frame(journal.GetLazyState, "0a01615801")), errcode.RT0017, "plain service"},
		"promise":            {answerWith(frame(journal.GetPromise, "0a01615801")), errcode.RT0017, "workflow"},
		"unknown service":    {answerWith(call("Nobody", "x", "")), errcode.RT0018, "Nobody"},
		"unknown handler":    {answerWith(call("Greeter", "x", "")), errcode.RT0018, "Greeter/x"},
		"key of a service":   {answerWith(call("Greeter", "greet", "2a0161")), errcode.RT0017, "takes no key"},
		"empty idempotency":  {answerWith(call("Greeter", "greet", "3200")), errcode.RT0017, "idempotency key is empty"},
		"scope":              {answerWith(call("Greeter", "greet", "3a0161")), errcode.RT0024, "flow control"},
		"bad signal target":  {answerWith(frame(journal.SendSignal, "0a01781001"+"2200")), errcode.RT0017, "invocation id"},
		"bad awakeable":      {answerWith(frame(journal.CompleteAwakeable, "0a01781200")), errcode.RT0012, "awakeable ID"},

		"502":              {status(502, "", "", "no\xffway "), errcode.RT0010, "status 502: no�way"},
		"504":              {status(504, "", "", ""), errcode.RT0010, "status 504"},
		"503":              {status(503, "Retry-After", "1", ""), errcode.RT0023, "status 503"},
		"429":              {status(429, "", "", ""), errcode.RT0023, "status 429"},
		"415":              {status(415, "", "", ""), errcode.RT0015, "status 415"},
		"413":              {status(413, "", "", ""), errcode.RT0019, "status 413"},
		"404":              {status(404, "", "", strings.Repeat("x", 5000)), errcode.RT0012, strings.Repeat("x", 1024)},
		"401":              {status(401, "", "", ""), errcode.RT0012, "status 401"},
		"redirect":         {status(302, "Location", "http://127.0.0.1:1/", ""), errcode.RT0012, "status 302"},
		"no content type":  {status(200, "Content-Type", "", ""), errcode.RT0012, "content type"},
		"its own version":  {status(200, "Content-Type", "application/vnd.restate.invocation.v5", ""), errcode.RT0012, "content type"},
		"connection reset": {func(*exchange) { panic(http.ErrAbortHandler) }, errcode.RT0010, "the stream was reset with INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := quickConfig()
			cfg.MessageSizeLimit = 1 << 20
			seen := make(chan struct{})
			b := scripted(t, cfg, c.script, func(x *exchange) {
				select {
				case <-seen:
					echo(x)
				case <-x.r.Context().Done():
				}
			})
			id, ended := b.shard.call(greeter, 1, `"hi"`)
			f := lastFailure(t, b, id)
			close(seen)
			require.Equal(t, string(c.code), f.ErrorCode, f.Message)
			require.Contains(t, f.Message, c.message)
			require.NotContains(t, f.Message, string(c.code), "the code goes beside the message")
			require.Equal(t, `"hi"`, string(receive(t, ended).Value))
			require.Equal(t, []journal.Type{journal.Input, journal.Output}, b.shard.journal(id))
		})
	}
}

// length is a string with its length before it, in hex.
func length(s string) string { return hexOf(string(rune(len(s)))) + hexOf(s) }

func TestStepsBeforeAFailureAreStored(t *testing.T) {
	b := scripted(t, quickConfig(), answerWith(frame(journal.Run, "5801")+frame(journal.SetState, "0a01611a00")), func(x *exchange) {
		_, entries := x.replay(2)
		if entries[1].kind != journal.Run {
			t.Errorf("replayed %v", entries)
		}
		x.head()
		x.send(outputHi + end)
		x.expectEnd()
	})
	_, ended := b.shard.call(greeter, 1, `"hi"`)
	require.Equal(t, `"hi"`, string(receive(t, ended).Value))
}

func TestTheNextAttemptWaitsUntilTheLastOneIsStored(t *testing.T) {
	begin, failed := make(chan struct{}), make(chan struct{})
	b := scripted(t, quickConfig(), func(x *exchange) {
		x.replay(1)
		x.head()
		<-begin
		x.send(frame(journal.Run, "5801") + frame(protocol.ProposeRunCompletion, "0801720131") + frame(protocol.Error, "08f403"))
		x.expectEnd()
		close(failed)
	}, func(x *exchange) {
		x.replay(3)
		x.head()
		x.send(outputHi + end)
		x.expectEnd()
	})
	id, ended := b.shard.call(greeter, 1, `"hi"`)
	require.Eventually(t, func() bool { return b.started() == 1 }, time.Minute, time.Millisecond)
	b.shard.hold(true)
	close(begin)
	<-failed
	require.Never(t, func() bool { return b.started() > 1 }, 50*time.Millisecond, 10*time.Millisecond)
	st, _ := b.iv.Status(id)
	require.True(t, st.InFlight)
	b.shard.hold(false)
	receive(t, ended)
	require.Equal(t, 2, b.started())
}

func TestGarbageAfterTheEndIsIgnored(t *testing.T) {
	b := scripted(t, quickConfig(), func(x *exchange) {
		x.replay(1)
		x.head()
		x.send(outputHi + end + outputHi + "ffffffffffffffffff" + end)
		x.send("ffff")
	})
	id, ended := b.shard.call(greeter, 1, `"hi"`)
	require.Equal(t, `"hi"`, string(receive(t, ended).Value))
	require.Equal(t, []journal.Type{journal.Input, journal.Output}, b.shard.journal(id))
	require.Equal(t, 1, b.started())
}

func TestTheFailingCommandIsNamed(t *testing.T) {
	b := scripted(t, onceConfig(), answerWith(frame(journal.Run, "5801")+frame(journal.ClearState, "0a0161")))
	id, _ := b.shard.call(greeter, 1, `"hi"`)
	f := lastFailure(t, b, id)
	require.EqualValues(t, 2, *f.RelatedIndex)
	require.Equal(t, journal.ClearState, f.RelatedCommand)
}

func TestSharedHandlersMayNotWrite(t *testing.T) {
	target := machine.Target{Service: "Counter", Key: "k", Handler: "get", Type: target.ObjectShared}
	b := scripted(t, onceConfig(), answerWith(frame(journal.ClearAllState, "")))
	id, _ := b.shard.call(target, 1, `"hi"`)
	f := lastFailure(t, b, id)
	require.Equal(t, "RT0017", f.ErrorCode)
	require.Contains(t, f.Message, "shared handler")
}

func TestDeploymentsThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		code   errcode.Code
		change func(*bench)
	}{
		"no deployment": {errcode.RT0011, func(b *bench) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.schemas = &metadata.Schemas{}
		}},
		"no version": {errcode.RT0013, func(b *bench) {
			b.change(func(d *metadata.Deployment) { d.MinProtocol, d.MaxProtocol = 7, 8 })
		}},
		"unusable address": {errcode.RT0010, func(b *bench) {
			b.change(func(d *metadata.Deployment) { d.URI = "ftp://x/" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := scripted(t, quickConfig(), echo)
			before := b.Schemas()
			c.change(b)
			id, ended := b.shard.call(greeter, 1, `"hi"`)
			require.Equal(t, string(c.code), lastFailure(t, b, id).ErrorCode)
			b.mu.Lock()
			b.schemas = before
			b.mu.Unlock()
			receive(t, ended)
		})
	}
}

func TestPinnedVersionThatIsGone(t *testing.T) {
	b := scripted(t, quickConfig(), func(x *exchange) {
		x.replay(1)
		x.head()
		x.send(frame(journal.Run, "5801"))
		x.send(frame(protocol.Error, "08f403"+"12"+length("first")))
	}, func(x *exchange) { // an attempt that began before the deployment changed
		x.replay(2)
		x.head()
		x.send(frame(protocol.Error, "08f403"+"12"+length("again")))
	})
	b.change(func(d *metadata.Deployment) { d.MaxProtocol = 5 })
	id, _ := b.shard.call(greeter, 1, `"hi"`)
	require.Equal(t, "RT0007", lastFailure(t, b, id).ErrorCode)
	b.change(func(d *metadata.Deployment) { d.MinProtocol, d.MaxProtocol = 6, 6 })
	require.Eventually(t, func() bool { return lastFailure(t, b, id).ErrorCode == "RT0014" }, time.Minute, time.Millisecond)
	b.change(func(d *metadata.Deployment) { d.ID = "dp_10000000000000000000002" })
	b.mu.Lock()
	delete(b.schemas.Deployments, testDeployment)
	b.mu.Unlock()
	require.Eventually(t, func() bool { return lastFailure(t, b, id).ErrorCode == "RT0011" }, time.Minute, time.Millisecond)
}

func TestBrokenConnectionsAreReportedAlike(t *testing.T) {
	local := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	var texts []string
	for port := range 2 {
		err := &net.OpError{Op: "read", Net: "tcp", Source: local(40_000 + port), Addr: local(80), Err: errors.New("connection reset by peer")}
		texts = append(texts, broken(fmt.Errorf("wrapped: %w", err)).Message)
	}
	require.Equal(t, texts[0], texts[1])
	require.Equal(t, "connection to the endpoint: read 127.0.0.1:80: connection reset by peer", texts[0])
}

// net/http reports the streams of a connection that it has closed as if the client had done so.
func TestALostConnectionIsNotReportedAsClosedByTheClient(t *testing.T) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	started := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	}))
	server.Config.Protocols = &protocols
	server.Start()
	t.Cleanup(server.Close)
	conn, err := (&http.Transport{Protocols: &protocols}).NewClientConn(t.Context(), "http", server.Listener.Addr().String())
	require.NoError(t, err)
	go func() {
		<-started
		_ = conn.Close()
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	require.NoError(t, err)
	response, err := conn.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	require.Error(t, err)
	require.Equal(t, "connection to the endpoint: the connection was lost while sending", broken(err).Message)
}

func TestFailureTextsAreBounded(t *testing.T) {
	text := strings.Repeat("é", 10<<20)
	f := failureFrom(&protocol.Failure{Code: 500, Message: text, Stacktrace: text, RelatedName: text})
	for _, s := range []string{f.Message, f.Stacktrace, f.RelatedName} {
		require.LessOrEqual(t, len(s), failureText)
		require.True(t, utf8.ValidString(s))
		require.Contains(t, s, "éé… (cut; 20971520 bytes)")
	}
	require.Equal(t, "short", clip("short", 5))
}

// Errors repeat what the endpoint has sent, which may be as long as a message.
func TestTextsOfFailuresThatTheServerFindsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(1, metadata.Pause), func(w *wire) {
			w.ok()
			id := strings.Repeat("00", 4<<20)
			w.send(t, frame(journal.CompleteAwakeable, "0a"+varint(4<<20)+id+"1200"))
		})
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		o.shard.await(id, machine.Paused)
		f := o.shard.record(id).Failure
		require.Equal(t, "RT0012", f.ErrorCode)
		require.LessOrEqual(t, len(f.Message), failureText)
	})
}
