package logstore

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	require.NoError(t, s.storeFiles([]*raft.Log{fileLog(2, 2, 9)}))
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
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
// entries are removed as they come, one by one after many of them, after a restart, or with their group.
func TestFilesOfRemovedEntriesAreDeleted(t *testing.T) {
	const entries = 25
	for name, c := range map[string]struct {
		kept             uint64
		restart, destroy bool
	}{
		"as they come":    {},
		"after many":      {kept: entries - 1},
		"after a restart": {kept: entries, restart: true},
		"with the group":  {kept: entries, destroy: true},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s, db := openLog(t, fs)
			for index := uint64(1); index <= entries; index++ {
				require.NoError(t, s.StoreLog(fileLog(index, 1, 40)))
				if index > c.kept {
					require.NoError(t, s.DeleteRange(index-c.kept, index-c.kept))
				}
			}
			if c.restart {
				require.NoError(t, db.Close())
				s, db = openLog(t, fs)
			}
			if c.destroy {
				require.NoError(t, db.Destroy(7))
			}
			if first, last, err := Bounds(s); first > 0 && !c.destroy {
				require.NoError(t, err)
				require.NoError(t, s.DeleteRange(first, last))
			}
			require.Eventually(t, func() bool { return db.db.Metrics().DiskSpaceUsage() < removedInFiles+(16<<20) }, time.Minute, time.Millisecond)
			it, err := db.db.NewIter(&pebble.IterOptions{})
			require.NoError(t, err)
			require.False(t, it.First())
			require.NoError(t, it.Close())
			require.NoError(t, db.Close())
		})
	}
}

// Groups that keep entries for their followers remove the oldest ones a few at a time, in ranges that are smaller than a
// table. Their space is freed nevertheless, and the entries that are left remain.
func TestSpaceOfEntriesRemovedInSmallRangesIsFreed(t *testing.T) {
	const (
		groups, entries = 4, 5000
		kept, atOnce    = 800, 40
		small, large    = 100, 256 << 10 // bytes; every tenth entry is large
		writeAheadLogs  = 40 << 20
		keptBytes       = groups * kept / 10 * large
	)
	db, err := Open("log", Options{FS: vfs.NewMem(), MemTableBytes: 8 << 20, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	logs := make([]*PebbleStorage, groups)
	for group := range logs {
		logs[group], err = db.Storage(uint32(group))
		require.NoError(t, err)
	}
	data := make([]byte, large)
	for index := uint64(1); index <= entries; index++ {
		size := small
		if index%10 == 0 {
			size = large
		}
		for _, s := range logs {
			require.NoError(t, s.StoreLog(&raft.Log{Index: index, Term: 1, Data: data[:size]}))
			if index > kept && index%atOnce == 0 {
				require.NoError(t, s.DeleteRange(index-kept-atOnce+1, index-kept))
			}
		}
	}
	require.Eventually(t, func() bool {
		return db.db.Metrics().DiskSpaceUsage() < 2*keptBytes+writeAheadLogs
	}, time.Minute, 10*time.Millisecond)
	for _, s := range logs {
		requireBounds(t, s, entries-kept+1, entries)
		var log raft.Log
		require.NoError(t, s.GetLog(entries-kept+1, &log))
		require.NoError(t, s.GetLog(entries, &log))
	}
	require.NoError(t, db.Close())
}

var errFull = errors.New("planted failure: the disk is full")

// fullDisk is a file system with room for a number of bytes in temporary files, while it is full.
type fullDisk struct {
	vfs.FS
	full bool
	room atomic.Int64
	open atomic.Int64 // temporary files that are open
}

func (fs *fullDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".dbtmp") {
		return f, err
	}
	fs.open.Add(1)
	return &fullDiskFile{f, fs}, nil
}

type fullDiskFile struct {
	vfs.File
	fs *fullDisk
}

func (f *fullDiskFile) Write(p []byte) (int, error) {
	if f.fs.full && f.fs.room.Add(-int64(len(p))) < 0 {
		return 0, errFull
	}
	return f.File.Write(p)
}

func (f *fullDiskFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// Of entries that could not be stored nothing remains: neither files, nor chunks that would be taken for the first entry
// of the log when a snapshot has replaced the others.
func TestFailureToStoreEntriesInFilesLeavesNothing(t *testing.T) {
	for _, room := range []int64{0, fileEntry / 2, 3 * fileEntry / 2, 5 * fileEntry / 2} {
		disk := &fullDisk{FS: vfs.NewMem()}
		s, db := openLog(t, disk)
		require.NoError(t, s.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogNoop}))
		disk.full = true
		for range 3 {
			disk.room.Store(room)
			logs := []*raft.Log{{Index: 2, Term: 1, Type: raft.LogCommand, Data: make([]byte, largeEntry)}, fileLog(3, 1, 1), fileLog(4, 1, 1), fileLog(5, 1, 1)}
			require.ErrorIs(t, s.StoreLogs(logs), errFull)
		}
		requireBounds(t, s, 1, 1)
		require.Zero(t, disk.open.Load(), "files are still open")
		names, err := disk.List("log")
		require.NoError(t, err)
		require.NotContains(t, strings.Join(names, " "), "dbtmp")
		require.Zero(t, db.db.Metrics().Total().TablesCount)

		disk.full = false
		require.NoError(t, s.DeleteRange(1, 1)) // a snapshot is installed
		after := []*raft.Log{fileLog(100, 2, 2), {Index: 101, Term: 2, Type: raft.LogNoop}}
		require.NoError(t, s.StoreLogs(after))
		require.NoError(t, db.Close())
		s, db = openLog(t, disk)
		requireBounds(t, s, 100, 101)
		requireLogs(t, s, after)
		require.NoError(t, db.Close())
	}
}

// An earlier server may have left chunks before the first entry.
func TestChunksBeforeTheFirstEntryAreRemoved(t *testing.T) {
	fs := vfs.NewMem()
	s, db := openLog(t, fs)
	require.NoError(t, s.storeFiles([]*raft.Log{fileLog(3, 1, 1), fileLog(5, 1, 1)}))
	require.NoError(t, s.StoreLog(&raft.Log{Index: 9, Term: 2, Type: raft.LogNoop}))
	require.NoError(t, db.Close())
	for range 2 {
		s, db = openLog(t, fs)
		requireBounds(t, s, 9, 9)
		require.ErrorIs(t, s.GetLog(3, new(raft.Log)), raft.ErrLogNotFound)
		it, err := db.db.NewIter(&pebble.IterOptions{})
		require.NoError(t, err)
		require.True(t, it.First())
		require.Equal(t, logKey(7, 9), it.Key())
		require.NoError(t, it.Close())
		require.NoError(t, db.Close())
	}
}

// Damage in a file is an error for the group that reads the entry, and does not end the process. Damage at the end of a
// file is found when the database is opened.
func TestDamageInAFileOfAnEntry(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	require.NoError(t, s.StoreLogs([]*raft.Log{fileLog(1, 1, 1), {Index: 2, Term: 1, Type: raft.LogNoop}}))
	require.NoError(t, db.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	flip := func(at int) {
		damaged := bytes.Clone(content)
		damaged[at] ^= 1
		require.NoError(t, os.WriteFile(files[0], damaged, 0o600))
	}

	flip(len(content) / 2)
	db, err = Open(dir, Options{Logger: quiet, ReadOnly: true})
	require.NoError(t, err)
	s, err = db.Storage(7)
	require.NoError(t, err)
	require.ErrorIs(t, s.GetLog(1, new(raft.Log)), ErrCorrupt)
	require.NoError(t, s.GetLog(2, new(raft.Log)))
	require.NoError(t, db.Close())

	flip(len(content) - 5)
	_, err = Open(dir, Options{Logger: quiet, ReadOnly: true})
	require.ErrorIs(t, err, ErrCorrupt)
}
