package invoker

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// unreadable is a shard whose journals cannot be read for a while.
type unreadable struct {
	*shard
	broken atomic.Bool
}

func (u *unreadable) Load(id ids.Invocation, attempt uint64, most int, limit func(*machine.Invocation) (int, error)) (*attempts.Replay, error) {
	if u.broken.Load() {
		return nil, errors.New("read table: disk on fire")
	}
	return u.shard.Load(id, attempt, most, limit)
}

func TestUnreadableJournals(t *testing.T) {
	b := scripted(t, quickConfig(), func(x *exchange) { // a step, then an error
		x.replay(1)
		x.head()
		x.send(frame(journal.Run, "5801"))
		x.send(frame(protocol.Error, "08f403"+"12"+length("first")))
	}, func(x *exchange) {
		x.replay(2)
		x.head()
		x.send(outputHi + end)
		x.expectEnd()
	})
	b.session.Close()
	part := &unreadable{shard: b.shard}
	part.broken.Store(true)
	b.session = b.iv.openSession(part)
	b.shard.session = b.session

	id, ended := b.shard.call(greeter, 1, `"hi"`)
	require.Eventually(t, func() bool { return lastFailure(t, b, id).ErrorCode == string(errcode.RT0006) }, time.Minute, time.Millisecond)
	require.Contains(t, lastFailure(t, b, id).Message, "disk on fire")
	part.broken.Store(false)
	require.Nil(t, receive(t, ended).Failure, "it goes on once they can be")
}
