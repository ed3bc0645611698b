package raftgroup

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/wire"
	"platform/proto/node"
)

// TestAppendsOfCompactedEntriesAreAccepted repeats appends whose response was lost, after the
// follower has compacted the entries that precede them, or the entries themselves.
func TestAppendsOfCompactedEntriesAreAccepted(t *testing.T) {
	c := newTestCluster(t, 3)
	l := c.leader()
	f := (l + 1) % 3
	proposeMany(t, c.groups[l], 1, 20)
	c.awaitSame()
	require.NoError(t, c.groups[f].Snapshot(t.Context()))
	first, last, err := logstore.Bounds(c.groups[f].storage)
	require.NoError(t, err)
	require.Greater(t, first, uint64(10))

	log := c.groups[l].storage
	term := c.groups[l].Stats().Term
	for _, r := range []struct{ from, to uint64 }{
		{first, last}, {first - 1, last}, {first - 5, last - 1}, {1, last}, {1, first}, {1, first - 1}, {1, 5}, {5, 5},
	} {
		a := &raft.AppendEntriesRequest{
			RPCHeader: c.groups[l].port.header(), Term: term, PrevLogEntry: r.from - 1, LeaderCommitIndex: last,
		}
		if r.from > 1 {
			var previous raft.Log
			require.NoError(t, log.GetLog(r.from-1, &previous))
			a.PrevLogTerm = previous.Term
		}
		for i := r.from; i <= r.to; i++ {
			entry := new(raft.Log)
			require.NoError(t, log.GetLog(i, entry))
			a.Entries = append(a.Entries, entry)
		}
		in := &inbound{t: c.groups[f].port.t}
		out := in.handle(t.Context(), arrived{
			frame:    &node.RaftFrame{GroupId: c.groups[f].cfg.ID, Target: string(c.voters[f].ID), AppendRequest: wire.EncodeAppend(a)},
			deadline: time.Now().Add(time.Minute),
		})
		require.Empty(t, out.Error)
		require.True(t, out.AppendResponse.Success, "entries %d to %d, of which those before %d are compacted", r.from, r.to, first)
		require.Equal(t, last, out.AppendResponse.LastLog)
	}
	proposeMany(t, c.groups[l], 21, 25)
	c.awaitSame()
	requireCommands(t, c.journals[f], 25)
}
