package hardstate

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

// damagedLogs writes the entries up to each of ends, of all groups, to a table of their own, and damages an entry of group 7.
func damagedLogs(t *testing.T, hard *File, damaged, snapshot uint64, ends ...uint64) (open func() (*logstore.DB, func())) {
	t.Helper()
	dir := t.TempDir()
	open = opener(t, dir)
	from := uint64(0)
	for _, end := range ends {
		db, closeDB := open()
		for _, group := range []uint32{6, 7, 8, 9} {
			s, err := db.Storage(group)
			require.NoError(t, err)
			require.NoError(t, s.SetUint64(keyCurrentTerm, 3))
			require.NoError(t, s.StoreLogs(randomLogs(group, end)[from:]))
			g, err := hard.Group(group)
			require.NoError(t, err)
			require.NoError(t, g.setTerm(3))
			require.NoError(t, g.stored(logstore.Position{Index: end, Term: 3}))
			require.NoError(t, g.snapshot(snapshot))
		}
		closeDB()
		_, closeDB = open() // writes the entries to a table
		closeDB()
		from = end
	}
	damageEntry(t, dir, randomLogs(7, ends[len(ends)-1])[damaged-1])
	return open
}

// A block that cannot be read does not keep entries from being copied that are in another table.
func TestEntriesInOtherTablesThanTheDamagedBlockAreKept(t *testing.T) {
	hard, g := openHard(t, vfs.NewMem())
	defer func() { require.NoError(t, hard.Close()) }()
	open := damagedLogs(t, hard, 200, 0, 100, 200, 400) // the first two tables are compacted
	db, closeDB := open()
	defer func() { closeDB() }()
	_, err := db.Storage(7)
	require.ErrorIs(t, err, logstore.ErrCorrupt)
	l, err := AssessDamage(db, 7, g.Record(), logstore.Position{Index: 250, Term: 3}, []raft.Server{{ID: "self"}})
	require.NoError(t, err)
	require.EqualValues(t, 400, l.Kept)
	require.NoError(t, l.Accept(db, 7, hard))
	closeDB()

	db, closeDB = open()
	for _, group := range []uint32{6, 7, 8} {
		s, err := db.Storage(group)
		require.NoError(t, err)
		want := randomLogs(group, 400)
		for i := uint64(251); i <= 400; i++ {
			var log raft.Log
			require.NoError(t, s.GetLog(i, &log), "entry %d of group %d", i, group)
			require.Equal(t, want[i-1].Data, log.Data)
		}
	}
}

// Damage among entries before the snapshot, which are kept for others, costs no entry after it.
func TestDamageBeforeTheSnapshotCostsNoLaterEntries(t *testing.T) {
	for _, snapshot := range []uint64{100, 200} {
		hard, _ := openHard(t, vfs.NewMem())
		open := damagedLogs(t, hard, 20, snapshot, 200)
		db, closeDB := open()
		require.NoError(t, hard.dropDamaged(db, 6, 0))
		closeDB()
		db, closeDB = open()
		s, err := db.Storage(7)
		require.NoError(t, err)
		first, last, err := logstore.Bounds(s)
		require.NoError(t, err)
		require.LessOrEqual(t, first, snapshot) // which is compared with the entry at its index
		require.EqualValues(t, 200, last)
		for i := first; i <= last; i++ {
			require.NoError(t, s.GetLog(i, new(raft.Log)), "entry %d", i)
		}
		closeDB()
		require.NoError(t, hard.Close())
	}
}

// Groups after a damaged block are not lost because the damage hides them. What is lost of a group that is not on record is
// unknown, so nothing is changed.
func TestGroupsWithoutRecordAreKept(t *testing.T) {
	hard, _ := openHard(t, vfs.NewMem())
	defer func() { require.NoError(t, hard.Close()) }()
	open := damagedLogs(t, hard, 200, 0, 200) // the block also has entries of group 8
	db, closeDB := open()
	extents := map[uint32]logstore.Extent{7: {First: 1, Last: 200}}
	require.ErrorContains(t, db.DropDamaged(t.Context(), extents), "group 8")
	extents[8] = extents[7]
	require.NoError(t, db.DropDamaged(t.Context(), extents))
	closeDB()
	db, closeDB = open()
	defer closeDB()
	for _, group := range []uint32{6, 7, 8, 9} {
		s, err := db.Storage(group)
		require.NoError(t, err)
		last, err := s.LastIndex()
		require.NoError(t, err)
		require.EqualValues(t, 200, last, "group %d", group)
	}
}

// The entry after a large one, a part of which cannot be read, is kept.
func TestTheEntryAfterADamagedLargeOneIsKept(t *testing.T) {
	dir := t.TempDir()
	open := opener(t, dir)
	db, closeDB := open()
	s, err := db.Storage(7)
	require.NoError(t, err)
	logs := randomLogs(7, 5)
	logs[2].Data = make([]byte, 600<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(logs[2].Data) // never fails
	require.NoError(t, s.StoreLogs(logs))
	closeDB()
	_, closeDB = open() // writes the entries to files
	closeDB()
	files, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	at := bytes.Index(data, logs[2].Data[300<<10:][:100])
	require.Positive(t, at)
	data[at] ^= 1
	require.NoError(t, os.WriteFile(files[0], data, 0o600))

	db, closeDB = open()
	require.NoError(t, db.DropDamaged(t.Context(), map[uint32]logstore.Extent{7: {First: 1, Last: 5}}))
	closeDB()
	db, closeDB = open()
	defer closeDB()
	s, err = db.Storage(7)
	require.NoError(t, err)
	for i, want := range logs {
		var log raft.Log
		if err := s.GetLog(uint64(i+1), &log); i == 2 {
			require.ErrorIs(t, err, logstore.ErrCorrupt)
			continue
		} else {
			require.NoError(t, err, "entry %d", i+1)
		}
		require.Equal(t, want.Data, log.Data)
	}
}

// The time to assess and to accept damage depends on the number of entries, not on their indexes.
func TestDamageInALogWithLargeIndexesIsAccepted(t *testing.T) {
	const base = uint64(1e15)
	dir := t.TempDir()
	open := opener(t, dir)
	hard, g := openHard(t, vfs.NewMem())
	defer func() { require.NoError(t, hard.Close()) }()
	db, closeDB := open()
	s, err := db.Storage(7)
	require.NoError(t, err)
	require.NoError(t, s.SetUint64(keyCurrentTerm, 3))
	members := []raft.Server{{ID: "self"}}
	at := logstore.Position{Index: base + 100, Term: 3}
	require.NoError(t, CurrentSnapshot.Save(s, SnapshotRecord{Index: at.Index, Term: 3, State: at, Config: raft.Configuration{Servers: members}}))
	logs := randomLogs(7, 200)
	for _, log := range logs {
		log.Index += base
	}
	require.NoError(t, s.StoreLogs(logs))
	require.NoError(t, g.setTerm(3))
	require.NoError(t, g.stored(logstore.Position{Index: base + 200, Term: 3}))
	require.NoError(t, g.snapshot(at.Index))
	closeDB()
	_, closeDB = open() // writes the entries to a table
	closeDB()
	damageEntry(t, dir, logs[0])

	db, closeDB = open()
	l, err := AssessDamage(db, 7, g.Record(), at, members)
	require.NoError(t, err)
	require.Equal(t, base+200, l.Kept)
	require.NoError(t, l.Accept(db, 7, hard))
	closeDB()
	db, closeDB = open()
	defer closeDB()
	s, err = db.Storage(7)
	require.NoError(t, err)
	_, _, err = Reconcile(s, g, at)
	require.NoError(t, err)
	first, last, err := logstore.Bounds(s)
	require.NoError(t, err)
	require.Equal(t, base+200, last)
	for ; first <= last; first++ {
		require.NoError(t, s.GetLog(first, new(raft.Log)))
	}
}
