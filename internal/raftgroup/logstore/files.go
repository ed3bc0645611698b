package logstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

const (
	// fileEntry is the size from which the chunks of an entry are written as a table file. The database syncs its
	// manifest and its directory for each, so it does not pay off for smaller ones.
	fileEntry = 4 << 20
	// fileWriteback is after how many bytes of a file the disk starts to write them: otherwise the syncs of other
	// groups would wait for the whole file.
	fileWriteback = 512 << 10
	// removedInFiles is about how many bytes of removed entries may remain in table files, which are deleted once the
	// database has flushed the removal.
	removedInFiles = 64 << 20
	// wideRemoval is how many bytes of a group are removed from table files before a removal also covers everything before
	// it, so that the database finds tables without an entry that is left.
	wideRemoval = 1 << 20
)

// entryFiles writes the chunks of large entries as table files, which become part of the log database as they are.
// In the write-ahead log and a memtable they would be written twice, and be synced and flushed with what others write.
type entryFiles struct {
	db      *pebble.DB
	fs      vfs.FS
	dir     string
	options sstable.WriterOptions
	number  atomic.Uint64 // of the last file
	removed atomic.Int64  // bytes of removed entries in table files, since the last flush
	chunks  atomic.Uint64 // written so far
}

// newEntryFiles returns the files of a database that was opened with o in dir.
func newEntryFiles(db *pebble.DB, o *pebble.Options, dir string) *entryFiles {
	o.EnsureDefaults()
	return &entryFiles{db: db, fs: o.FS, dir: dir, options: o.MakeWriterOptions(len(o.Levels)-1, db.TableFormat())}
}

// storeFiles stores the chunks of those entries that have at least fileEntry bytes durably: of all or, if it fails, of
// none. If an entry at the same index was removed without a sync, Pebble makes that removal durable before.
func (s *PebbleStorage) storeFiles(logs []*raft.Log) error {
	var paths []string
	for _, log := range logs {
		size := storedSize(log)
		if size < fileEntry {
			continue
		}
		path := s.files.temporary()
		paths = append(paths, path)
		key := logKey(s.group, log.Index)
		if err := s.files.create(path, key, storedParts(key, log), size); err != nil {
			return errors.Join(err, s.files.remove(paths))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	if err := s.files.db.Ingest(context.Background(), paths); err != nil {
		return errors.Join(err, s.files.remove(paths))
	}
	return nil // Ingest has removed the names
}

// temporary returns the path of a new file. Pebble deletes files with such names when it opens a database.
func (f *entryFiles) temporary() string {
	return f.fs.PathJoin(f.dir, fmt.Sprintf("temporary.%06d.dbtmp", f.number.Add(1)))
}

func (f *entryFiles) remove(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := f.fs.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// create writes a synced table file with chunks.
func (f *entryFiles) create(path string, key []byte, parts [][]byte, size int) error {
	file, err := f.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	file = vfs.NewSyncingFile(file, vfs.SyncingFileOptions{BytesPerSync: fileWriteback})
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), f.options)
	chunk, at := make([]byte, chunkSize), append(key[:len(key):len(key)], 0, 0, 0, 0)
	for number := uint32(0); size > 0; number++ {
		binary.BigEndian.PutUint32(at[len(key):], number)
		value := chunk[:min(size, chunkSize)]
		parts = fill(value, parts)
		if err := w.Set(at, value); err != nil {
			return errors.Join(err, w.Close())
		}
		size -= len(value)
		f.chunks.Add(1)
	}
	return w.Close()
}

// countRemoved returns, and counts, how many bytes tables contain between two keys, which are about to be removed.
func (f *entryFiles) countRemoved(from, to []byte) int64 {
	bytes, err := f.db.EstimateDiskUsage(from, to)
	if err != nil { // from is after to
		return 0
	}
	f.removed.Add(int64(bytes))
	return int64(bytes)
}

// flushRemoved has removals flushed if that frees enough space.
func (f *entryFiles) flushRemoved() error {
	if f.removed.Load() < removedInFiles {
		return nil
	}
	f.removed.Store(0)
	_, err := f.db.AsyncFlush()
	return err
}
