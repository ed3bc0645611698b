package raftgroup

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// openStorage opens one of the two kinds of storage in dir; reopen closes and
// opens it again.
type openStorage func(t *testing.T, dir string) (s Storage, closeIt func())

var storages = map[string]openStorage{
	"pebble": func(t *testing.T, dir string) (Storage, func()) {
		db, err := OpenLogDB(dir, LogDBOptions{Logger: testLogger(t)})
		require.NoError(t, err)
		s, err := db.Storage(7)
		require.NoError(t, err)
		return s, func() { require.NoError(t, db.Close()) }
	},
	"bolt": func(t *testing.T, dir string) (Storage, func()) {
		s, err := OpenBoltStorage(filepath.Join(dir, "raft.db"), BoltOptions{Logger: testLogger(t), MmapBytes: 1 << 20})
		require.NoError(t, err)
		return s, func() { require.NoError(t, s.Close()) }
	},
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
	f, l, err := logBounds(s)
	require.NoError(t, err)
	require.Equal(t, first, f, "first index")
	require.Equal(t, last, l, "last index")
}

func TestStorageContract(t *testing.T) {
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, closeIt := open(t, dir)
			requireBounds(t, s, 0, 0)
			require.ErrorIs(t, s.GetLog(1, new(raft.Log)), raft.ErrLogNotFound)
			_, err := s.Get([]byte("absent"))
			require.EqualError(t, err, "not found")
			_, err = s.GetUint64([]byte("absent"))
			require.EqualError(t, err, "not found")

			require.NoError(t, s.StoreLogs(testLogs(1, 20)))
			require.NoError(t, s.StoreLog(&raft.Log{Index: 21, Term: 4, Type: raft.LogConfiguration, Data: []byte("c"), Extensions: []byte("x")}))
			require.NoError(t, s.Set([]byte("name"), []byte("value")))
			require.NoError(t, s.Set([]byte("empty"), nil))
			require.NoError(t, s.SetUint64([]byte("number"), 1<<63))
			requireBounds(t, s, 1, 21)

			require.NoError(t, s.DeleteRange(1, 5))   // compaction
			require.NoError(t, s.DeleteRange(15, 21)) // conflict
			requireBounds(t, s, 6, 14)
			require.NoError(t, s.StoreLog(&raft.Log{Index: 15, Term: 5, Type: raft.LogNoop, Extensions: []byte("more")}))

			closeIt()
			s, closeIt = open(t, dir)
			defer closeIt()
			requireBounds(t, s, 6, 15)
			require.ErrorIs(t, s.GetLog(5, new(raft.Log)), raft.ErrLogNotFound)
			require.ErrorIs(t, s.GetLog(16, new(raft.Log)), raft.ErrLogNotFound)
			var log raft.Log
			require.NoError(t, s.GetLog(6, &log))
			require.True(t, log.AppendedAt.Equal(time.Unix(1700000000, 6)))
			require.Equal(t, "data 6", string(log.Data))
			require.Equal(t, uint64(3), log.Term)
			require.NoError(t, s.GetLog(15, &log))
			require.Equal(t, raft.LogNoop, log.Type)
			require.Equal(t, "more", string(log.Extensions))
			require.Empty(t, log.Data)
			v, err := s.Get([]byte("name"))
			require.NoError(t, err)
			require.Equal(t, "value", string(v))
			v, err = s.Get([]byte("empty"))
			require.NoError(t, err)
			require.Empty(t, v)
			n, err := s.GetUint64([]byte("number"))
			require.NoError(t, err)
			require.Equal(t, uint64(1<<63), n)
		})
	}
}

func TestDeleteRangeOfMoreThanOneChunk(t *testing.T) {
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			s, closeIt := open(t, t.TempDir())
			defer closeIt()
			require.NoError(t, s.StoreLogs(testLogs(1, 3*deleteBatch)))
			require.NoError(t, s.DeleteRange(1, deleteBatch+10))
			requireBounds(t, s, deleteBatch+11, 3*deleteBatch)
			require.NoError(t, s.DeleteRange(deleteBatch+20, 3*deleteBatch))
			requireBounds(t, s, deleteBatch+11, deleteBatch+19)
			require.NoError(t, s.DeleteRange(deleteBatch+11, deleteBatch+19))
			requireBounds(t, s, 0, 0)
		})
	}
}

func TestGroupsShareADatabaseWithoutSeeingEachOther(t *testing.T) {
	db, err := OpenLogDB(t.TempDir(), LogDBOptions{Logger: testLogger(t)})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var stores []*LogStore
	for _, group := range []uint32{0, 1, ^uint32(0)} {
		s, err := db.Storage(group)
		require.NoError(t, err)
		require.NoError(t, s.StoreLogs(testLogs(1, uint64(group%7)+5)))
		require.NoError(t, s.SetUint64([]byte("k"), uint64(group)))
		stores = append(stores, s)
	}
	require.NoError(t, stores[1].DeleteRange(1, 100))
	require.NoError(t, db.Destroy(^uint32(0)))
	for group, want := range map[uint32][2]uint64{0: {1, 5}, 1: {0, 0}, ^uint32(0): {0, 0}} {
		s, err := db.Storage(group)
		require.NoError(t, err)
		requireBounds(t, s, want[0], want[1])
	}
	v, err := stores[0].GetUint64([]byte("k"))
	require.NoError(t, err)
	require.Zero(t, v)
	_, err = stores[2].GetUint64([]byte("k"))
	require.EqualError(t, err, "not found")
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

	db, err := OpenLogDB(t.TempDir(), LogDBOptions{Logger: testLogger(t)})
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
	db, err := OpenLogDB(t.TempDir(), LogDBOptions{Logger: testLogger(t)})
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

func TestDamagedBoltEntryIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s, err := OpenBoltStorage(path, BoltOptions{Logger: testLogger(t)})
	require.NoError(t, err)
	require.NoError(t, s.StoreLogs(testLogs(1, 3)))
	require.NoError(t, s.Set([]byte("CurrentTerm"), []byte("12345678")))
	require.NoError(t, s.Close())

	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range []string{"logs", "conf"} {
			b := tx.Bucket([]byte(bucket))
			k, v := b.Cursor().First()
			bad := append([]byte(nil), v...)
			bad[len(bad)/2] ^= 1
			if err := b.Put(k, bad); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())

	s, err = OpenBoltStorage(path, BoltOptions{Logger: testLogger(t)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Error(t, s.GetLog(1, new(raft.Log)))
	require.NoError(t, s.GetLog(2, new(raft.Log)))
	_, err = s.Get([]byte("CurrentTerm"))
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestDirectoriesArePrivate(t *testing.T) {
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			_, closeIt := open(t, dir)
			defer closeIt()
			st, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
		})
	}
}

func TestBallastIsFreedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ballast")
	require.NoError(t, CreateBallast(path, 1<<20))
	require.NoError(t, CreateBallast(path, 1<<20))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, int64(1<<20), st.Size())
	freeBallast(path, testLogger(t))
	freeBallast(path, testLogger(t))
	require.NoFileExists(t, path)
}

func TestLogCacheStaysWithinItsBytes(t *testing.T) {
	c := &logCache{maxBytes: 1 << 10}
	var log raft.Log
	for i := uint64(1); i <= 1000; i++ {
		c.add(testLogs(i, i))
		require.LessOrEqual(t, c.bytes, c.maxBytes)
		require.True(t, c.get(i, &log))
		require.Equal(t, i, log.Index)
	}
	require.False(t, c.get(1, &log))
	require.False(t, c.get(1001, &log))
	c.cut(998)
	require.False(t, c.get(998, &log))
	require.True(t, c.get(999, &log))
	c.add(testLogs(500, 500)) // a suffix was replaced
	require.True(t, c.get(500, &log))
	require.False(t, c.get(999, &log))
	c.clear()
	require.False(t, c.get(500, &log))
	require.Zero(t, c.bytes)
}
