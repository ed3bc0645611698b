package pebbledb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// minReclaimed is how many dead bytes, at least, a compaction must be expected to free.
	minReclaimed = 64 << 20
	// reclaimedShare is the reciprocal of the dead share from which a database is compacted.
	reclaimedShare = 4
	// maxReclaimTables bounds the size of the tables, without blob files, that are read and compacted. Larger databases
	// exceed the sizes of their levels, so Pebble compacts them.
	maxReclaimTables = 512 << 20

	// reclaimPause is the minimum time between two attempts. That of a database doubles up to maxReclaimPause while
	// attempts free little.
	reclaimPause    = 15 * time.Second
	maxReclaimPause = time.Hour
	// checkRest is how many times as long as an attempt that frees little the pause after it is, at least; reclaimRest
	// that of one that pays off, during which a server under load goes on to delete.
	checkRest   = 50
	reclaimRest = 8
	// reclaimTimeout bounds an attempt. Pebble repeats failed flushes and compactions indefinitely, and a compaction that
	// is requested waits for them.
	reclaimTimeout = 10 * time.Minute
)

// Reclaimer compacts a Pebble database if deletions that were not compacted retain much of its space. Pebble chooses
// compactions by the sizes of levels, without the blob files: a few tables of deletions, in a memtable or in level 0,
// may retain any amount of values until enough is written.
type Reclaimer struct {
	name        string
	db          *pebble.DB
	first, last []byte // keys between which everything is

	pause time.Duration
	next  time.Time // no attempt before

	checked version // in which little is dead
}

// version changes with each write and each flush. The zero version is unknown.
type version struct {
	sequence pebble.SeqNum
	flushes  int64
}

// NewReclaimer returns the reclaimer of a database whose keys are from first to last.
func NewReclaimer(name string, db *pebble.DB, first, last []byte) *Reclaimer {
	return &Reclaimer{name: name, db: db, first: first, last: last, pause: reclaimPause}
}

// RunReclaimers reclaims space until ctx ends, in one database at a time, if no more is written for it than room returns:
// the files of a compaction are written before those that it replaces are deleted. The databases must not be closed
// before it returns.
func RunReclaimers(ctx context.Context, room func() uint64, log *slog.Logger, reclaimers ...*Reclaimer) error {
	tick := time.NewTicker(reclaimPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, r := range reclaimers {
			space := room()
			if space == 0 || time.Now().Before(r.next) {
				continue
			}
			start := time.Now()
			dead, freed, err := r.reclaim(ctx, space)
			r.schedule(time.Since(start), dead, freed, err)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				log.Warn("space of deleted rows not reclaimed, retried later", "database", r.name, "err", Explain(err), "retry_in", r.pause)
			case dead > 0:
				log.Info("space of deleted rows reclaimed", "database", r.name, "expected_bytes", dead, "freed_bytes", freed, "took", time.Since(start))
			}
		}
	}
}

// schedule sets the time of the next attempt.
func (r *Reclaimer) schedule(took time.Duration, dead, freed uint64, err error) {
	rest := checkRest * took
	switch {
	case err != nil || freed < dead/2:
		r.pause = min(2*r.pause, maxReclaimPause)
	case dead > 0:
		rest = reclaimRest * took
		fallthrough
	default:
		r.pause = reclaimPause
	}
	r.next = time.Now().Add(max(r.pause, rest))
}

// reclaim compacts the database if that is expected to free enough, and writes at most room. dead is what is expected, 0
// if it does not pay off.
func (r *Reclaimer) reclaim(ctx context.Context, room uint64) (dead, freed uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, reclaimTimeout)
	defer cancel()
	before, now := r.measure()
	if tableBytes(before)+before.MemTable.Size > room {
		return 0, 0, nil
	}
	if dead, err = r.dead(ctx, before, now); err != nil || dead == 0 {
		return 0, 0, err
	}
	// It also flushes the memtables.
	if err := r.db.Compact(ctx, r.first, r.last, false); err != nil {
		return dead, 0, fmt.Errorf("compact: %w", err)
	}
	after, _ := r.measure()
	return dead, reachable(before) - min(reachable(before), reachable(after)), nil
}

// measure returns the metrics of the database and its version. It also has Pebble look for a compaction, also of blob
// files, which are rewritten from a minimum age on: without writes, only closing a snapshot does so later.
func (r *Reclaimer) measure() (m *pebble.Metrics, now version) {
	s := r.db.NewSnapshot()
	m = r.db.Metrics()
	if m.Snapshots.Count == 1 {
		now = version{m.Snapshots.EarliestSeqNum, m.Flush.Count}
	}
	_ = s.Close() // never fails
	return m, now
}

// dead estimates how many bytes compacting all deletions would free, 0 if it does not pay off. Rows are read only if
// there were writes since the last time.
func (r *Reclaimer) dead(ctx context.Context, m *pebble.Metrics, now version) (uint64, error) {
	tables := tableBytes(m)
	if tables > maxReclaimTables {
		return 0, nil
	}
	inTables := min(m.Table.Garbage.PointDeletionsBytesEstimate+m.Table.Garbage.RangeDeletionsBytesEstimate, tables)
	if worthReclaiming(inTables, tables) {
		return inTables, nil
	}
	blobs := &m.BlobFiles
	if !worthReclaiming(blobs.LiveSize, tables) || blobs.ValueSize == 0 {
		return 0, nil
	}
	if now == r.checked && now != (version{}) {
		return 0, nil
	}
	live, err := r.liveValues(ctx)
	if err != nil {
		return 0, fmt.Errorf("measure live values: %w", err)
	}
	hidden := blobs.ReferencedValueSize - min(live, blobs.ReferencedValueSize)
	onDisk := uint64(float64(hidden) / float64(blobs.ValueSize) * float64(blobs.LiveSize)) // they are compressed
	if !worthReclaiming(onDisk, reachable(m)) {
		r.checked = now
		return 0, nil
	}
	return onDisk, nil
}

func worthReclaiming(dead, all uint64) bool {
	return dead >= minReclaimed && dead >= all/reclaimedShare
}

// liveValues returns the size of the values in blob files that can be read. It reads keys only.
func (r *Reclaimer) liveValues(ctx context.Context) (size uint64, err error) {
	it, err := r.db.NewIterWithContext(ctx, nil)
	if err != nil {
		return 0, err
	}
	const check = 1 << 10 // rows after which the context is checked
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if v := it.LazyValue(); v.Fetcher != nil && v.Fetcher.BlobFileID != 0 {
			size += uint64(v.Len())
		}
		if n++; n%check == 0 && ctx.Err() != nil {
			return 0, errors.Join(ctx.Err(), it.Close())
		}
	}
	return size, errors.Join(it.Error(), it.Close())
}

func tableBytes(m *pebble.Metrics) (size uint64) {
	for i := range m.Levels {
		size += uint64(max(0, m.Levels[i].TablesSize))
	}
	return size
}

// reachable returns the bytes of tables and of the values in blob files that they refer to, as on disk.
func reachable(m *pebble.Metrics) uint64 {
	size := tableBytes(m)
	if b := &m.BlobFiles; b.ValueSize > 0 {
		size += uint64(float64(b.ReferencedValueSize) / float64(b.ValueSize) * float64(b.LiveSize))
	}
	return size
}
