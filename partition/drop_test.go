package partition

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
)

// An entry that no replica can decode is committed, an operator drops it everywhere, and
// the replicas restart.
func TestAPartitionContinuesWithoutADroppedEntry(t *testing.T) {
	c := newReplicaSet(t, nil)
	c.fill(50)
	leader := c.hosts[c.leader()]
	leader.p.group.Propose([]byte{0x08, 0x01, 0xff, 0xff})
	index := uint64(0)
	require.Eventually(t, func() bool { // the leader finds it first
		err := leader.p.group.Err()
		if entry, ok := errors.AsType[*raftgroup.EntryError](err); ok {
			index = entry.Index
		}
		return index > 0
	}, time.Minute, time.Millisecond)
	// The entry is committed: a majority has it.
	for i, h := range c.hosts {
		c.close(i)
		logs, tables := h.reopen(t)
		s, err := logs.Storage(GroupID(0))
		require.NoError(t, err)
		var log raft.Log
		if s.GetLog(index, &log) == nil {
			require.NoError(t, logs.ReplaceByNoop(GroupID(0), index))
			require.NoError(t, s.GetLog(index, &log))
			require.Equal(t, raft.LogNoop, log.Type)
		}
		require.NoError(t, logs.Release(GroupID(0)))
		require.NoError(t, errors.Join(tables.Close(), logs.Close()))
	}
	for i := range c.hosts {
		c.start(i)
	}
	c.fill(50)
	c.requireSame(0, 1, 2)
}
