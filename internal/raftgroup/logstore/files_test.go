package logstore

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// fileLog returns an entry that is stored in a file.
func fileLog(index, term uint64, content byte) *raft.Log {
	data := make([]byte, fileEntry+int(content)*chunkSize)
	for i := range data {
		data[i] = content
	}
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: data}
}

func openLog(t *testing.T, fs vfs.FS) (*PebbleStorage, *DB) {
	t.Helper()
	db, err := Open("log", Options{FS: fs, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	return s, db
}

// The chunks of an entry in a file take no place in the memtables and the write-ahead log, whose syncs other groups
// wait for, and survive a power failure.
func TestEntriesInFilesAreWrittenOnce(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, db := openLog(t, fs)
	flushes, written := db.db.Metrics().Flush.Count, db.Written()
	logs := []*raft.Log{fileLog(1, 1, 1), {Index: 2, Term: 1, Data: []byte("small")}, fileLog(3, 1, 3)}
	require.NoError(t, s.StoreLogs(logs))
	m := db.db.Metrics()
	require.Less(t, m.WAL.BytesWritten, uint64(chunkSize))
	require.Equal(t, flushes, m.Flush.Count)
	require.Greater(t, db.Written(), written, "the watchdog must see progress")
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, db.Close())

	s, db = openLog(t, crashed)
	requireBounds(t, s, 1, 3)
	requireLogs(t, s, logs)
	require.NoError(t, db.Close())
}

// An entry replaces a removed one. A power failure before its row is synced may undo the removal, and the removed entry
// must be as it was.
func TestPowerFailureWhileAnEntryInAFileIsReplaced(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s, db := openLog(t, fs)
	old := []*raft.Log{fileLog(1, 1, 1), fileLog(2, 1, 2)}
	require.NoError(t, s.StoreLogs(old))
	require.NoError(t, s.DeleteRange(2, 2))
	s, err := db.Storage(7)
	require.NoError(t, err)
	b := db.db.NewBatch()
	require.NoError(t, s.put(b, fileLog(2, 2, 9)))
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, b.Close())
	require.NoError(t, db.Close())

	s, db = openLog(t, crashed)
	last, err := s.LastIndex()
	require.NoError(t, err)
	requireLogs(t, s, old[:last])
	replacement := []*raft.Log{fileLog(last+1, 2, 3), fileLog(last+2, 2, 4)}
	require.NoError(t, s.StoreLogs(replacement))
	requireLogs(t, s, append(old[:last:last], replacement...))
	require.NoError(t, db.Close())
}

// The file of a removed entry is deleted, although the memtable with the removal does not fill up: whether
// entries are removed as they come, or one by one after many of them.
func TestFilesOfRemovedEntriesAreDeleted(t *testing.T) {
	for _, kept := range []uint64{0, 24} {
		s, db := openLog(t, vfs.NewMem())
		for index := uint64(1); index <= 25+kept; index++ {
			if index <= 25 {
				require.NoError(t, s.StoreLog(fileLog(index, 1, 40)))
			}
			if index > kept {
				require.NoError(t, s.DeleteRange(index-kept, index-kept))
			}
		}
		require.Eventually(t, func() bool { return db.db.Metrics().DiskSpaceUsage() < removedInFiles+(16<<20) }, 30*time.Second, time.Millisecond)
		it, err := db.db.NewIter(&pebble.IterOptions{})
		require.NoError(t, err)
		require.False(t, it.First())
		require.NoError(t, it.Close())
		require.NoError(t, db.Close())
	}
}
