package pebbledb

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

const rowsPerGroup = 300

// groupSpan is the span of a group of rows whose keys begin with one byte.
func groupSpan(group uint32) pebble.KeyRange {
	return pebble.KeyRange{Start: []byte{byte(group)}, End: []byte{byte(group) + 1}}
}

// damagedDatabase returns a database with three groups of rows, of which the last block of the first group is damaged,
// which also has the first rows of the second one. failed receives the failures of its compactions.
func damagedDatabase(t *testing.T, failed chan error) (*pebble.DB, *Damage) {
	return damagedIn(t, failed, func(l *sstable.Layout) block.Handle {
		share := float64(rowsPerGroup) / (3 * rowsPerGroup) // the rows have the same size
		return l.Data[int(share*float64(len(l.Data)))].Handle
	})
}

// damagedIn returns a database with three groups of rows and a range of deleted ones in each, of whose only table a
// block is damaged. failed receives the failures of its compactions.
func damagedIn(t *testing.T, failed chan error, which func(*sstable.Layout) block.Handle) (*pebble.DB, *Damage) {
	disk := vfs.NewMem()
	open := func() (*pebble.DB, *Damage) {
		o := &pebble.Options{
			FS: disk, Logger: Logger{slog.New(slog.DiscardHandler)}, FormatMajorVersion: pebble.FormatNewest, DisableAutomaticCompactions: true,
			EventListener: &pebble.EventListener{BackgroundError: func(err error) {
				select {
				case failed <- err:
				default: // Pebble repeats some of these compactions immediately
				}
			}},
		}
		damage := ReportDamage(o, slog.New(slog.DiscardHandler))
		db, err := pebble.Open("db", o)
		require.NoError(t, err)
		return db, damage
	}
	db, _ := open()
	for group := byte(1); group <= 3; group++ {
		for i := range rowsPerGroup {
			require.NoError(t, db.Set([]byte{group, byte(i / 256), byte(i)}, make([]byte, 100), nil))
		}
	}
	before := db.NewSnapshot() // of the deleted rows, so that a compaction keeps their tombstones
	for group := byte(1); group <= 3; group++ {
		require.NoError(t, db.DeleteRange([]byte{group, 9}, []byte{group, 10}, nil))
	}
	require.NoError(t, db.Flush())
	require.NoError(t, before.Close())
	require.NoError(t, db.Close())
	names, err := disk.List("db")
	require.NoError(t, err)
	damaged := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			damageBlock(t, disk, "db/"+name, which)
			damaged++
		}
	}
	require.Equal(t, 1, damaged)
	return open()
}

// damageBlock flips a bit in a block of a table.
func damageBlock(t *testing.T, disk vfs.FS, path string, which func(*sstable.Layout) block.Handle) {
	file, err := disk.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	readable, err := sstable.NewSimpleReadable(file)
	require.NoError(t, err)
	r, err := sstable.NewReader(t.Context(), readable, sstable.ReaderOptions{})
	require.NoError(t, err)
	layout, err := r.Layout()
	require.NoError(t, err)
	block := which(layout)
	require.Positive(t, block.Length)
	at := int64(block.Offset) + int64(block.Length)/2
	b := make([]byte, 1)
	_, err = file.ReadAt(b, at)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte{b[0] ^ 1}, at)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// compactAll compacts all groups. The rows before and after them keep the tables from being moved as they are.
func compactAll(t *testing.T, db *pebble.DB) error {
	require.NoError(t, db.Set([]byte{0, 1}, nil, nil))
	require.NoError(t, db.Set([]byte{8, 1}, nil, nil))
	require.NoError(t, db.Flush())
	return db.Compact(t.Context(), []byte{0}, []byte{9}, false)
}

// A compaction finds a damaged block with rows of two groups. Once both groups are removed, compactions succeed, and the
// third one is unchanged.
func TestSpansWithADamagedBlockAreRemoved(t *testing.T) {
	failed := make(chan error, 10)
	db, damage := damagedDatabase(t, failed)
	defer func() { require.NoError(t, db.Close()) }()
	require.True(t, pebble.IsCorruptionError(compactAll(t, db)))
	require.True(t, pebble.IsCorruptionError(<-failed))
	file := <-damage.Files()
	r := NewRemover(db, damage, "db")
	affected, err := r.Affected(file, []uint32{1, 2, 3}, groupSpan)
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 2}, affected)

	require.ErrorIs(t, r.Remove(t.Context(), groupSpan(1)), ErrSharedBlock)
	require.NoError(t, r.Remove(t.Context(), groupSpan(2)))
	require.NoError(t, r.Remove(t.Context(), groupSpan(1)))
	require.Empty(t, r.waiting)
	affected, err = r.Affected(file, []uint32{1, 2, 3}, groupSpan)
	require.NoError(t, err)
	require.Empty(t, affected)
	require.NoError(t, compactAll(t, db))
	require.Empty(t, failed)
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	rows := map[byte]int{}
	for ok := it.First(); ok; ok = it.Next() {
		rows[it.Key()[0]]++
	}
	require.NoError(t, it.Close())
	require.Equal(t, map[byte]int{0: 1, 3: rowsPerGroup, 8: 1}, rows)
}

// A compaction cannot read a block that concerns a whole table: all groups with rows in it have to be removed.
func TestSpansOfATableWithADamagedIndexAreRemoved(t *testing.T) {
	for name, which := range map[string]func(*sstable.Layout) block.Handle{
		"ranges of deleted rows": func(l *sstable.Layout) block.Handle { return l.RangeDel },
		"index":                  func(l *sstable.Layout) block.Handle { return l.Index[0] },
		"properties":             func(l *sstable.Layout) block.Handle { return l.Properties },
		"list of other blocks":   func(l *sstable.Layout) block.Handle { return l.MetaIndex },
		"footer":                 func(l *sstable.Layout) block.Handle { return l.Footer },
	} {
		t.Run(name, func(t *testing.T) {
			failed := make(chan error, 10)
			db, damage := damagedIn(t, failed, which)
			defer func() { require.NoError(t, db.Close()) }()
			require.True(t, pebble.IsCorruptionError(compactAll(t, db)))
			file := <-damage.Files()
			r := NewRemover(db, damage, "db")
			affected, err := r.Affected(file, []uint32{1, 2, 3, 4}, groupSpan)
			require.NoError(t, err)
			require.Equal(t, []uint32{1, 2, 3}, affected)
			if name == "ranges of deleted rows" { // all rows can be read
				some, err := r.Affected(file, []uint32{1, 2}, groupSpan)
				require.NoError(t, err)
				require.Empty(t, some, "the table would remain without them")
			}
			require.ErrorIs(t, r.Remove(t.Context(), groupSpan(1)), ErrSharedBlock)
			require.ErrorIs(t, r.Remove(t.Context(), groupSpan(3)), ErrSharedBlock)
			require.NoError(t, r.Remove(t.Context(), groupSpan(2)))
			require.NoError(t, compactAll(t, db))
		})
	}
}
