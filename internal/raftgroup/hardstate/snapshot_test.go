package hardstate

import (
	"encoding/hex"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

// TestSnapshotRecordBytes pins the format on disk.
func TestSnapshotRecordBytes(t *testing.T) {
	rec := SnapshotRecord{
		Index: 300, Term: 4, State: logstore.Position{Index: 299, Term: 3}, ConfigIndex: 1,
		Config: raft.Configuration{Servers: []raft.Server{
			{ID: "n1", Address: "a:1"}, {Suffrage: raft.Nonvoter, ID: "n2", Address: "b:2"},
		}},
	}
	b := rec.encode()
	require.Equal(t, "01ac0204ab02030102"+"00026e3103613a31"+"01026e3203623a32", hex.EncodeToString(b))
	back, err := decodeSnapshotRecord(b)
	require.NoError(t, err)
	require.Equal(t, rec, back)
	for n := range b {
		_, err := decodeSnapshotRecord(b[:n])
		require.ErrorIs(t, err, logstore.ErrCorrupt)
	}
}

// FuzzSnapshotRecord: a record is refused, or stays the same when it is stored again.
func FuzzSnapshotRecord(f *testing.F) {
	f.Add(SnapshotRecord{Index: 9, Term: 2, State: logstore.Position{Index: 8, Term: 2}, ConfigIndex: 1, Config: raft.Configuration{Servers: []raft.Server{
		{Suffrage: raft.Nonvoter, ID: "a", Address: "a:1"}, {ID: "b", Address: "b:1"},
	}}}.encode())
	f.Add(SnapshotRecord{}.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeSnapshotRecord(data)
		if err != nil {
			require.ErrorIs(t, err, logstore.ErrCorrupt)
			return
		}
		again, err := decodeSnapshotRecord(r.encode())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
