package logstore

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// heldTables is a file system whose table files are created only once open is closed, while
// held is set.
type heldTables struct {
	vfs.FS
	held atomic.Bool
	open chan struct{}
}

func (fs *heldTables) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.held.Load() && strings.HasSuffix(name, ".sst") {
		<-fs.open
	}
	return fs.FS.Create(name, category)
}

// Large entries that fill the memory for unflushed writes wait for flushes by themselves:
// entries of other groups are stored meanwhile.
func TestLargeEntriesDoNotStallOtherGroups(t *testing.T) {
	const memTable = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		fs := &heldTables{FS: vfs.NewMem(), open: make(chan struct{})}
		fs.held.Store(true)
		db, err := Open("log", Options{FS: fs, MemTableBytes: memTable})
		require.NoError(t, err)
		large, err := db.Storage(1)
		require.NoError(t, err)
		small, err := db.Storage(2)
		require.NoError(t, err)

		stored := make(chan error, 2)
		var entries []*raft.Log
		for i := range 7 {
			entries = append(entries, &raft.Log{Index: uint64(i + 1), Term: 1, Type: raft.LogCommand, Data: make([]byte, 3*memTable)})
		}
		go func() { stored <- large.StoreLogs(entries) }()
		synctest.Wait()
		require.Empty(t, stored, "the large entries fit without a flush: the test needs more of them")
		go func() {
			stored <- small.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: []byte("small")})
		}()
		synctest.Wait()
		require.Len(t, stored, 1, "the small entry waits for the flushes of the large one")
		require.NoError(t, <-stored)

		close(fs.open)
		require.NoError(t, <-stored)
		requireLogs(t, large, entries)
		require.NoError(t, db.Close())
	})
}

// A large entry is stored while the memtable with the previous ones is flushed: the small
// commands of its group wait for it.
func TestLargeEntriesAreStoredDuringAFlush(t *testing.T) {
	const memTable = 4 << 20
	synctest.Test(t, func(t *testing.T) {
		fs := &heldTables{FS: vfs.NewMem(), open: make(chan struct{})}
		db, err := Open("log", Options{FS: fs, MemTableBytes: memTable})
		require.NoError(t, err)
		group, err := db.Storage(1)
		require.NoError(t, err)
		stored := make(chan error, 100)
		store := func(index uint64) {
			go func() {
				stored <- group.StoreLog(&raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: make([]byte, memTable*3/4)})
			}()
			synctest.Wait()
		}
		index := uint64(1)
		for ; index <= 8; index++ { // memtables grow to their size
			store(index)
			require.NoError(t, <-stored)
		}
		require.NoError(t, db.db.Flush())

		fs.held.Store(true)
		store(index)
		require.NoError(t, <-stored)
		store(index + 1) // together they are larger than a memtable and smaller than two
		during := len(stored)
		close(fs.open)
		require.NoError(t, <-stored)
		require.NoError(t, db.Close())
		require.Equal(t, 1, during, "it waited for the flush")
	})
}
