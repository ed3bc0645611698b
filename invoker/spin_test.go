package invoker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/invoker/protocol"
	"platform/partition/journal"
)

// A handler that suspends until something that it has received already would run again, suspend, and so on, as fast as
// the log permits.
func TestAHandlerThatSuspendsAgainAndAgainBacksOff(t *testing.T) {
	const delayed = 3
	described := make(chan struct{})
	slept := frame(protocol.Suspension, "0801") // completion 1
	again := func(x *exchange) {
		x.replay(3)
		x.head()
		x.send(slept)
		x.expectEnd()
	}
	attempts := []func(*exchange){func(x *exchange) {
		x.replay(1)
		x.head()
		x.send(frame(journal.Sleep, "08015801") + slept)
		x.expectEnd()
	}}
	for range toleratedSpins + delayed {
		attempts = append(attempts, again)
	}
	attempts = append(attempts, func(x *exchange) {
		x.replay(3)
		x.head()
		<-described
		x.send(outputHi + end)
		x.expectEnd()
	})
	b := scripted(t, quickConfig(), attempts...)
	begin := time.Now()
	id, ended := b.shard.call(greeter, 1, `"hi"`)
	f := lastFailure(t, b, id)
	require.Equal(t, "RT0012", f.ErrorCode)
	require.Contains(t, f.Message, "nothing was added to its journal")
	close(described)
	require.Nil(t, receive(t, ended).Failure)
	require.GreaterOrEqual(t, time.Since(begin), minDelay*(1<<delayed-1))
}
