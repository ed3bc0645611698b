package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// filled is a partition after some batches.
func filled(t *testing.T, db *DB, id uint32, batches uint64) *Partition {
	p := partition(t, db, id)
	for i := uint64(1); i <= batches; i++ {
		commit(t, p, i, func(s machine.State) { require.NoError(t, applyBatch(s, i)) })
	}
	return p
}

func TestImportReproducesTheExport(t *testing.T) {
	from, dir := open(t), t.TempDir()
	to := openAt(t, dir)
	defer func() { require.NoError(t, to.Close()) }()
	p := partition(t, to, target)
	filled(t, to, target, 30)
	for _, batches := range []uint64{50, 90, 91} { // the generations take turns
		original := partition(t, from, source)
		for i, _ := original.Applied(); i < batches; i++ {
			commit(t, original, i+1, func(s machine.State) { require.NoError(t, applyBatch(s, i+1)) })
		}
		require.NoError(t, copyPartition(t.Context(), original, p))
		require.Equal(t, batches, requireReplay(t, to, target))

		require.NoError(t, to.Close())
		to = openAt(t, dir)
		require.Equal(t, batches, requireReplay(t, to, target), "without a flush by anybody else")
		p = partition(t, to, target)
	}
	commit(t, p, 92, func(s machine.State) { require.NoError(t, applyBatch(s, 92)) })
	require.EqualValues(t, 92, requireReplay(t, to, target), "and goes on from there")
}

func TestOldStateStaysActiveUntilTheImportCommits(t *testing.T) {
	db := open(t)
	from, to := filled(t, db, source, 40), filled(t, db, target, 10)
	e, err := from.Export()
	require.NoError(t, err)
	commit(t, from, 41, func(machine.State) {}) // not in the picture
	i, err := to.Import()
	require.NoError(t, err)
	require.NoError(t, e.Each(t.Context(), func(key, value []byte) error {
		if string(key) == string(tableMeta) {
			commit(t, to, 11, func(s machine.State) { require.NoError(t, applyBatch(s, 11)) })
		}
		return i.Put(key, value)
	}))
	index, term := e.Applied()
	require.EqualValues(t, 40, index)
	require.NoError(t, e.Close())
	old := to.View()
	defer old.Close()
	at, _ := to.Applied()
	require.EqualValues(t, 11, at)
	require.NoError(t, i.Commit(t.Context(), index, term))
	requireReplay(t, db, target)
	meta, err := old.Meta()
	require.NoError(t, err)
	require.EqualValues(t, 11, meta.Index, "an open view stays what it was")
}

func TestAbortedImportLeavesNothing(t *testing.T) {
	db := open(t)
	from, to := filled(t, db, source, 40), filled(t, db, target, 10)
	e, err := from.Export()
	require.NoError(t, err)
	defer e.Close()
	for range 2 {
		i, err := to.Import()
		require.NoError(t, err)
		require.NoError(t, e.Each(t.Context(), i.Put))
		require.NoError(t, i.Abort())
		require.EqualValues(t, 10, requireReplay(t, db, target))
	}
}

func TestImportRejectsInvalidState(t *testing.T) {
	db := open(t)
	from, to := filled(t, db, source, 40), filled(t, db, target, 10)
	e, err := from.Export()
	require.NoError(t, err)
	defer e.Close()
	stop := errors.New("stop")
	for name, put := range map[string]func(i *Import) error{
		"nothing": func(*Import) error { return nil },
		"without the partition's record": func(i *Import) error {
			return e.Each(t.Context(), func(key, value []byte) error {
				if key[0] == tableMeta {
					return nil
				}
				return i.Put(key, value)
			})
		},
		"of another entry":      func(i *Import) error { return i.Put([]byte{tableMeta}, []byte{4 << 3, 39, 5 << 3, 1}) },
		"with a damaged record": func(i *Import) error { return i.Put([]byte{tableMeta}, []byte{0xff}) },
	} {
		t.Run(name, func(t *testing.T) {
			i, err := to.Import()
			require.NoError(t, err)
			require.NoError(t, put(i))
			require.ErrorIs(t, i.Commit(t.Context(), 40, 1), errImport)
			require.NoError(t, i.Abort())
			require.EqualValues(t, 10, requireReplay(t, db, target))
		})
	}
	i, err := to.Import()
	require.NoError(t, err)
	require.NoError(t, i.Put([]byte("b"), nil))
	require.ErrorIs(t, i.Put([]byte("b"), nil), errImport, "keys ascend")
	require.ErrorIs(t, i.Put(nil, nil), errImport)
	require.NoError(t, i.Abort())

	require.ErrorIs(t, e.Each(t.Context(), func([]byte, []byte) error { return stop }), stop)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, e.Each(ctx, func([]byte, []byte) error { return nil }), context.Canceled)
}

func TestImportWithAFailedFlushKeepsTheOldState(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	from, to := filled(t, db, source, 40), filled(t, db, target, 10)
	e, err := from.Export()
	require.NoError(t, err)
	i, err := to.Import()
	require.NoError(t, err)
	require.NoError(t, e.Each(t.Context(), i.Put))
	require.NoError(t, e.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db.flusher.running.Lock() // the flush does not end in time
	require.ErrorIs(t, i.Commit(ctx, 40, 1), context.Canceled)
	db.flusher.running.Unlock()
	require.NoError(t, i.Abort())
	require.EqualValues(t, 10, requireReplay(t, db, target))
	flush(t, db)
	require.NoError(t, db.Close())
	db = openAt(t, dir)
	require.EqualValues(t, 10, requireReplay(t, db, target))
	require.NoError(t, db.Close())
}

// unreadable is a file system whose files cannot be read while fails is set.
type unreadable struct {
	vfs.FS
	fails *atomic.Bool
}

type unreadableFile struct {
	vfs.File
	fails *atomic.Bool
}

func (u unreadable) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := u.FS.Open(name, opts...)
	return unreadableFile{f, u.fails}, err
}

func (f unreadableFile) ReadAt(p []byte, at int64) (int, error) {
	if f.fails.Load() {
		return 0, errors.New("for a test")
	}
	return f.File.ReadAt(p, at)
}

// TestAnImportSucceedsIfTheOldRowsCannotBeDeleted makes the old rows unreadable: the imported
// ones are active then, so an error would have the caller delete those.
func TestAnImportSucceedsIfTheOldRowsCannotBeDeleted(t *testing.T) {
	fs := vfs.NewMem()
	opts := quiet()
	opts.FS, opts.CacheBytes = fs, 1
	db, err := Open("state", opts)
	require.NoError(t, err)
	filled(t, db, target, 300) // several blocks, which are not cached
	flush(t, db)
	require.NoError(t, db.Close())

	var fails atomic.Bool
	opts.FS = unreadable{fs, &fails}
	db, err = Open("state", opts)
	require.NoError(t, err)
	from, to := filled(t, open(t), source, 301), partition(t, db, target)
	e, err := from.Export()
	require.NoError(t, err)
	i, err := to.Import()
	require.NoError(t, err)
	require.NoError(t, e.Each(t.Context(), i.Put))
	require.NoError(t, e.Close())
	require.NoError(t, i.flush())
	meta, large, err := i.received()
	require.NoError(t, err)
	fails.Store(true)
	i.switchOver(meta, large)
	fails.Store(false)
	old := i.space.other()
	require.True(t, hasRows(t, db, old))
	index, _ := to.Applied()
	require.EqualValues(t, 301, index)

	// The next import deletes them.
	i, err = to.Import()
	require.NoError(t, err)
	require.False(t, hasRows(t, db, old))
	require.NoError(t, i.Abort())
	require.EqualValues(t, 301, requireReplay(t, db, target))
	require.NoError(t, db.Close())
}

func hasRows(t *testing.T, db *DB, s space) bool {
	lower, upper := s.bounds()
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	require.NoError(t, err)
	found := it.First()
	require.NoError(t, errors.Join(it.Error(), it.Close()))
	return found
}

// heldTables is a file system on which flushes wait until they are released.
type heldTables struct {
	vfs.FS
	release chan struct{}
}

func (h heldTables) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		<-h.release
	}
	return h.FS.Create(name, category)
}

func TestImportDoesNotStallOtherPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		fs := heldTables{vfs.NewMem(), make(chan struct{})}
		db, err := Open("tables", Options{FS: fs, MemTableBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		imported, release := make(chan error, 1), sync.OnceFunc(func() { close(fs.release) })
		defer func() {
			release()
			require.NoError(t, <-imported)
			require.NoError(t, db.Close())
		}()
		other := partition(t, db, source)

		i, err := partition(t, db, target).Import()
		require.NoError(t, err)
		go func() {
			var err error
			for n := uint32(0); n < 4*memTables && err == nil; n++ { // of half a memtable each
				err = i.Put(binary.BigEndian.AppendUint32([]byte{tableValues}, n), make([]byte, 512<<10))
			}
			imported <- err
		}()
		synctest.Wait() // the import waits
		require.NotContains(t, log.String(), "stalled")
		commit(t, other, 1, func(s machine.State) { require.NoError(t, applyBatch(s, 1)) })
	})
}
