package raftgroup

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore/logstoretest"
)

func TestLogCacheStaysWithinItsBytes(t *testing.T) {
	c := &logCache{maxBytes: 1 << 10}
	var log raft.Log
	for i := uint64(1); i <= 1000; i++ {
		c.add(logstoretest.Logs(i, i))
		require.LessOrEqual(t, c.bytes, c.maxBytes)
		require.True(t, c.get(i, &log))
		require.Equal(t, i, log.Index)
	}
	require.False(t, c.get(1, &log))
	require.False(t, c.get(1001, &log))
	c.cut(998)
	require.False(t, c.get(998, &log))
	require.True(t, c.get(999, &log))
	c.add(logstoretest.Logs(500, 500)) // a suffix was replaced
	require.True(t, c.get(500, &log))
	require.False(t, c.get(999, &log))
	c.clear()
	require.False(t, c.get(500, &log))
	require.Zero(t, c.bytes)
}
