package invoker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/invoker/protocol"
	"platform/partition/journal"
)

func TestCompletionsAddReportsDuplicates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c completions
		used := map[uint32]bool{}
		ids := rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32Range(math.MaxUint32-3, math.MaxUint32))
		for _, id := range rapid.SliceOfN(ids, 0, 60).Draw(t, "ids") {
			require.Equal(t, !used[id], c.add(id), "id %d", id)
			used[id] = true
		}
		for i, s := range c.spans {
			require.LessOrEqual(t, s.first, s.last)
			if i > 0 {
				require.Less(t, uint64(c.spans[i-1].last)+1, uint64(s.first), "spans that touch are one")
			}
		}
	})
}

func TestACompletionIDIsUsedOnce(t *testing.T) {
	late := journalMillis(time.Now().Add(time.Hour))
	sleep := func(id string) string { return frame(journal.Sleep, "08"+late+"58"+id) }
	call := frame(journal.Call, "0a"+length("Greeter")+"12"+length("greet")+"5003"+"5803")
	for name, script := range map[string]func(*exchange){
		"in one message after the other": answerWith(sleep("01") + sleep("02") + sleep("01")),
		"both of a call":                 answerWith(call),
		"after something stored": func(x *exchange) {
			x.replay(1)
			x.head()
			x.send(frame(journal.Run, "5801") + frame(protocol.ProposeRunCompletion, "0801720131"))
			x.expect(journal.RunCompletion, "08012a030a0131")
			x.send(sleep("01"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := scripted(t, onceConfig(), script)
			id, _ := b.shard.call(greeter, 1, `"hi"`)
			f := lastFailure(t, b, id)
			require.Equal(t, "RT0012", f.ErrorCode)
			require.Contains(t, f.Message, "completion ID")
			require.NotNil(t, f.RelatedIndex)
		})
	}
}

func TestACompletionIDOfAnEarlierAttemptIsUsed(t *testing.T) {
	late := journalMillis(time.Now().Add(time.Hour))
	again := make(chan struct{})
	b := scripted(t, quickConfig(), func(x *exchange) {
		x.replay(1)
		x.head()
		x.send(frame(journal.Sleep, "08"+late+"5801"))
		x.send(frame(protocol.Error, "08f403"))
	}, func(x *exchange) {
		x.replay(2)
		x.head()
		x.send(frame(journal.Sleep, "08"+late+"5801"))
		<-again
	})
	id, _ := b.shard.call(greeter, 1, `"hi"`)
	require.Eventually(t, func() bool { return lastFailure(t, b, id).ErrorCode == "RT0012" }, time.Minute, time.Millisecond)
	close(again)
}
