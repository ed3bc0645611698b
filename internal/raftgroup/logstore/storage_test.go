package logstore_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

var quiet = slog.New(slog.DiscardHandler)

func TestStorageContract(t *testing.T) {
	for name, open := range logstoretest.Kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, closeIt := open(t, dir)
			logstoretest.RequireBounds(t, s, 0, 0)
			require.ErrorIs(t, s.GetLog(1, new(raft.Log)), raft.ErrLogNotFound)
			_, err := s.Get([]byte("absent"))
			require.EqualError(t, err, "not found")
			_, err = s.GetUint64([]byte("absent"))
			require.EqualError(t, err, "not found")

			require.NoError(t, s.StoreLogs(logstoretest.Logs(1, 20)))
			require.NoError(t, s.StoreLog(&raft.Log{Index: 21, Term: 4, Type: raft.LogConfiguration, Data: []byte("c"), Extensions: []byte("x")}))
			require.NoError(t, s.Set([]byte("name"), []byte("value")))
			require.NoError(t, s.Set([]byte("empty"), nil))
			require.NoError(t, s.SetUint64([]byte("number"), 1<<63))
			logstoretest.RequireBounds(t, s, 1, 21)

			require.NoError(t, s.DeleteRange(1, 5))   // compaction
			require.NoError(t, s.DeleteRange(15, 21)) // conflict
			logstoretest.RequireBounds(t, s, 6, 14)
			require.NoError(t, s.StoreLog(&raft.Log{Index: 15, Term: 5, Type: raft.LogNoop, Extensions: []byte("more")}))

			closeIt()
			s, closeIt = open(t, dir)
			defer closeIt()
			logstoretest.RequireBounds(t, s, 6, 15)
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
	for name, open := range logstoretest.Kinds {
		t.Run(name, func(t *testing.T) {
			s, closeIt := open(t, t.TempDir())
			defer closeIt()
			require.NoError(t, s.StoreLogs(logstoretest.Logs(1, 3*logstore.DeleteBatch)))
			require.NoError(t, s.DeleteRange(1, logstore.DeleteBatch+10))
			logstoretest.RequireBounds(t, s, logstore.DeleteBatch+11, 3*logstore.DeleteBatch)
			require.NoError(t, s.DeleteRange(logstore.DeleteBatch+20, 3*logstore.DeleteBatch))
			logstoretest.RequireBounds(t, s, logstore.DeleteBatch+11, logstore.DeleteBatch+19)
			require.NoError(t, s.DeleteRange(logstore.DeleteBatch+11, logstore.DeleteBatch+19))
			logstoretest.RequireBounds(t, s, 0, 0)
		})
	}
}

func TestGroupsShareADatabaseWithoutSeeingEachOther(t *testing.T) {
	db, err := logstore.Open(t.TempDir(), logstore.Options{Logger: quiet})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var stores []*logstore.PebbleStorage
	for _, group := range []uint32{0, 1, ^uint32(0)} {
		s, err := db.Storage(group)
		require.NoError(t, err)
		require.NoError(t, s.StoreLogs(logstoretest.Logs(1, uint64(group%7)+5)))
		require.NoError(t, s.SetUint64([]byte("k"), uint64(group)))
		stores = append(stores, s)
	}
	require.NoError(t, stores[1].DeleteRange(1, 100))
	require.NoError(t, db.Destroy(^uint32(0)))
	for group, want := range map[uint32][2]uint64{0: {1, 5}, 1: {0, 0}, ^uint32(0): {0, 0}} {
		s, err := db.Storage(group)
		require.NoError(t, err)
		logstoretest.RequireBounds(t, s, want[0], want[1])
	}
	v, err := stores[0].GetUint64([]byte("k"))
	require.NoError(t, err)
	require.Zero(t, v)
	_, err = stores[2].GetUint64([]byte("k"))
	require.EqualError(t, err, "not found")
}

func TestDirectoriesArePrivate(t *testing.T) {
	for name, open := range logstoretest.Kinds {
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

// Appending an entry does not change the size of the write-ahead log, except for one of many.
func TestEntriesOverwriteZeros(t *testing.T) {
	fs := vfs.NewCrashableMem()
	db, err := logstore.Open("log", logstore.Options{FS: fs, Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	grown, last := 0, int64(0)
	const entries = 500
	for i := range uint64(entries) {
		require.NoError(t, s.StoreLogs([]*raft.Log{{Index: i + 1, Term: 1, Data: make([]byte, 200)}}))
		if _, size := logstoretest.WriteAheadLog(t, fs, "log"); size != last {
			grown, last = grown+1, size
		}
	}
	require.LessOrEqual(t, grown, entries*250/logstore.ZeroPiece+1)

	image := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, db.Close())
	db, err = logstore.Open("log", logstore.Options{FS: image, Logger: quiet})
	require.NoError(t, err)
	defer db.Close()
	s, err = db.Storage(7)
	require.NoError(t, err)
	logstoretest.RequireBounds(t, s, 1, entries)
}
