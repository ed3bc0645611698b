package logstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"platform/internal/durable"
	"platform/internal/pebbledb"
)

// Options configures a DB; the zero value is for production.
type Options struct {
	// MemTableBytes is the maximum memory for recent writes; 32 MiB when 0. It starts at
	// 256 KiB.
	MemTableBytes uint64
	// CacheBytes bounds the block cache; 8 MiB when 0.
	CacheBytes int64
	// Ballast is a file that is removed when the disk is full; see CreateBallast.
	Ballast string
	// ReadOnly opens an existing database for inspection: nothing is written.
	ReadOnly bool
	// FS is the file system; the real one when nil.
	FS vfs.FS
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// DB is the log database of a node: one Pebble database with one write-ahead log for all
// groups, so that groups that write at the same time share an fsync.
type DB struct {
	db    *pebble.DB
	wal   *walErrors
	cache *pebble.Cache

	written  *pebbledb.WriteProgress
	large    *pebbledb.LargeWrites
	files    *entryFiles
	damage   *pebbledb.Damage
	remover  *pebbledb.Remover
	readOnly bool
}

// DamagedFiles receives the files of the database in which damage was found.
func (l *DB) DamagedFiles() <-chan pebbledb.DamagedFile { return l.damage.Files() }

// Affected returns which of the groups have entries in a damaged file that cannot be read.
func (l *DB) Affected(file pebbledb.DamagedFile, groups []uint32) ([]uint32, error) {
	return l.remover.Affected(file, groups, logSpan)
}

// logSpan returns the keys of the log of a group.
func logSpan(group uint32) pebble.KeyRange {
	from, to := groupBounds(keyKindLog, group)
	return pebble.KeyRange{Start: from, End: to}
}

// Reclaimer returns what compacts the database when removed entries retain much of its space.
func (l *DB) Reclaimer() *pebbledb.Reclaimer {
	return pebbledb.NewReclaimer("log", l.db, []byte{keyKindLog}, []byte{keyKindStable + 1})
}

// Written counts what flushes and compactions write, see pebbledb.WriteProgress, and the chunks of entries in files: on a
// slow disk such an entry takes longer than an operation that hangs.
func (l *DB) Written() uint64 { return l.written.Count() + l.files.chunks.Load() }

// Open opens the log database in dir, creating it if missing.
func Open(dir string, opts Options) (*DB, error) {
	logger := opts.Logger
	if logger == nil {
		logger = slog.Default()
	}
	fs := opts.FS
	if fs == nil {
		fs = vfs.Default
	}
	if opts.FS == nil && !opts.ReadOnly {
		if err := makeDir(dir); err != nil {
			return nil, fmt.Errorf("open log database: %w", err)
		}
	}
	fs = zeroAhead{fs}
	if opts.ReadOnly {
		fs = pebbledb.ReadOnlyFS(fs)
	}
	if opts.Ballast != "" {
		fs = vfs.OnDiskFull(fs, func() { freeBallast(opts.Ballast, logger) })
	}
	pebbleLog := pebbledb.Logger{Log: logger.With("component", "log_database")}
	wal := &walErrors{FS: fs, fatal: pebbleLog.Fatalf}
	fs = wal
	cache := pebble.NewCache(cmp.Or(opts.CacheBytes, 8<<20))
	po := &pebble.Options{
		FS:       fs,
		ReadOnly: opts.ReadOnly,
		Cache:    cache,
		// Entries that are truncated before their memtable is full are never flushed.
		MemTableSize:                cmp.Or(opts.MemTableBytes, 32<<20),
		MemTableStopWritesThreshold: 3,
		// Entries are read from the cache, or one after the other, and mostly cut before they
		// are compacted: waiting for compactions would only delay the groups that share the log.
		L0StopWritesThreshold: 1000,
		FormatMajorVersion:    pebble.FormatNewest,
		MaxManifestFileSize:   pebbledb.ManifestBytes,
		Logger:                pebbleLog,
	}
	written := new(pebbledb.WriteProgress)
	po.EventListener = new(pebble.EventListener)
	damage := pebbledb.ReportDamage(po, logger.With("component", "log_database"))
	pebbledb.LimitOpenFiles(po)
	pebbledb.SeparateValues(po)
	written.Watch(po)
	large := pebbledb.NewLargeWrites(po)
	// Entries are short-lived and often deleted before they reach a table file.
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := openPebble(dir, po)
	if err == nil {
		if err = errors.Join(pebbledb.CheckFiles(db, fs, dir), checkValues(db)); err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	if err != nil {
		cache.Unref()
		if errors.Is(err, os.ErrNotExist) { // a missing file of the database
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil, fmt.Errorf("open log database %s: %w", dir, readError(err))
	}
	wal.open.Store(true)
	return &DB{db: db, wal: wal, cache: cache, written: written, large: large, files: newEntryFiles(db, po, dir), readOnly: opts.ReadOnly, damage: damage, remover: pebbledb.NewRemover(db, damage, dir)}, nil
}

// openPebble opens a database whose write-ahead log records in each chunk up to where it
// has been synced, so that damage before that position can be distinguished from an
// unfinished write. Pebble raises the format of a new or older database only after it has
// created the first file of the log, so such a database is opened twice.
func openPebble(dir string, po *pebble.Options) (*pebble.DB, error) {
	if po.ReadOnly {
		return pebble.Open(dir, po)
	}
	if err := po.FS.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	was, err := pebble.Peek(dir, po.FS)
	if err != nil {
		return nil, err
	}
	db, err := pebble.Open(dir, po)
	if err != nil || was.Exists && was.FormatMajorVersion >= pebble.FormatWALSyncChunks {
		return db, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return pebble.Open(dir, po)
}

// checkValues reads the values of all groups. They are so small that many groups share a block: without it, the
// terms, votes and marks of all of them are unknown, so that none can be repaired alone.
func checkValues(db *pebble.DB) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyKindStable}, UpperBound: []byte{keyKindStable + 1}})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
	}
	return errors.Join(it.Error(), it.Close())
}

// Close closes the database; all groups that use it must be shut down before.
func (l *DB) Close() error {
	l.wal.open.Store(false)
	err := l.db.Close()
	l.cache.Unref()
	if err != nil {
		return fmt.Errorf("close log database: %w", err)
	}
	return nil
}

// groupBounds returns the first key of a kind and group and the first after.
func groupBounds(kind byte, group uint32) (from, to []byte) {
	from, to = make([]byte, groupPrefixLen), make([]byte, groupPrefixLen)
	putGroupPrefix(from, kind, group)
	if group < ^uint32(0) {
		putGroupPrefix(to, kind, group+1)
	} else {
		putGroupPrefix(to, kind+1, 0)
	}
	return from, to
}

// makeDir creates dir, readable by the owner only, and makes its name durable.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}
