package raftgroup

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIdleGroupsNeedLittleMemory keeps the log database and eight groups within
// their part of a node's budget for an idle process (60 MiB in all).
func TestIdleGroupsNeedLittleMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	for id := range uint32(8) {
		g, err := Open(n.config(id, &nullMachine{}, n.voter()))
		require.NoError(t, err)
		defer func() { require.NoError(t, g.Shutdown(context.Background())) }()
		waitLeader(t, g)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("log database and 8 idle groups: %.1f MiB", float64(used)/(1<<20))
	require.Less(t, used, int64(16<<20))
}
