package logstore

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

var quiet = slog.New(slog.DiscardHandler)

// openStorage opens group 7 of a log database; closeIt closes it.
func openStorage(t *testing.T, dir string) (s *PebbleStorage, closeIt func()) {
	db, err := Open(dir, Options{Logger: quiet})
	require.NoError(t, err)
	s, err = db.Storage(7)
	require.NoError(t, err)
	return s, func() { require.NoError(t, db.Close()) }
}

func testLogs(from, to uint64) (out []*raft.Log) {
	for i := from; i <= to; i++ {
		out = append(out, &raft.Log{
			Index: i, Term: 3, Type: raft.LogCommand, Data: fmt.Appendf(nil, "data %d", i),
			AppendedAt: time.Unix(1700000000, int64(i)),
		})
	}
	return out
}

func requireBounds(t *testing.T, s Storage, first, last uint64) {
	t.Helper()
	f, l, err := Bounds(s)
	require.NoError(t, err)
	require.Equal(t, first, f, "first index")
	require.Equal(t, last, l, "last index")
}

// TestStoredEntryBytes pins the format on disk.
func TestStoredEntryBytes(t *testing.T) {
	log := raft.Log{
		Index: 300, Term: 5, Type: raft.LogBarrier, Data: []byte("data"), Extensions: []byte("ext"),
		AppendedAt: time.Unix(0, 1_700_000_000_123_456_789),
	}
	key := logKey(9, log.Index)
	require.Equal(t, "6c00000009000000000000012c", hex.EncodeToString(key))
	value := appendEntryHeader(nil, &log)
	value = append(append(value, log.Extensions...), log.Data...)
	require.Equal(t, "010405aab4aed8c7bfce972f030465787464617461", hex.EncodeToString(value))
	require.Equal(t, uint32(0xe678abe2), entryChecksum(key, value))

	db, err := Open(t.TempDir(), Options{Logger: quiet})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	s, err := db.Storage(9)
	require.NoError(t, err)
	require.NoError(t, s.StoreLog(&log))
	stored, closer, err := db.db.Get(key)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(value)+"e2ab78e6", hex.EncodeToString(stored))
	require.NoError(t, closer.Close())
}

// TestDamagedEntryIsFound flips each bit of a stored entry in turn.
func TestDamagedEntryIsFound(t *testing.T) {
	db, err := Open(t.TempDir(), Options{Logger: quiet})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	s, err := db.Storage(1)
	require.NoError(t, err)
	require.NoError(t, s.StoreLogs(testLogs(1, 2)))
	key := logKey(1, 1)
	v, closer, err := db.db.Get(key)
	require.NoError(t, err)
	good := append([]byte(nil), v...)
	require.NoError(t, closer.Close())
	for bit := range len(good) * 8 {
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, db.db.Set(key, bad, pebble.NoSync))
		require.ErrorIs(t, s.GetLog(1, new(raft.Log)), ErrCorrupt, "bit %d", bit)
	}
	for n := range good { // torn
		require.NoError(t, db.db.Set(key, good[:n], pebble.NoSync))
		require.ErrorIs(t, s.GetLog(1, new(raft.Log)), ErrCorrupt, "length %d", n)
	}
	require.NoError(t, db.db.Set(logKey(1, 2), good, pebble.NoSync))
	require.ErrorIs(t, s.GetLog(2, new(raft.Log)), ErrCorrupt, "an entry under the index of another")
}
