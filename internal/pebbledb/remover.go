package pebbledb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

// ErrSharedBlock means that a span was not removed yet, since a damaged block contains rows of another span as well.
var ErrSharedBlock = errors.New("a damaged block also contains rows of another partition, whose data has to be removed first")

// Remover removes spans from a database with damaged files, without reading the rows. A range tombstone only hides them:
// while a block of them cannot be read, no compaction of its file succeeds, and in the end writes wait for one.
type Remover struct {
	db     *pebble.DB
	damage *Damage
	dir    string

	// mu covers waiting. It is held while spans are removed, so that none of them is used again meanwhile.
	mu      sync.Mutex
	waiting []pebble.KeyRange // spans that could not be removed alone
}

// NewRemover returns the remover of a database in dir.
func NewRemover(db *pebble.DB, damage *Damage, dir string) *Remover {
	return &Remover{db: db, damage: damage, dir: dir}
}

// Remove removes a span, which must not be in use. It does nothing if no damage was found in the database. After
// ErrSharedBlock it must be called again and the span must stay unused: it may also be removed together with the span
// before or after it.
func (r *Remover) Remove(ctx context.Context, span pebble.KeyRange) error {
	if !r.damage.any() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(span)
	all := r.extend(span)
	if err := r.checkEnds(all); err != nil {
		if pebble.IsCorruptionError(err) {
			r.waiting = append(r.waiting, span)
			err = fmt.Errorf("%w: %w", ErrSharedBlock, err)
		}
		return err
	}
	r.drop(all)
	return r.db.Excise(ctx, all)
}

// Affected returns those of the ids whose spans have rows in blocks of a table file that cannot be read, or in a table that
// cannot be opened. Removed spans have none. It does not know those of a blob file: its values are found to be damaged when they are read.
func (r *Remover) Affected(file DamagedFile, ids []uint32, span func(id uint32) pebble.KeyRange) (affected []uint32, err error) {
	var tables []*pebble.SSTableInfo
	err = r.eachTable(func(t *pebble.SSTableInfo, path string) error {
		if path == file.Path {
			tables = append(tables, t)
		}
		return nil
	})
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	table, err := r.damage.open(file.Path)
	if err != nil && !pebble.IsCorruptionError(err) {
		return nil, err
	}
	spans := make([]pebble.KeyRange, len(ids))
	for i, id := range ids {
		spans[i] = span(id)
	}
	whole := table == nil || checkDeleted(table) != nil // is unreadable
	for i, id := range ids {
		if slices.ContainsFunc(tables, func(t *pebble.SSTableInfo) bool {
			return overlap(t, spans[i]) && (whole && removable(t, spans) || table != nil && !readable(table, t, spans[i]))
		}) {
			affected = append(affected, id)
		}
	}
	if table == nil {
		return affected, nil
	}
	return affected, table.Close()
}

// checkDeleted returns an error if the ranges of deleted rows cannot be read. They are in one block, which concerns all rows
// of the table, and without which no compaction succeeds.
func checkDeleted(file *sstable.Reader) error {
	it, err := file.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
	if it != nil {
		it.Close()
	}
	return err
}

// overlap reports whether a table may have rows of a span.
func overlap(t *pebble.SSTableInfo, span pebble.KeyRange) bool {
	return bytes.Compare(t.Smallest.UserKey, span.End) < 0 && !endsBefore(t, span.Start)
}

// endsBefore reports whether a table has no rows from key on.
func endsBefore(t *pebble.SSTableInfo, key []byte) bool {
	c := bytes.Compare(t.Largest.UserKey, key)
	return c < 0 || c == 0 && t.Largest.IsExclusiveSentinel()
}

// removable reports whether a table is removed when all of the spans are. It also has other rows otherwise, such as the
// marks of the log, and would remain.
func removable(t *pebble.SSTableInfo, spans []pebble.KeyRange) bool {
	begins := func(s pebble.KeyRange) bool {
		return bytes.Compare(s.Start, t.Smallest.UserKey) <= 0 && bytes.Compare(t.Smallest.UserKey, s.End) < 0
	}
	ends := func(s pebble.KeyRange) bool { return !endsBefore(t, s.Start) && endsBefore(t, s.End) }
	return slices.ContainsFunc(spans, begins) && slices.ContainsFunc(spans, ends)
}

// readable reports whether all blocks can be read that may have rows of a span. The table may be a part of the file.
func readable(file *sstable.Reader, t *pebble.SSTableInfo, span pebble.KeyRange) bool {
	first, last := t.Smallest.UserKey, t.Largest.UserKey
	if bytes.Compare(first, span.Start) < 0 {
		first = span.Start
	}
	it, err := file.NewIter(block.NoTransforms, first, span.End, sstable.DebugHandlesBlobContext)
	if err != nil {
		return false
	}
	for kv := it.First(); kv != nil && bytes.Compare(kv.K.UserKey, last) < 0; kv = it.Next() {
	}
	return errors.Join(it.Error(), it.Close()) == nil
}

// eachTable calls f for all tables and the paths of their files.
func (r *Remover) eachTable(f func(t *pebble.SSTableInfo, path string) error) error {
	levels, err := r.db.SSTables()
	if err != nil {
		return err
	}
	for _, tables := range levels {
		for i := range tables {
			path := r.damage.fs.PathJoin(r.dir, tables[i].BackingSSTNum.String()+".sst")
			if err := f(&tables[i], path); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEnds returns an error if the rows right before and after a span cannot be read, or the ranges of deleted rows.
// Pebble (2.1) ignores that error when it excises the span, and loses all rows of the file before or after it.
func (r *Remover) checkEnds(span pebble.KeyRange) error {
	return r.eachTable(func(t *pebble.SSTableInfo, path string) error {
		contains := func(key []byte) bool {
			return bytes.Compare(t.Smallest.UserKey, key) < 0 && bytes.Compare(key, t.Largest.UserKey) <= 0
		}
		before, after := contains(span.Start), contains(span.End)
		if !before && !after {
			return nil
		}
		if err := r.damage.checkEnds(path, span, before, after); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// checkEnds reads the rows of one table before and after a span.
func (d *Damage) checkEnds(path string, span pebble.KeyRange, before, after bool) error {
	table, err := d.open(path)
	if err != nil {
		return err
	}
	if err := checkDeleted(table); err != nil {
		return errors.Join(err, table.Close())
	}
	it, err := table.NewIter(block.NoTransforms, nil, nil, sstable.DebugHandlesBlobContext)
	if err != nil {
		return errors.Join(err, table.Close())
	}
	if before {
		it.SeekLT(span.Start, 0)
		err = it.Error()
	}
	if after && err == nil {
		it.SeekGE(span.End, 0)
		err = it.Error()
	}
	return errors.Join(err, it.Close(), table.Close())
}

// extend returns a span with the waiting spans before and after it.
func (r *Remover) extend(span pebble.KeyRange) pebble.KeyRange {
	for range r.waiting { // they are in any order
		for _, w := range r.waiting {
			switch {
			case bytes.Equal(w.End, span.Start):
				span.Start = w.Start
			case bytes.Equal(w.Start, span.End):
				span.End = w.End
			}
		}
	}
	return span
}

// drop forgets the waiting spans within a span.
func (r *Remover) drop(span pebble.KeyRange) {
	r.waiting = slices.DeleteFunc(r.waiting, func(w pebble.KeyRange) bool {
		return bytes.Compare(w.Start, span.Start) >= 0 && bytes.Compare(w.End, span.End) <= 0
	})
}
