package invoker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

func v7Config() Config {
	cfg := quickConfig()
	cfg.EnableV7 = true
	return cfg
}

// awaitedBy waits until the status says what the handler waits for, or nothing.
func awaitedBy(t testing.TB, b *bench, id ids.Invocation, some bool) *journal.Await {
	t.Helper()
	var found *journal.Await
	require.Eventually(t, func() bool {
		st, ok := b.iv.Status(id)
		found = st.Awaiting
		return ok && (found != nil) == some
	}, time.Minute, time.Millisecond)
	return found
}

func TestAwaitIsShownUntilItIsResolved(t *testing.T) {
	woken, goOn := make(chan struct{}), make(chan struct{})
	b := scripted(t, v7Config(), func(x *exchange) {
		x.replay(1)
		x.head()
		wake := journalMillis(time.Now().Add(time.Hour))
		x.send(frame(journal.Sleep, "08"+wake+"5801") + frame(journal.Sleep, "08"+wake+"5802"))
		// Any of sleeps 1 and 2; a side effect is being executed meanwhile.
		x.send(frame(protocol.AwaitingOn, "0a06"+"0a0201022801"+"1001"))
		x.expect(journal.SleepCompletion, "08012200")
		close(woken)
		<-goOn
		x.send(frame(protocol.AwaitingOn, "0a05"+"0a01022801"))
		<-goOn
		x.send(outputHi + end)
		x.expectEnd()
	})
	id, ended := b.shard.call(greeter, 1, `"hi"`)
	await := awaitedBy(t, b, id, true)
	require.True(t, await.Executing)
	for _, index := range []uint32{1, 2} {
		require.True(t, await.On.Has(journal.NotificationID{Index: index}))
	}
	b.shard.fire(0)
	<-woken
	awaitedBy(t, b, id, false)
	goOn <- struct{}{}
	await = awaitedBy(t, b, id, true)
	require.False(t, await.Executing)
	require.False(t, await.On.Has(journal.NotificationID{Index: 1}))
	goOn <- struct{}{}
	receive(t, ended)
}

// An SDK may report an await after its result was sent to it.
func TestAnAwaitReportedAfterItsResultIsNotShown(t *testing.T) {
	goOn := make(chan struct{})
	b := scripted(t, v7Config(), func(x *exchange) {
		x.replay(1)
		x.head()
		wake := journalMillis(time.Now().Add(time.Hour))
		x.send(frame(journal.Sleep, "08"+wake+"5801") + frame(journal.Sleep, "08"+wake+"5802"))
		x.send(frame(protocol.AwaitingOn, "0a05"+"0a01022801"))
		x.expect(journal.SleepCompletion, "08012200")
		x.send(frame(protocol.AwaitingOn, "0a05"+"0a01012801"))
		<-goOn
		x.send(frame(protocol.AwaitingOn, "0a05"+"0a01022801"))
		<-goOn
		x.send(outputHi + end)
		x.expectEnd()
	})
	id, ended := b.shard.call(greeter, 1, `"hi"`)
	awaitedBy(t, b, id, true)
	b.shard.fire(0)
	awaitedBy(t, b, id, false)
	goOn <- struct{}{}
	require.True(t, awaitedBy(t, b, id, true).On.Has(journal.Completion(2)))
	goOn <- struct{}{}
	receive(t, ended)
}

// nested is a future with a leaf that many levels down.
func nested(levels int) string {
	text := "0a01012801"
	for range levels - 1 {
		inner := unhexLen(text)
		text = "22" + varint(inner) + text + "2801"
	}
	return text
}

func unhexLen(text string) int { return len(text) / 2 }

func varint(n int) string {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return hexOf(string(append(b, byte(n))))
}

func TestFuturesNestedTooDeeplyPause(t *testing.T) {
	for name, c := range map[string]struct {
		configured, levels int
		message            func(future string) string
		pauses             bool
	}{
		"hint as deep as allowed":    {5, 5, hint, false},
		"hint too deep":              {5, 6, hint, true},
		"hint of any depth":          {0, 900, hint, false},
		"suspension too deep":        {5, 6, suspension, true},
		"suspension beyond the most": {0, journal.MaxDepth + 1, suspension, true},
		"hint beyond the most":       {0, journal.MaxDepth + 1, hint, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := v7Config()
			cfg.MaxAwaitDepth = c.configured
			cfg.Defaults.Retry.OnMaxAttempts = metadata.Kill // it is not the policy that pauses
			b := scripted(t, cfg, func(x *exchange) {
				x.replay(1)
				x.head()
				x.send(c.message(nested(c.levels)))
				if !c.pauses {
					x.send(outputHi + end)
					x.expectEnd()
				}
			})
			id, ended := b.shard.call(greeter, 1, `"hi"`)
			if !c.pauses {
				require.Nil(t, receive(t, ended).Failure)
				return
			}
			b.shard.await(id, machine.Paused)
			f := b.shard.record(id).Failure
			require.Equal(t, "RT0025", f.ErrorCode)
			require.Contains(t, f.Message, "levels deep")
			require.Equal(t, 1, b.started())
		})
	}
}

func hint(future string) string {
	return frame(protocol.AwaitingOn, "0a"+varint(unhexLen(future))+future)
}

func suspension(future string) string {
	return frame(protocol.Suspension, "22"+varint(unhexLen(future))+future)
}

func TestInvalidAwaitsFailTheAttempt(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "no future": "1001", "not a future": "0a03ffffff"} {
		t.Run(name, func(t *testing.T) {
			cfg := onceConfig()
			cfg.EnableV7 = true
			b := scripted(t, cfg, answerWith(frame(protocol.AwaitingOn, body)))
			id, _ := b.shard.call(greeter, 1, `"hi"`)
			require.Equal(t, "RT0012", lastFailure(t, b, id).ErrorCode)
		})
	}
}
