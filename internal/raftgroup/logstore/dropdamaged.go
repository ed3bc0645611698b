package logstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// copiedTable is the size from which copied rows continue in another table file.
const copiedTable = 64 << 20

// Extent is the range of entries that the log of a group must have. It is empty if First is greater than Last.
type Extent struct{ First, Last uint64 }

// DropDamaged replaces all tables of the database, in one step, by tables with the rows that can be read. A damaged block may
// have rows of several groups, and the rows around it cannot be removed without reading it. The first and
// the last of adjacent entries that cannot be read, and that are in the extent of their group, are replaced by damaged rows, so that
// their loss is not overlooked. It fails if a group without an extent has damage. No group may be open.
func (l *DB) DropDamaged(ctx context.Context, extents map[uint32]Extent) error {
	groups, err := l.stableGroups()
	if err != nil {
		return err
	}
	groups = slices.AppendSeq(groups, maps.Keys(extents))
	found, err := l.Groups()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	groups = append(groups, found...)
	slices.Sort(groups)
	w := &tableWriter{files: l.files}
	begins := map[uint32]uint64{}
	for _, group := range slices.Compact(groups) {
		extent, known := extents[group]
		begin, err := l.copyLog(w, group, extent, known)
		if err != nil {
			return errors.Join(fmt.Errorf("copy the log of group %d: %w", group, err), w.discard())
		}
		begins[group] = begin
	}
	// Open has read the rest.
	if err := l.copyRows(w, []byte{keyKindStable}, []byte{keyKindStable + 1}, func([]byte) error { return nil }); err != nil {
		return errors.Join(fmt.Errorf("copy the log database: %w", err), w.discard())
	}
	if err := w.finish(); err != nil {
		return errors.Join(fmt.Errorf("copy the log database: %w", err), w.discard())
	}
	span := pebble.KeyRange{Start: []byte{keyKindLog}, End: []byte{keyKindStable + 1}}
	if len(w.paths) == 0 {
		return l.db.Excise(ctx, span)
	}
	if _, err := l.db.IngestAndExcise(ctx, w.paths, nil, nil, span); err != nil {
		return errors.Join(fmt.Errorf("replace the tables of the log database: %w", err), w.discard())
	}
	return l.cutBefore(begins)
}

// cutBefore removes the entries of groups before indexes, if these are not 0.
func (l *DB) cutBefore(begins map[uint32]uint64) error {
	b := l.db.NewBatch()
	defer b.Close()
	for group, begin := range begins {
		if begin == 0 {
			continue
		}
		if err := b.DeleteRange(logKey(group, 0), logKey(group, begin), nil); err != nil {
			return fmt.Errorf("cut the log of group %d: %w", group, err)
		}
	}
	if b.Empty() {
		return nil
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return fmt.Errorf("cut logs: %w", err)
	}
	return nil
}

// stableGroups returns the groups that have values. Open has read these, while a damaged block hides the groups after it
// from Groups.
func (l *DB) stableGroups() (groups []uint32, err error) {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyKindStable}, UpperBound: []byte{keyKindStable + 1}})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); ok; {
		group := binary.BigEndian.Uint32(it.Key()[1:])
		groups = append(groups, group)
		_, next := groupBounds(keyKindStable, group)
		ok = it.SeekGE(next)
	}
	return groups, errors.Join(it.Error(), it.Close())
}

// logCopy copies the log of a group.
type logCopy struct {
	l      *DB
	w      *tableWriter
	group  uint32
	extent Extent
	last   uint64 // last copied entry
	lost   uint64 // first of the entries after it that cannot be read and are in the extent; 0: none
	begin  uint64 // where the log is to begin, so that it has no gap before the extent; 0: at the first copied entry
}

// copyLog copies the rows of the log of a group that can be read, and returns where the log is to begin, 0 if that is its first
// row.
func (l *DB) copyLog(w *tableWriter, group uint32, extent Extent, known bool) (begin uint64, err error) {
	_, end := groupBounds(keyKindLog, group)
	c := &logCopy{l: l, w: w, group: group, extent: extent}
	for next, more := uint64(0), true; more; {
		err := l.copyRows(w, logKey(group, next), end, func(key []byte) error {
			index := indexOf(key)
			before := index - 1
			if len(key) > logKeyLen && index > c.last {
				before = index // its row is missing
			}
			return c.copied(index, before)
		})
		if err == nil {
			break
		}
		if !pebble.IsCorruptionError(err) || !known {
			return 0, err
		}
		if next, more, err = c.around(max(c.last+1, next)); err != nil {
			return 0, err
		}
	}
	return c.begin, w.markDamaged(group, c.lost, extent.Last)
}

// copied notes that an entry is about to be copied, and those from lost to before are lost.
func (c *logCopy) copied(index, before uint64) error {
	err := c.w.markDamaged(c.group, c.lost, before)
	c.last, c.lost = index, 0
	return err
}

// around copies the entries that can be read where an iterator finds damage from an entry on, one by one: they may be in other
// tables than the damaged block, at which an iterator over all tables fails. It returns where an iterator can continue; more is
// false if nothing that is needed follows.
func (c *logCopy) around(index uint64) (next uint64, more bool, err error) {
	// The entry before the extent is the one at the snapshot, with which that is compared. Those before it are not
	// needed, and there may be many numbers.
	if limit := max(c.extent.First, 1) - 1; index < limit {
		good, err := c.l.afterDamage(c.group, index, limit)
		if err != nil {
			return 0, false, err
		}
		if good > 0 {
			c.begin = good
			return good, true, nil
		}
		index, c.begin = limit, limit
	}
	for from, step := index, uint64(1); ; index++ {
		found, err := c.l.copyEntry(c.w, c.group, index, func() error { return c.copied(index, index-1) })
		if err != nil {
			return 0, false, err
		}
		if !found && index < c.extent.First {
			c.begin = index + 1
		}
		if !found && index > c.extent.Last {
			return 0, false, nil
		}
		if !found && c.lost == 0 && index >= c.extent.First {
			c.lost = index
		}
		if index < from+step-1 { // to find damage takes long: Pebble looks for the bit that has changed
			continue
		}
		if damaged, err := c.l.damagedAt(c.group, index+1); err != nil || !damaged {
			return index + 1, true, err
		}
		step *= 2
	}
}

// copyEntry copies an entry after it has called visit; false if its row cannot be read. If one of the chunks cannot be, the
// entry is damaged without it.
func (l *DB) copyEntry(w *tableWriter, group uint32, index uint64, visit func() error) (found bool, err error) {
	key := logKey(group, index)
	row, err := l.value(key)
	if row == nil || err != nil {
		return false, err
	}
	if err := errors.Join(visit(), w.set(key, row)); err != nil || !inChunks(row) {
		return true, err
	}
	size, damaged := joinedSize(key, row)
	for number := uint32(0); damaged == nil && int(number)*chunkSize < size; number++ {
		at := binary.BigEndian.AppendUint32(key[:len(key):len(key)], number)
		chunk, err := l.value(at)
		if chunk == nil || err != nil {
			return true, err
		}
		if err := w.set(at, chunk); err != nil {
			return true, err
		}
	}
	return true, nil
}

// value returns a copy of the value of a row, nil if there is none or it cannot be read.
func (l *DB) value(key []byte) ([]byte, error) {
	value, closer, err := l.db.Get(key)
	if err == nil {
		value = append([]byte{}, value...)
		err = closer.Close()
	}
	if errors.Is(err, pebble.ErrNotFound) || pebble.IsCorruptionError(err) {
		return nil, nil
	}
	return value, err
}

// afterDamage returns the first entry after bad, at most limit, from which on rows can be read; 0 if there is none.
func (l *DB) afterDamage(group uint32, bad, limit uint64) (uint64, error) {
	good := bad
	for step := uint64(1); good == bad; step *= 2 {
		if bad >= limit {
			return 0, nil
		}
		at := min(bad+step, limit)
		damaged, err := l.damagedAt(group, at)
		if err != nil {
			return 0, err
		}
		if good = at; damaged {
			bad = at
		}
	}
	for good-bad > 1 {
		at := bad + (good-bad)/2
		damaged, err := l.damagedAt(group, at)
		if err != nil {
			return 0, err
		}
		if damaged {
			bad = at
		} else {
			good = at
		}
	}
	return good, nil
}

// damagedAt reports whether the first row of a group from an entry on cannot be read.
func (l *DB) damagedAt(group uint32, index uint64) (bool, error) {
	_, end := groupBounds(keyKindLog, group)
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: logKey(group, index), UpperBound: end})
	if err != nil {
		return false, err
	}
	if it.First() {
		_, err = it.ValueAndErr()
	}
	err = errors.Join(err, it.Error(), it.Close())
	if pebble.IsCorruptionError(err) {
		return true, nil
	}
	return false, err
}

// copyRows copies the rows between two keys, before each of which it calls visit with the key.
func (l *DB) copyRows(w *tableWriter, from, to []byte, visit func(key []byte) error) error {
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = visit(it.Key())
		}
		if err == nil {
			err = w.set(it.Key(), value)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// tableWriter writes rows in the order of their keys to table files.
type tableWriter struct {
	files *entryFiles
	open  *sstable.Writer // nil: none
	size  int             // of its rows
	paths []string
}

func (w *tableWriter) set(key, value []byte) error {
	if w.open != nil && w.size >= copiedTable {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.open == nil {
		path := w.files.temporary()
		file, err := w.files.fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		w.paths, w.size = append(w.paths, path), 0
		w.open = sstable.NewWriter(objstorageprovider.NewFileWritable(file), w.files.options)
	}
	w.size += len(key) + len(value)
	return w.open.Set(key, value)
}

// markDamaged writes damaged rows of the first and the last of the entries from first to last. It does nothing if first is 0.
func (w *tableWriter) markDamaged(group uint32, first, last uint64) error {
	if first == 0 || first > last {
		return nil
	}
	err := w.set(logKey(group, first), []byte{0})
	if err == nil && last > first {
		err = w.set(logKey(group, last), []byte{0})
	}
	return err
}

func (w *tableWriter) finish() error {
	if w.open == nil {
		return nil
	}
	err := w.open.Close()
	w.open = nil
	return err
}

// discard removes the files.
func (w *tableWriter) discard() error { return errors.Join(w.finish(), w.files.remove(w.paths)) }
