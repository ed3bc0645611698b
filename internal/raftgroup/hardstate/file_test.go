package hardstate

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

var quiet = slog.New(slog.DiscardHandler)

func openHard(t *testing.T, fs vfs.FS) (*File, *State) {
	t.Helper()
	h, err := Open("HARDSTATE", "inc-1", fs, quiet)
	require.NoError(t, err)
	g, err := h.Group(7)
	require.NoError(t, err)
	return h, g
}

func TestHardStateIsReadBack(t *testing.T) {
	fs := vfs.NewMem()
	h, g := openHard(t, fs)
	require.Equal(t, Record{}, g.Record())
	require.NoError(t, g.setTerm(4))
	require.NoError(t, g.setVote(4, []byte("a:1")))
	require.NoError(t, g.stored(logstore.Position{Index: 10, Term: 4}))
	require.NoError(t, g.snapshot(5))
	far, err := h.Group(maxGroup)
	require.NoError(t, err)
	require.NoError(t, far.setTerm(1))
	want := g.rec
	require.NoError(t, h.Close())

	h, g = openHard(t, fs)
	require.Equal(t, want, g.rec)
	require.Equal(t, Record{Term: 4, VoteTerm: 4, Last: logstore.Position{Index: 10, Term: 4}, Snapshot: 5, candidate: candidateHash([]byte("a:1"))}, g.Record())
	_, err = h.Group(maxGroup + 1)
	require.Error(t, err)
	require.NoError(t, h.Close())

	_, err = Open("HARDSTATE", "inc-2", fs, quiet)
	require.ErrorIs(t, err, ErrForeign)
}

// TestHardStateBytes pins the format of the file.
func TestHardStateBytes(t *testing.T) {
	slot := make([]byte, slotSize)
	r := stored{seq: 9, replica: 2, removing: true, term: 3, voteTerm: 3, candidate: 0x1122334455667788, last: 100, lastTerm: 2, snapshot: 50}
	r.encode(slot, 7)
	require.Equal(t, "0900000000000000"+"07000000"+"02000000"+"0300000000000000"+"0300000000000000"+"8877665544332211"+
		"6400000000000000"+"0200000000000000"+"3200000000000000"+"01", fmt.Sprintf("%x", slot[:65]))
	require.Equal(t, checksum(slot[:124]), uint32(slot[124])|uint32(slot[125])<<8|uint32(slot[126])<<16|uint32(slot[127])<<24)
	var back stored
	blank, err := back.decode(slot, 7)
	require.NoError(t, err)
	require.False(t, blank)
	require.Equal(t, r, back)
	_, err = back.decode(slot, 8)
	require.ErrorIs(t, err, logstore.ErrCorrupt, "the record of another group")

	page, err := header{incarnation: "01ABC"}.encode()
	require.NoError(t, err)
	require.Equal(t, "plhardst\x01\x0501ABC", string(page[:15]))
}

// TestHardStateSurvivesADamagedCopy flips each byte of the record's newer copy, as a
// write that was cut off does: the older copy counts. With both damaged it is refused.
func TestHardStateSurvivesADamagedCopy(t *testing.T) {
	for at := range slotSize {
		fs := vfs.NewMem()
		h, g := openHard(t, fs)
		require.NoError(t, g.setTerm(3))
		require.NoError(t, g.setTerm(4))
		newer, older := offsetOf(7, g.rec.seq), offsetOf(7, g.rec.seq-1)
		require.NoError(t, h.Close())
		flip(t, fs, newer+int64(at))
		h, g = openHard(t, fs)
		require.Equal(t, uint64(3), g.Record().Term)
		require.NoError(t, h.Close())
		flip(t, fs, older+int64(at))
		h, err := Open("HARDSTATE", "inc-1", fs, quiet)
		require.NoError(t, err)
		_, err = h.Group(7)
		require.ErrorIs(t, err, logstore.ErrCorrupt)
		require.NoError(t, h.Close())
	}
}

func flip(t *testing.T, fs vfs.FS, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite("HARDSTATE", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	b[0] ^= 0x40
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestRetiredReplicaIsNotOpened checks that an interrupted removal is finished first, and that
// the next replica number outlives it in both copies.
func TestRetiredReplicaIsNotOpened(t *testing.T) {
	fs := vfs.NewMem()
	h, g := openHard(t, fs)
	require.NoError(t, g.setTerm(3))
	require.NoError(t, g.Retire())
	newer := offsetOf(7, g.rec.seq)
	require.NoError(t, h.Close())
	flip(t, fs, newer)

	h, g = openHard(t, fs)
	require.Equal(t, Record{Replica: 1, Removing: true}, g.Record())
	_, _, err := Reconcile(checkedStorage(t, 1, 5), g, logstore.Position{})
	require.ErrorIs(t, err, ErrLeaving)
	require.NoError(t, g.Retire(), "repeated after an interruption")
	require.Equal(t, Record{Replica: 1, Removing: true}, g.Record())
	require.NoError(t, g.Accept())
	require.Equal(t, Record{Replica: 1}, g.Record())
	_, _, err = Reconcile(checkedStorage(t, 1, 5), g, logstore.Position{})
	require.NoError(t, err)
	require.NoError(t, h.Close())
}

// TestAMissingRecordIsNoticed erases the records, or the whole file: without the records, a
// storage that has lost votes and entries could not be recognized.
func TestAMissingRecordIsNoticed(t *testing.T) {
	for _, size := range []int64{pageSize, 0} {
		fs := vfs.NewMem()
		h, g := openHard(t, fs)
		require.True(t, g.Missing())
		s := checkedStorage(t, 1, 5)
		_, _, err := Reconcile(s, g, logstore.Position{}) // the storage of an older server, without a record
		require.NoError(t, err)
		require.False(t, g.Missing())
		require.NoError(t, g.Renumber())
		require.NoError(t, h.Close())

		truncateFile(t, fs, "HARDSTATE", size)
		if size > 0 { // as an older server wrote it
			overwrite(t, fs, int64(len(magic)+2+len("inc-1")+4), make([]byte, 24))
			appendZeros(t, fs, "HARDSTATE", 2*pageSize)
		}
		h, g = openHard(t, fs)
		require.True(t, g.Missing())
		_, _, err = Reconcile(s, g, logstore.Position{})
		require.ErrorIs(t, err, ErrQuarantined)
		require.ErrorContains(t, err, "has no record of the replica")
		require.NoError(t, h.RetireUnknown(7, 3))
		require.Equal(t, Record{Replica: 3 + skippedNumbers, Removing: true}, g.Record())
		require.NoError(t, h.Close())
	}
}

// TestATruncatedFileIsRefused has a file that is shorter than its header says, also after an
// older server has added pages.
func TestATruncatedFileIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	h, _ := openHard(t, fs)
	require.NoError(t, h.Close())
	appendZeros(t, fs, "HARDSTATE", 2*pageSize)
	h, g := openHard(t, fs)
	require.NoError(t, g.setTerm(3))
	require.NoError(t, h.Close())
	for _, pages := range []int64{4, 3, 1} {
		truncateFile(t, fs, "HARDSTATE", pages*pageSize)
		_, err := Open("HARDSTATE", "inc-1", fs, quiet)
		require.ErrorIs(t, err, errTruncated)
		require.ErrorIs(t, err, logstore.ErrCorrupt)
	}
}

// TestPagesOfZerosAreDamage overwrites pages with zeros, as a disk does that has lost them:
// the records in them are lost, not unused.
func TestPagesOfZerosAreDamage(t *testing.T) {
	zero := make([]byte, pageSize)
	for _, older := range []bool{false, true} {
		fs := vfs.NewMem()
		if older { // an older server has made the file, and its pages are marked by the next start
			head, err := header{incarnation: "inc-1", pairs: 1}.encode()
			require.NoError(t, err)
			clear(head[len(magic)+2+len("inc-1")+4+12:])
			appendZeros(t, fs, "HARDSTATE", 3*pageSize)
			overwrite(t, fs, 0, head)
		}
		h, g := openHard(t, fs)
		require.True(t, g.Missing())
		require.NoError(t, g.setTerm(3))
		require.NoError(t, g.setTerm(4))
		require.NoError(t, h.Close())

		overwrite(t, fs, pageSize, zero)
		h, g = openHard(t, fs)
		require.Equal(t, uint64(3), g.Record().Term, "the other copy")
		_, err := h.Group(8)
		require.ErrorIs(t, err, logstore.ErrCorrupt, "a slot that was never used cannot be told from a lost one")
		require.NoError(t, h.Close())

		overwrite(t, fs, 2*pageSize, zero)
		h, err = Open("HARDSTATE", "inc-1", fs, quiet)
		require.NoError(t, err)
		_, err = h.Group(7)
		require.ErrorIs(t, err, logstore.ErrCorrupt)
		require.ErrorIs(t, err, ErrUnrecorded)
		other, err := h.Group(recordsPerPage) // in another page
		require.NoError(t, err)
		require.True(t, other.Missing())
		require.NoError(t, h.Close())
	}
}

// overwrite writes to the hard-state file.
func overwrite(t *testing.T, fs vfs.FS, at int64, data []byte) {
	t.Helper()
	f, err := fs.OpenReadWrite("HARDSTATE", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt(data, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func appendZeros(t *testing.T, fs vfs.FS, path string, size int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, size), info.Size())
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func truncateFile(t *testing.T, fs vfs.FS, path string, size int64) {
	t.Helper()
	f, err := fs.Open(path)
	require.NoError(t, err)
	data := make([]byte, size)
	_, err = f.ReadAt(data, 0)
	require.True(t, err == nil || errors.Is(err, io.EOF))
	require.NoError(t, f.Close())
	f, err = fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestAReplicaWithADamagedRecordIsRetired damages both copies: the number of the replica is
// unknown, so the next one must be higher than any that others may know.
func TestAReplicaWithADamagedRecordIsRetired(t *testing.T) {
	fs := vfs.NewMem()
	h, g := openHard(t, fs)
	require.NoError(t, g.setTerm(3))
	require.NoError(t, g.setTerm(4))
	require.NoError(t, h.Close())
	for seq := range uint64(2) {
		flip(t, fs, offsetOf(7, seq))
	}
	h, err := Open("HARDSTATE", "inc-1", fs, quiet)
	require.NoError(t, err)
	_, err = h.Group(7)
	require.ErrorIs(t, err, logstore.ErrCorrupt)
	require.NoError(t, h.RetireUnknown(7, 2))
	require.NoError(t, h.Close())
	h, g = openHard(t, fs)
	require.Equal(t, Record{Replica: 2 + skippedNumbers, Removing: true}, g.Record())
	require.NoError(t, h.Close())
}

// TestStorageThatLostPromisesIsQuarantined compares storages with what was on record.
func TestStorageThatLostPromisesIsQuarantined(t *testing.T) {
	vote := func(s logstore.Storage, term uint64, candidate string) {
		require.NoError(t, s.SetUint64(keyCurrentTerm, term))
		require.NoError(t, s.SetUint64(keyVoteTerm, term))
		require.NoError(t, s.Set(keyVote, []byte(candidate)))
	}
	for _, c := range []struct {
		name   string
		lose   func(t *testing.T, s logstore.Storage)
		refuse bool
	}{
		{"nothing", func(*testing.T, logstore.Storage) {}, false},
		{"more is there", func(t *testing.T, s logstore.Storage) {
			require.NoError(t, s.StoreLogs(logstoretest.Logs(21, 25)))
			vote(s, 9, "b:1")
		}, false},
		{"the beginning was cut", func(t *testing.T, s logstore.Storage) { require.NoError(t, s.DeleteRange(1, 5)) }, false},
		{"the last entry", func(t *testing.T, s logstore.Storage) { require.NoError(t, s.DeleteRange(20, 20)) }, true},
		{"all entries", func(t *testing.T, s logstore.Storage) { require.NoError(t, s.DeleteRange(1, 20)) }, true},
		{"the last entry is another", func(t *testing.T, s logstore.Storage) {
			require.NoError(t, s.DeleteRange(20, 20))
			other := logstoretest.Logs(20, 20)
			other[0].Term = 2
			require.NoError(t, s.StoreLogs(other))
		}, true},
		{"the term", func(t *testing.T, s logstore.Storage) { require.NoError(t, s.SetUint64(keyCurrentTerm, 2)) }, true},
		{"the vote", func(t *testing.T, s logstore.Storage) { require.NoError(t, s.SetUint64(keyVoteTerm, 2)) }, true},
		{"the candidate", func(t *testing.T, s logstore.Storage) { require.NoError(t, s.Set(keyVote, []byte("b:1"))) }, true},
		{"the snapshot record", func(t *testing.T, s logstore.Storage) { require.NoError(t, CurrentSnapshot.Drop(s)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, g := openHard(t, vfs.NewMem())
			defer func() { require.NoError(t, h.Close()) }()
			s := checkedStorage(t, 0, 0)
			w := WrapStorage(s, g)
			require.NoError(t, w.StoreLogs(logstoretest.Logs(1, 20)))
			vote(w, 3, "a:1")
			require.NoError(t, CurrentSnapshot.Save(w, record(5, 3, 5)))
			require.Equal(t, Record{Term: 3, VoteTerm: 3, Last: logstore.Position{Index: 20, Term: 3}, Snapshot: 5, candidate: candidateHash([]byte("a:1"))}, g.Record())
			c.lose(t, s)
			_, _, err := Reconcile(s, g, logstore.Position{Index: 5, Term: 3})
			if c.refuse {
				require.ErrorIs(t, err, ErrQuarantined)
				return
			}
			require.NoError(t, err)
			last, err := s.LastIndex()
			require.NoError(t, err)
			require.Equal(t, last, g.Record().Last.Index, "the record takes over what it lacked")
		})
	}
}

// TestAnInterruptedVoteIsNotForAnEarlierCandidate interrupts a vote between its two writes, by
// a failure and by the end of the process. The candidate of the previous vote must not get the
// vote of the new term: it would be elected without comparing the logs.
func TestAnInterruptedVoteIsNotForAnEarlierCandidate(t *testing.T) {
	const earlier, candidate = "a:1", "b:1"
	for name, open := range logstoretest.Kinds {
		t.Run(name, func(t *testing.T) {
			h, g := openHard(t, vfs.NewMem())
			defer func() { require.NoError(t, h.Close()) }()
			s, closeIt := open(t, t.TempDir())
			defer closeIt()
			w := WrapStorage(s, g)
			vote := func(term uint64, candidate string) {
				require.NoError(t, w.SetUint64(keyCurrentTerm, term))
				require.NoError(t, w.SetUint64(keyVoteTerm, term))
				require.NoError(t, w.Set(keyVote, []byte(candidate)))
			}
			requireVote := func(want string) {
				t.Helper()
				got, err := w.Get(keyVote)
				require.NoError(t, err)
				require.NotNil(t, got, "Raft would take it for no vote")
				require.Equal(t, want, string(got))
			}
			vote(3, earlier)
			requireVote(earlier)
			require.NoError(t, w.SetUint64(keyCurrentTerm, 5))
			require.NoError(t, w.SetUint64(keyVoteTerm, 5))
			requireVote("")
			for range 2 { // starts
				_, _, err := Reconcile(s, g, logstore.Position{})
				require.NoError(t, err)
				requireVote("")
			}
			vote(6, candidate)
			requireVote(candidate)
		})
	}
}

// Candidates and voters store a term and a vote one after the other, and each sync delays the election: two of the database
// and one of the record. Both survive a power failure.
func TestAVoteTakesThreeSyncs(t *testing.T) {
	synctest.Test(t, aVoteTakesThreeSyncs) // the file is not synced in the background meanwhile
}

func aVoteTakesThreeSyncs(t *testing.T) {
	fs := vfs.NewCrashableMem()
	var syncs atomic.Int32
	counting := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo {
			syncs.Add(1)
		}
		return nil
	}))
	h, g := openHard(t, counting)
	db, err := logstore.Open("log", logstore.Options{FS: counting, Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	w := WrapStorage(s, g)
	require.NoError(t, w.StoreLogs(logstoretest.Logs(1, 3)))
	require.NoError(t, h.Sync())
	syncs.Store(0)
	require.NoError(t, w.SetUint64(keyCurrentTerm, 4))
	require.NoError(t, w.SetUint64(keyVoteTerm, 4))
	require.NoError(t, w.Set(keyVote, []byte("a:1")))
	require.Equal(t, int32(3), syncs.Load())
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, h.Close())
	require.NoError(t, db.Close())

	h, g = openHard(t, crashed)
	require.Equal(t, Record{Term: 4, VoteTerm: 4, Last: logstore.Position{Index: 3, Term: 3}, candidate: candidateHash([]byte("a:1"))}, g.Record())
	db, err = logstore.Open("log", logstore.Options{FS: crashed, Logger: quiet})
	require.NoError(t, err)
	s, err = db.Storage(7)
	require.NoError(t, err)
	_, _, err = Reconcile(s, g, logstore.Position{})
	require.NoError(t, err)
	for key, want := range map[string]uint64{string(keyCurrentTerm): 4, string(keyVoteTerm): 4} {
		got, err := s.GetUint64([]byte(key))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	candidate, err := s.Get(keyVote)
	require.NoError(t, err)
	require.Equal(t, "a:1", string(candidate))
	require.NoError(t, h.Close())
	require.NoError(t, db.Close())
}

// TestConflictingSuffixIsRemovedFromTheRecordFirst cuts the log as a new leader makes a follower
// do, with a power failure right before and after the log is cut.
func TestConflictingSuffixIsRemovedFromTheRecordFirst(t *testing.T) {
	fs := vfs.NewCrashableMem()
	h, g := openHard(t, fs)
	db, err := logstore.Open("log", logstore.Options{FS: fs, Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	var crashed []*vfs.MemFS
	w := WrapStorage(&cutting{Storage: s, cut: func() { crashed = append(crashed, fs.CrashClone(vfs.CrashCloneCfg{})) }}, g)
	require.NoError(t, w.StoreLogs(logstoretest.Logs(1, 20)))
	require.NoError(t, h.Sync())
	require.NoError(t, w.DeleteRange(11, 20))
	other := logstoretest.Logs(11, 12)
	for _, l := range other {
		l.Term = 8
	}
	require.NoError(t, w.StoreLogs(other))
	crashed = append(crashed, fs.CrashClone(vfs.CrashCloneCfg{}))
	require.NoError(t, h.Close())
	require.NoError(t, db.Close())

	require.Len(t, crashed, 3)
	for i, fs := range crashed {
		h, g := openHard(t, fs)
		db, err := logstore.Open("log", logstore.Options{FS: fs, Logger: quiet})
		require.NoError(t, err)
		s, err := db.Storage(7)
		require.NoError(t, err)
		_, _, err = Reconcile(s, g, logstore.Position{})
		require.NoError(t, err, "crash %d", i)
		require.NoError(t, h.Close())
		require.NoError(t, db.Close())
	}
}

// cutting reports when the log is about to be truncated, and when it was.
type cutting struct {
	logstore.Storage
	cut func()
}

func (c *cutting) DeleteRange(lo, hi uint64) error {
	c.cut()
	defer c.cut()
	return c.Storage.DeleteRange(lo, hi)
}

// TestDamagedWriteAheadLogIsNoticed flips a bit and cuts bytes anywhere in the log
// database's write-ahead log, which a process that was killed has left. Either all that
// was synced is still there, or the database or the group refuses.
func TestDamagedWriteAheadLogIsNoticed(t *testing.T) {
	for _, entries := range []uint64{400, 2000} { // within a block of the log, and in several
		t.Run(fmt.Sprint(entries), func(t *testing.T) { damageEverywhere(t, entries) })
	}
}

func damageEverywhere(t *testing.T, entries uint64) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	h, g := openHard(t, fs)
	db, err := logstore.Open("log", logstore.Options{FS: fs, Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	w := WrapStorage(s, g)
	require.NoError(t, w.SetUint64(keyCurrentTerm, 3))
	for i := range entries {
		require.NoError(t, w.StoreLogs(logstoretest.Logs(i+1, i+1)))
	}
	require.NoError(t, w.SetUint64(keyCurrentTerm, 5))
	require.NoError(t, h.Sync())
	image := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, h.Close())
	require.NoError(t, db.Close())

	wal, size := logstoretest.WriteAheadLog(t, image, "log")
	noticed := 0
	for at := int64(0); at < size; at += size/97 + 1 {
		for _, cut := range []bool{false, true} {
			fs := image.CrashClone(vfs.CrashCloneCfg{})
			damageFile(t, fs, wal, at, cut)
			if !holdsAll(t, fs, entries) {
				noticed++
			}
		}
	}
	require.Positive(t, noticed)
	t.Logf("write-ahead log of %d bytes, damage noticed at %d places", size, noticed)
}

// holdsAll opens the database and the group. It fails the test if something is missing
// without an error.
func holdsAll(t *testing.T, fs vfs.FS, entries uint64) bool {
	t.Helper()
	h, g := openHard(t, fs)
	defer func() { require.NoError(t, h.Close()) }()
	db, err := logstore.Open("log", logstore.Options{FS: fs, Logger: quiet})
	if err != nil {
		require.ErrorIs(t, err, logstore.ErrCorrupt)
		return false
	}
	defer func() { require.NoError(t, db.Close()) }()
	s, err := db.Storage(7)
	require.NoError(t, err)
	if _, _, err := Reconcile(s, g, logstore.Position{}); err != nil {
		require.ErrorIs(t, err, ErrQuarantined)
		return false
	}
	last, err := s.LastIndex()
	require.NoError(t, err)
	require.Equal(t, entries, last)
	term, err := s.GetUint64(keyCurrentTerm)
	require.NoError(t, err)
	require.Equal(t, uint64(5), term)
	for i := range entries {
		require.NoError(t, s.GetLog(i+1, new(raft.Log)))
	}
	return true
}

// damageFile flips a bit of a file, or ends it there.
func damageFile(t *testing.T, fs vfs.FS, path string, at int64, cut bool) {
	t.Helper()
	f, err := fs.Open(path)
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	if cut {
		data = data[:at]
	} else {
		data[at] ^= 0x10
	}
	f, err = fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}
