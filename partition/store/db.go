package store

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"platform/internal/pebbledb"
)

// Options configure a DB; zero values mean the defaults.
type Options struct {
	// CacheBytes is the size of the cache of table blocks, 32 MiB by default.
	CacheBytes int64
	// MemTableBytes is the size at which a memtable is flushed, 8 MiB by default.
	// Pebble starts with a fraction of it, needs two memtables under load and holds up
	// to eight while the disk is slow.
	MemTableBytes uint64
	// RecordCacheBytes bounds the cache of live invocation records of each partition,
	// 2 MiB by default.
	RecordCacheBytes int
	// CollectedRows is the number of rows up to which the commits of a partition are collected
	// before they are written to the database, 512 by default; 1: each is written by itself.
	CollectedRows int
	// LargeRowBytes is the size from which a value is stored in chunks, 512 KiB by
	// default.
	LargeRowBytes int
	// LargeSetBytes bounds the memory for the keys of the rows in chunks of each partition,
	// 1 MiB by default. Beyond it they are looked up.
	LargeSetBytes int
	// FS is the file system, the real one by default.
	FS vfs.FS
	// ReadOnly opens an existing database for inspection, without writing to it.
	ReadOnly bool
	Logger   *slog.Logger // slog.Default() if nil
}

// DB holds the tables of all partitions of a node.
type DB struct {
	pebble *pebble.DB
	cache  *pebble.Cache
	lock   *pebble.Lock
	opts   Options

	written *pebbledb.WriteProgress
	large   *pebbledb.LargeWrites
	damage  *pebbledb.Damage
	remover *pebbledb.Remover
	flusher flusher

	views   sync.WaitGroup // open views
	results chan struct{}  // semaphore of maxResults

	mu         sync.Mutex // covers the fields below
	partitions map[uint16]*Partition
	closed     bool // rejects new views
}

// Open opens the database in dir, creating the directory if it is missing. Errors may wrap
// ErrLocked, ErrFormat or ErrDamaged.
func Open(dir string, opts Options) (*DB, error) {
	opts = opts.withDefaults()
	lock, err := prepareDir(opts.FS, dir, opts.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open tables: %w", err)
	}
	// Pebble reserves the memory of memtables in the block cache: one being written and
	// one being flushed or recycled.
	cache := pebble.NewCache(opts.CacheBytes + 2*int64(opts.MemTableBytes))
	written := new(pebbledb.WriteProgress)
	po := pebbleOptions(opts, cache, lock, written)
	damage := pebbledb.ReportDamage(po, opts.Logger.With("component", "tables"))
	large := pebbledb.NewLargeWrites(po)
	db, err := pebble.Open(dir, po)
	if err == nil {
		if err = pebbledb.CheckFiles(db, opts.FS, dir); err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	if err != nil {
		cache.Unref()
		if !Failed(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, errors.Join(fmt.Errorf("open tables %s: %w", dir, err), lock.Close())
	}
	return &DB{pebble: db, cache: cache, lock: lock, opts: opts, written: written, large: large, damage: damage, remover: pebbledb.NewRemover(db, damage, dir), flusher: flusher{closing: make(chan struct{})}, results: make(chan struct{}, maxResults), partitions: map[uint16]*Partition{}}, nil
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
	if o.CollectedRows == 0 {
		o.CollectedRows = defaultCollected
	}
	if o.LargeRowBytes == 0 {
		o.LargeRowBytes = defaultLargeRow
	}
	if o.LargeSetBytes == 0 {
		o.LargeSetBytes = 1 << 20
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.ReadOnly {
		o.FS = pebbledb.ReadOnlyFS(o.FS)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// memTables is the number of memtables at which writes wait for flushes. The largest message
// fits into that many, so that a single one does not make the other partitions wait.
const memTables = 8

// sstableBytes is the target size of sstables on every level. Each has one bloom filter,
// which is read and cached as a whole: with Pebble's default, sizes that double from level
// to level, filters reach a megabyte and evict each other, so that each lookup reads one.
// Values in blob files count as well, so sstables of large rows contain few of them.
const sstableBytes = 8 << 20

func pebbleOptions(o Options, cache *pebble.Cache, lock *pebble.Lock, written *pebbledb.WriteProgress) *pebble.Options {
	log := o.Logger.With("component", "tables")
	po := &pebble.Options{
		FS:                          o.FS,
		Cache:                       cache,
		Lock:                        lock,
		ReadOnly:                    o.ReadOnly,
		Comparer:                    comparer,
		DisableWAL:                  true, // replaced by the Raft log
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		FormatMajorVersion:          pebble.FormatValueSeparation, // raised manually, after checking compatibility
		MaxManifestFileSize:         pebbledb.ManifestBytes,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		L0CompactionThreshold:       8,  // inserts are random in the key space, so a compaction
		L0StopWritesThreshold:       64, // rewrites most of what it overlaps: do fewer, larger ones
		Logger:                      pebbledb.Logger{Log: log},
		EventListener: &pebble.EventListener{
			BackgroundError: (&backgroundErrors{log: log}).report,
			WriteStallBegin: func(i pebble.WriteStallBeginInfo) { log.Warn("writes stalled by the disk", "reason", i.Reason) },
		},
	}
	pebbledb.LimitOpenFiles(po)
	pebbledb.SeparateValues(po)
	written.Watch(po)
	for i := range po.Levels {
		po.TargetFileSizes[i] = sstableBytes
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].BlockSize = 16 << 10
	}
	return po
}

// Reclaimer returns what compacts the database when deleted rows retain much of its space.
func (db *DB) Reclaimer() *pebbledb.Reclaimer {
	return pebbledb.NewReclaimer("state", db.pebble, partitionSpan(0).Start, []byte{0xff, 0xff, 0xff})
}

// Written counts what flushes and compactions write, see pebbledb.WriteProgress.
func (db *DB) Written() uint64 { return db.written.Count() }

// ErrClosed is wrapped by reads of a view that was opened after Close, and by flushes
// interrupted by Close.
var ErrClosed = errors.New("tables are closed")

// Close closes the database. Commits that were not flushed are dropped; they are in the
// Raft log. The caller must have stopped applying; an open transaction is discarded. Close
// waits for open views, but not for a flush that is blocked by a full disk.
func (db *DB) Close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	db.views.Wait()
	close(db.flusher.closing)
	db.flusher.wg.Wait()
	for _, p := range db.all() {
		p.txn.drop()
	}
	err := db.pebble.Close()
	db.cache.Unref()
	if err = errors.Join(err, db.lock.Close()); err != nil {
		return fmt.Errorf("close tables: %w", err)
	}
	return nil
}

// all returns the open partitions.
func (db *DB) all() []*Partition {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Collect(maps.Values(db.partitions))
}

// stats are metrics of the database.
type stats struct {
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
	FilterHits          int64 // reads avoided by a bloom filter
	FilterMisses        int64
	L0Files             int64
	Tombstones          uint64
}

// stats returns the current metrics.
func (db *DB) stats() stats {
	m := db.pebble.Metrics()
	s := stats{
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
		s.FlushedBytes += m.Levels[i].TableBytesFlushed + m.Levels[i].BlobBytesFlushed
		s.CompactedBytes += m.Levels[i].TableBytesCompacted + m.Levels[i].BlobBytesCompacted
	}
	return s
}
