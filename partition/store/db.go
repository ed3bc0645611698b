package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options of a DB; zero values mean the defaults.
type Options struct {
	// CacheBytes is the size of the cache of table blocks, 32 MiB by default.
	CacheBytes int64
	// MemTableBytes is how much is collected in memory before it is flushed by
	// itself, 8 MiB by default. Pebble starts with a fraction of it, needs two under
	// load and holds up to four while the disk is slow.
	MemTableBytes uint64
	// RecordCacheBytes bounds, per partition, the records of live invocations that
	// are kept for the next batches, 2 MiB by default.
	RecordCacheBytes int
	// LargeRowBytes is the size from which a row is stored in pieces, 512 KiB by
	// default.
	LargeRowBytes int
	// FS is the file system, the real one by default.
	FS vfs.FS
	// ReadOnly opens an existing database for inspection: nothing is written.
	ReadOnly bool
	Logger   *slog.Logger // slog.Default() if nil
}

// DB holds the tables of all partitions of a node.
type DB struct {
	pebble *pebble.DB
	cache  *pebble.Cache
	lock   *pebble.Lock
	opts   Options

	flusher flusher

	views sync.WaitGroup // open ones

	mu         sync.Mutex // covers the fields below
	partitions map[uint16]*Partition
	closed     bool // no new views
}

// Open opens the database in dir, which is made if it is missing. Errors wrap
// ErrLocked or ErrFormat where they apply.
func Open(dir string, opts Options) (*DB, error) {
	opts = opts.withDefaults()
	lock, err := prepareDir(opts.FS, dir, opts.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open tables: %w", err)
	}
	// Pebble takes the memory of memtables out of the cache's: one that is written to
	// and one that is flushed or waits to be used again.
	cache := pebble.NewCache(opts.CacheBytes + 2*int64(opts.MemTableBytes))
	db, err := pebble.Open(dir, pebbleOptions(opts, cache, lock))
	if err != nil {
		cache.Unref()
		if !Failed(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, errors.Join(fmt.Errorf("open tables %s: %w", dir, err), lock.Close())
	}
	return &DB{pebble: db, cache: cache, lock: lock, opts: opts, flusher: flusher{closing: make(chan struct{})}, partitions: map[uint16]*Partition{}}, nil
}

func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 8 << 20
	}
	if o.RecordCacheBytes == 0 {
		o.RecordCacheBytes = 2 << 20
	}
	if o.LargeRowBytes == 0 {
		o.LargeRowBytes = largeValue
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// fileBytes is how large files of tables become. Each has one bloom filter for all its
// rows, which is read and cached as a whole: files that double from level to level, as
// they would by themselves, end with filters of a megabyte that push each other out of
// the cache, and each look-up reads one.
const fileBytes = 2 << 20

func pebbleOptions(o Options, cache *pebble.Cache, lock *pebble.Lock) *pebble.Options {
	log := o.Logger.With("component", "tables")
	po := &pebble.Options{
		FS:                          o.FS,
		Cache:                       cache,
		Lock:                        lock,
		ReadOnly:                    o.ReadOnly,
		Comparer:                    comparer,
		DisableWAL:                  true, // the Raft log is it
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		FormatMajorVersion:          pebble.FormatTableFormatV6, // raised by hand, after a look at what it needs
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		L0CompactionThreshold:       8,  // rows come at random places of the key space: a compaction
		L0StopWritesThreshold:       24, // rewrites what it meets, so they wait for more company
		Logger:                      pebbleLogger{log},
		EventListener: &pebble.EventListener{
			BackgroundError: (&backgroundErrors{log: log}).report,
			WriteStallBegin: func(i pebble.WriteStallBeginInfo) { log.Warn("writes wait for the disk", "reason", i.Reason) },
		},
	}
	for i := range po.Levels {
		po.TargetFileSizes[i] = fileBytes
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].BlockSize = 16 << 10
	}
	return po
}

// ErrClosed is wrapped by reads of a view that was opened after Close, and by flushes
// that Close has cut short.
var ErrClosed = errors.New("tables are closed")

// Close closes the database. What was not flushed is given up: the log has it.
// Nothing may be applied any more; a transaction left open is discarded. Close
// waits for open views, but not for a flush that the disk has no room for.
func (db *DB) Close() error {
	db.mu.Lock()
	db.closed = true
	for _, p := range db.partitions {
		p.txn.Discard()
	}
	db.mu.Unlock()
	db.views.Wait()
	close(db.flusher.closing)
	db.flusher.wg.Wait()
	err := db.pebble.Close()
	db.cache.Unref()
	if err = errors.Join(err, db.lock.Close()); err != nil {
		return fmt.Errorf("close tables: %w", err)
	}
	return nil
}

// Stats are figures for telemetry.
type Stats struct {
	DiskBytes           uint64
	MemTableBytes       uint64
	CacheBytes          int64
	CacheHits           int64
	CacheMisses         int64
	Flushes             int64
	FlushedBytes        uint64
	Compactions         int64
	CompactedBytes      uint64
	CompactionDebtBytes uint64
	FilterHits          int64 // reads that a bloom filter has spared
	FilterMisses        int64
	L0Files             int64
	Tombstones          uint64
}

// Stats returns the database's figures as of now.
func (db *DB) Stats() Stats {
	m := db.pebble.Metrics()
	s := Stats{
		DiskBytes:           m.DiskSpaceUsage(),
		MemTableBytes:       m.MemTable.Size,
		CacheBytes:          m.BlockCache.Size,
		CacheHits:           m.BlockCache.Hits,
		CacheMisses:         m.BlockCache.Misses,
		Flushes:             m.Flush.Count,
		Compactions:         m.Compact.Count,
		CompactionDebtBytes: m.Compact.EstimatedDebt,
		FilterHits:          m.Filter.Hits,
		FilterMisses:        m.Filter.Misses,
		L0Files:             m.Levels[0].TablesCount,
		Tombstones:          m.Keys.TombstoneCount,
	}
	for i := range m.Levels {
		s.FlushedBytes += m.Levels[i].TableBytesFlushed
		s.CompactedBytes += m.Levels[i].TableBytesCompacted
	}
	return s
}

// pebbleLogger sends what Pebble says to slog; what it calls info is debug here.
type pebbleLogger struct{ log *slog.Logger }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "detail", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("pebble", "err", fmt.Sprintf(format, args...))
}

// Fatalf ends the process: Pebble calls it when it cannot tell any more what is on
// disk. The next start replays the log from the last flush.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.log.Error("pebble cannot go on, exiting", "err", fmt.Sprintf(format, args...))
	os.Exit(1)
}
