package pebbledb

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

const (
	reclaimRows  = 1600
	reclaimValue = 64 << 10 // bytes, about 100 MiB together
	ample        = 1 << 40  // room on the disk
)

// reclaimable returns a database with values in blob files, none of which is deleted, and its reclaimer.
func reclaimable(t *testing.T, disk vfs.FS, changes ...func(*pebble.Options)) (*pebble.DB, *Reclaimer) {
	o := &pebble.Options{
		FS: disk, Logger: Logger{slog.New(slog.DiscardHandler)}, FormatMajorVersion: pebble.FormatNewest,
		MemTableSize: 32 << 20, EventListener: new(pebble.EventListener),
	}
	for _, change := range changes {
		change(o)
	}
	SeparateValues(o)
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	db, err := pebble.Open("db", o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for i := range reclaimRows {
		require.NoError(t, db.Set(reclaimKey(i), make([]byte, reclaimValue), nil))
	}
	require.NoError(t, db.Flush())
	return db, NewReclaimer("db", db, nil, []byte{0xff})
}

func reclaimKey(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }

func blobBytes(db *pebble.DB) uint64 {
	m := db.Metrics()
	return m.BlobFiles.LiveSize
}

// The rows of a database are deleted, then nothing is written: the deletions stay in the memtable, and retain the
// values.
func TestSpaceOfDeletedValuesIsReclaimedWithoutWrites(t *testing.T) {
	for name, remove := range map[string]func(*pebble.DB) error{
		"range": func(db *pebble.DB) error { return db.DeleteRange(reclaimKey(10), reclaimKey(reclaimRows), nil) },
		"rows": func(db *pebble.DB) (err error) {
			for i := 10; i < reclaimRows; i++ {
				err = errors.Join(err, db.Delete(reclaimKey(i), nil))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, r := reclaimable(t, vfs.NewMem())
			require.NoError(t, remove(db))
			require.Greater(t, blobBytes(db), uint64(reclaimRows*reclaimValue))
			dead, freed, err := r.reclaim(t.Context(), ample)
			require.NoError(t, err)
			require.InEpsilon(t, (reclaimRows-10)*reclaimValue, dead, 0.05)
			require.InEpsilon(t, dead, freed, 0.05)
			require.Less(t, blobBytes(db), uint64(minReclaimed))
			for i := range 10 {
				value, closer, err := db.Get(reclaimKey(i))
				require.NoError(t, err)
				require.Len(t, value, reclaimValue)
				require.NoError(t, closer.Close())
			}
			compactions := db.Metrics().Compact.Count
			dead, _, err = r.reclaim(t.Context(), ample)
			require.NoError(t, err)
			require.Zero(t, dead)
			require.Equal(t, compactions, db.Metrics().Compact.Count)
		})
	}
}

// A database with few dead values is not compacted.
func TestLiveValuesAreNotCompacted(t *testing.T) {
	db, r := reclaimable(t, vfs.NewMem())
	require.NoError(t, db.DeleteRange(reclaimKey(0), reclaimKey(reclaimRows/2), nil))
	dead, _, err := r.reclaim(t.Context(), ample)
	require.NoError(t, err)
	require.Zero(t, dead, "50 MiB are less than the minimum")
	m := db.Metrics()
	require.Zero(t, m.Compact.Count)
	require.EqualValues(t, 1, m.MemTable.Count)
}

// Without writes since the last check, the rows are not read again.
func TestUnchangedDatabasesAreNotRead(t *testing.T) {
	db, r := reclaimable(t, vfs.NewMem())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	readsRows := func() bool { // the context is checked when 1024 rows have been read
		_, _, err := r.reclaim(ended, ample)
		return err != nil
	}
	check := func() {
		require.True(t, readsRows())
		dead, _, err := r.reclaim(t.Context(), ample)
		require.NoError(t, err)
		require.Zero(t, dead)
		require.False(t, readsRows())
	}
	check()
	require.NoError(t, db.Delete(reclaimKey(0), nil))
	check()
	snapshot := db.NewSnapshot()
	require.True(t, readsRows(), "what was written last is unknown")
	require.NoError(t, db.Delete(reclaimKey(1), nil))
	require.NoError(t, snapshot.Close())
	check()
	require.NoError(t, db.Flush())
	check()
	require.NoError(t, db.DeleteRange(reclaimKey(0), reclaimKey(reclaimRows), nil))
	dead, _, err := r.reclaim(t.Context(), ample)
	require.NoError(t, err)
	require.NotZero(t, dead)
}

// An open iterator or snapshot retains what was deleted since: attempts to free it become rare, and succeed after it
// was closed.
func TestReclaimingRetainedSpaceBacksOff(t *testing.T) {
	db, r := reclaimable(t, vfs.NewMem())
	snapshot := db.NewSnapshot()
	require.NoError(t, db.DeleteRange(reclaimKey(0), reclaimKey(reclaimRows), nil))
	var waits []time.Duration
	for range 8 {
		dead, freed, err := r.reclaim(t.Context(), ample)
		require.NoError(t, err)
		require.NotZero(t, dead)
		require.Less(t, freed, uint64(1<<20))
		r.schedule(0, dead, freed, err)
		waits = append(waits, r.pause)
	}
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour}
	require.Equal(t, want, waits)
	require.NoError(t, snapshot.Close())
	require.Eventually(t, func() bool {
		_, _, err := r.reclaim(t.Context(), ample)
		require.NoError(t, err)
		return blobBytes(db) < minReclaimed
	}, time.Minute, time.Millisecond, "closing a snapshot also makes Pebble compact some tables")
	r.schedule(0, 0, 0, nil)
	require.Equal(t, reclaimPause, r.pause)
}

// After an attempt that paid off the next one follows soon, since a server under load deletes more.
func TestPausesBetweenAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		took        time.Duration
		dead, freed uint64
		want        time.Duration
	}{
		"nothing to do":                  {time.Millisecond, 0, 0, reclaimPause},
		"nothing to do, a large one":     {time.Second, 0, 0, 50 * time.Second},
		"paid off":                       {time.Second, 1000, 900, reclaimPause},
		"paid off, a large one":          {10 * time.Second, 1000, 900, 80 * time.Second},
		"freed little":                   {time.Millisecond, 1000, 100, 2 * reclaimPause},
		"freed little, and took a while": {time.Second, 1000, 100, 50 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := NewReclaimer("db", nil, nil, nil)
			r.schedule(c.took, c.dead, c.freed, nil)
			require.Equal(t, c.want, time.Until(r.next), name)
		})
	}
}

var errPlanted = errors.New("planted failure: the disk is full")

// Pebble repeats failed flushes and compactions, and what waits for them. An attempt ends with its context; the next one
// follows after a longer pause.
func TestFailedReclaimingIsRepeated(t *testing.T) {
	disk := &switchedFS{FS: vfs.NewMem()}
	db, r := reclaimable(t, disk)
	require.NoError(t, db.DeleteRange(reclaimKey(1), reclaimKey(reclaimRows), nil))
	disk.fail.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _, err := r.reclaim(ctx, ample)
	require.Error(t, err)
	r.schedule(0, 0, 0, err)
	require.Equal(t, 2*reclaimPause, r.pause)
	disk.fail.Store(false)
	require.Eventually(t, func() bool {
		_, _, err := r.reclaim(t.Context(), ample)
		require.NoError(t, err)
		return blobBytes(db) < minReclaimed
	}, time.Minute, time.Millisecond, "by the next attempt, or by Pebble, which goes on with the compaction of the failed one")
}

// switchedFS is a file system in which creating files fails while fail is set.
type switchedFS struct {
	vfs.FS
	fail atomic.Bool
}

func (s *switchedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if s.fail.Load() {
		return nil, errPlanted
	}
	return s.FS.Create(name, c)
}

// Pebble repeats a compaction that cannot read a damaged block, and an attempt waits for it. The damage is reported, the
// attempt ends with its context, and the other rows can be read and written.
func TestDamageIsReportedWhileSpaceIsReclaimed(t *testing.T) {
	disk := vfs.NewMem()
	var damage *Damage
	db, r := reclaimable(t, disk, func(o *pebble.Options) {
		damage = ReportDamage(o, slog.New(slog.DiscardHandler))
		new(WriteProgress).Watch(o) // pauses between retries
	})
	require.NoError(t, db.DeleteRange(reclaimKey(1), reclaimKey(reclaimRows-1), nil))
	files, err := disk.List("db")
	require.NoError(t, err)
	table := slices.IndexFunc(files, func(name string) bool { return strings.HasSuffix(name, ".sst") })
	path := disk.PathJoin("db", files[table])
	file, err := disk.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte("damage"), 10)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reported := make(chan DamagedFile, 1)
	go func() {
		reported <- <-damage.Files()
		cancel()
	}()
	_, freed, err := r.reclaim(ctx, ample)
	require.Error(t, err)
	require.Zero(t, freed)
	require.Equal(t, path, (<-reported).Path)
	require.NoError(t, db.Set(reclaimKey(reclaimRows), []byte("new"), nil))
	for _, row := range []int{reclaimRows - 1, reclaimRows} {
		_, closer, err := db.Get(reclaimKey(row))
		require.NoError(t, err)
		require.NoError(t, closer.Close())
	}
}

// What a compaction writes must not fill the disk.
func TestReclaimingFitsOnTheDisk(t *testing.T) {
	db, r := reclaimable(t, vfs.NewMem())
	require.NoError(t, db.DeleteRange(reclaimKey(10), reclaimKey(reclaimRows), nil))
	m := db.Metrics()
	needed := tableBytes(m) + m.MemTable.Size
	require.Less(t, needed, uint64(64<<20))
	dead, _, err := r.reclaim(t.Context(), needed-1)
	require.NoError(t, err)
	require.Zero(t, dead)
	require.Zero(t, db.Metrics().Compact.Count)
	dead, _, err = r.reclaim(t.Context(), needed)
	require.NoError(t, err)
	require.NotZero(t, dead)
	require.Less(t, blobBytes(db), uint64(minReclaimed))
}

// Nothing is compacted while the disk is full.
func TestReclaimersPauseOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		checks := 0
		full := func() uint64 {
			if checks++; checks == 3 {
				cancel()
			}
			return 0
		}
		// A nil database: any access fails.
		require.NoError(t, RunReclaimers(ctx, full, slog.New(slog.DiscardHandler), NewReclaimer("db", nil, nil, nil)))
		require.Equal(t, 3, checks)
	})
}
