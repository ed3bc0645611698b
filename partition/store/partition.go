package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"platform/internal/pebbledb"
	"platform/partition/codec"
)

// ErrDamaged is wrapped when a row or the database is corrupt.
var ErrDamaged = errors.New("damaged row")

// Partition is the tables of one partition. Transactions and the commit of an import must
// not overlap; they belong to the applying goroutine. All other methods may be called
// concurrently, but not by that goroutine while it has a transaction.
type Partition struct {
	db *DB
	id uint16

	mu    sync.RWMutex // covers space: written when an import commits, read while a view is opened
	space space

	applied   atomic.Pointer[codec.Meta] // as of the last commit; immutable
	collected atomic.Bool                // commits are not in the database yet
	observer  atomic.Pointer[Observer]   // nil: none
	known     knownValues

	// turn has a value while a transaction is open or the collected commits are written, by
	// whichever goroutine needs them in the database. It covers the fields below.
	turn   chan struct{}
	large  large
	cache  *cache
	txn    Txn
	failed error // error of the first failed commit; all later commits return it
}

// Partition opens the tables of a partition, which are empty if the partition is new. All
// calls with the same ID return the same Partition.
func (db *DB) Partition(id uint32) (*Partition, error) {
	if id > maxPartition {
		return nil, fmt.Errorf("open partition %d: ID exceeds the maximum of %d", id, maxPartition)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if p := db.partitions[uint16(id)]; p != nil {
		return p, nil
	}
	p := &Partition{db: db, id: uint16(id), turn: make(chan struct{}, 1)}
	p.txn.p = p
	if err := p.load(); err != nil {
		if pebble.IsCorruptionError(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, pebbledb.Explain(err))
		}
		return nil, fmt.Errorf("open partition %d: %w", id, err)
	}
	db.partitions[p.id] = p
	return p, nil
}

// load reads the active generation and its applied index, and deletes the rows of the other
// generation, left by an unfinished import or replaced by the last one.
func (p *Partition) load() error {
	r, err := newReader(p.db.pebble)
	if err != nil {
		return err
	}
	if p.space, err = r.space(p.id); err != nil {
		return errors.Join(err, r.close())
	}
	meta, err := r.meta(p.space)
	var orphans []largeRow
	if err == nil {
		p.large, orphans, err = r.large(p.space, p.db.opts.LargeSetBytes)
	}
	if err := errors.Join(err, r.close()); err != nil {
		return err
	}
	if p.db.opts.ReadOnly {
		p.reset(meta)
		return nil
	}
	if err := p.db.dropOrphans(p.space, orphans); err != nil {
		return err
	}
	p.reset(meta)
	return p.db.clear(p.space.other())
}

// space returns the space of the active generation of a partition.
func (r reader) space(partition uint16) (space, error) {
	s := space{partition, generationA}
	header, err := r.row(headerKey(partition))
	if err != nil || header == nil {
		return s, err
	}
	if len(header) != 1 || header[0] != generationA && header[0] != generationB {
		return s, fmt.Errorf("%w: header %x", ErrDamaged, header)
	}
	s.generation = header[0]
	return s, nil
}

// reset stores meta as the partition's metadata and clears the cache.
func (p *Partition) reset(meta codec.Meta) {
	p.cache = newCache(p.db.opts.RecordCacheBytes)
	p.known.forget()
	p.applied.Store(&meta)
}

// other returns the space of the other generation.
func (s space) other() space {
	s.generation = generationA + generationB - s.generation
	return s
}

// clear deletes the rows of a space. It writes nothing if there are none.
func (db *DB) clear(s space) (err error) {
	lower, upper := s.bounds()
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil || !found {
		return err
	}
	return db.pebble.DeleteRange(lower, upper, pebble.NoSync)
}

// Applied returns the last log entry applied to the tables, whether durable or not; zero if
// they are empty.
func (p *Partition) Applied() (index, term uint64) {
	m := p.applied.Load()
	return m.Index, m.Term
}

// Meta returns the metadata as of the last commit. Unlike a View, it never waits for the entries
// that are being applied: what reports the state of a node must not hang with one partition.
func (p *Partition) Meta() codec.Meta { return *p.applied.Load() }

func (r reader) meta(s space) (m codec.Meta, err error) {
	b, err := r.row(s.table(nil, tableMeta))
	if err != nil || b == nil {
		return m, err
	}
	if m, err = codec.DecodeMeta(b); err != nil {
		return m, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return m, nil
}

func number(key, b []byte) (uint64, error) {
	if b == nil {
		return 0, nil
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: number of %d bytes at %x", ErrDamaged, len(b), key)
	}
	return binary.BigEndian.Uint64(b), nil
}

// decoded adds the key to an error of decoding a row.
func decoded[T any](key []byte, v T, err error) (T, error) {
	if err != nil {
		return v, fmt.Errorf("row %x: %w: %w", key, ErrDamaged, err)
	}
	return v, nil
}
