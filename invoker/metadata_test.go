package invoker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/invoker/endpoint"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/machine"
)

// TestFailuresAreDeliveredWithTheirMetadata uses a callee that fails, live and replayed.
func TestFailuresAreDeliveredWithTheirMetadata(t *testing.T) {
	for version, told := range map[int32]bool{5: false, 6: true, 7: true} {
		failure := "08cc03" + "12" + length("nope")
		pair := "1a06" + "0a0161" + "120162"
		want := failure
		if told {
			want += pair
		}
		value := func(f string) string { return "32" + hexOf(string(rune(len(f)/2))) + f }
		b := scripted(t, v7Config(), func(x *exchange) {
			x.replay(1)
			x.head()
			f := failure + pair
			x.send(frame(0x0411, "5801") + frame(protocol.ProposeRunCompletion, "0801"+"7a"+hexOf(string(rune(len(f)/2)))+f))
			x.expect(0x8011, "0801"+value(want))
			x.send(frame(protocol.Error, "08f403"))
		}, func(x *exchange) {
			_, entries := x.replay(3)
			if got := entries[2].payload; got != "0801"+value(want) {
				t.Errorf("version %d: replayed %s", version, got)
			}
			x.head()
			x.send(outputHi + end)
			x.expectEnd()
		})
		b.change(func(d *metadata.Deployment) { d.MaxProtocol = version })
		_, ended := b.shard.call(greeter, 1, `"hi"`)
		require.Nil(t, receive(t, ended).Failure)
	}
}

// starts keeps what streams are sent.
type starts struct {
	*wire
	sent *[][]byte
}

func (s starts) Write(chunks ...[]byte) {
	var all []byte
	for _, c := range chunks {
		all = append(all, c...)
	}
	*s.sent = append(*s.sent, all)
	s.wire.Write(chunks...)
}

func TestTheStartMessageReportsFailedAttempts(t *testing.T) {
	for version := protocol.V5; version <= protocol.V7; version++ {
		synctest.Test(t, func(t *testing.T) {
			cfg := policy(0, metadata.Kill)
			cfg.EnableV7 = true
			cfg.Defaults.Retry.Factor, cfg.Defaults.Retry.MaxInterval = 1, time.Second
			respond := func(w *wire, messages string) {
				w.recv.Response(okHead(version))
				w.send(t, messages)
			}
			errs := frame(protocol.Error, "08f403"+"40d00f") // retry in 2 s
			unreachable := func(w *wire) { w.recv.End(endpoint.ErrClosed) }
			o := newOffline(t, cfg,
				func(w *wire) { respond(w, errs) },
				unreachable,
				func(w *wire) { respond(w, frame(0x0411, "5801")+errs) },
				func(w *wire) { respond(w, errs) },
				func(w *wire) { respond(w, outputHi+end) })
			defer o.close()
			o.change(func(d *metadata.Deployment) { d.MaxProtocol = int32(version) })
			var sent [][]byte
			inner := o.iv.open
			o.iv.open = func(r endpoint.Receiver) Stream {
				s := inner(r).(*wire)
				return starts{s, &sent}
			}
			_, ended := o.shard.call(greeter, 1, "x")
			require.Nil(t, receive(t, ended).Failure)
			require.Len(t, sent, 5)
			var counts []uint32
			for i, b := range sent {
				start := startMessage(t, b)
				counts = append(counts, start.RetryCountSinceLastStoredEntry)
				require.Equal(t, version >= protocol.V6, start.RandomSeed != 0)
				if start.RetryCountSinceLastStoredEntry == 0 {
					require.Zero(t, start.DurationSinceLastStoredEntry)
				} else {
					require.GreaterOrEqual(t, start.DurationSinceLastStoredEntry, uint64(2000), "attempt %d", i)
				}
			}
			require.Equal(t, []uint32{0, 1, 2, 1, 2}, counts)
		})
	}
}

func okHead(v protocol.Version) endpoint.Head {
	return endpoint.Head{Status: 200, Header: map[string][]string{"Content-Type": {v.ContentType()}}}
}

func TestOperatorsSeeWhereAnAttemptFailed(t *testing.T) {
	cfg := quickConfig()
	cfg.Defaults.Retry.MaxAttempts, cfg.Defaults.Retry.OnMaxAttempts = 1, metadata.Pause
	b := scripted(t, cfg, answerWith(frame(protocol.Error, "08f403"+"12"+length("boom")+"1a"+length("at x.go:1")+"2001"+"2a"+length("charge")+"309108")))
	id, _ := b.shard.call(greeter, 1, `"hi"`)
	b.shard.await(id, machine.Paused)
	f := b.shard.record(id).Failure
	index := uint32(1)
	require.Equal(t, machine.AttemptFailure{
		Code: 500, ErrorCode: "RT0007", Message: "boom", Stacktrace: "at x.go:1",
		RelatedIndex: &index, RelatedName: "charge", RelatedCommand: 0x0411,
	}, *f)
}
