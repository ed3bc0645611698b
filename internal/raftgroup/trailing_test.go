package raftgroup

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestTrailingEntriesAreBoundedInNumberAndBytes(t *testing.T) {
	sizes := &logSizes{}
	for i := range uint64(100) {
		sizes.add([]*raft.Log{{Index: i + 1, Data: make([]byte, 1<<20)}})
	}
	alone := false
	tr := trailing{entries: 50, bytes: 1 << 40, sizes: sizes, alone: func() bool { return alone }}
	require.EqualValues(t, 50, tr.bound(90, 100))
	require.EqualValues(t, 40, tr.bound(40, 100), "no more than requested")
	require.EqualValues(t, 0, tr.bound(30, 40), "all entries are few")

	tr.bytes = 20 << 20
	require.EqualValues(t, 80, tr.bound(90, 100))
	require.EqualValues(t, 70, tr.bound(70, 100))
	tr.sizes = &logSizes{}
	require.EqualValues(t, 50, tr.bound(90, 100), "sizes are unknown after a start")

	alone = true
	require.EqualValues(t, 90, tr.bound(90, 100))
}
