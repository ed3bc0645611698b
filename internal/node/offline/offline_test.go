package offline

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster/datadir"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/logstore"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

const testPartition = 3

var (
	testGroup = partition.GroupID(testPartition)
	garbage   = []byte{0x08, 0x01, 0xff, 0xff}
	invoked   = ids.NewInvocation(7, [16]byte{1, 2, 3})
)

// stopped makes the data directory of a node with one partition, whose log ends with
// an entry that no server can decode.
func stopped(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("1\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "IDENTITY"), []byte(`{"node_name": "n1"}`), 0o600))
	logs, err := logstore.Open(filepath.Join(dir, "log"), logstore.Options{})
	require.NoError(t, err)
	s, err := logs.Storage(testGroup)
	require.NoError(t, err)
	lead, err := codec.EncodeCommand(feature.Level1, &machine.Lead{Epoch: 4, Node: "n1"})
	require.NoError(t, err)
	servers := []raft.Server{{ID: "n1/x", Address: "127.0.0.1:1"}}
	require.NoError(t, s.StoreLogs([]*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: servers})},
		{Index: 2, Term: 1, Type: raft.LogCommand, Data: codec.Seal(feature.Level1, 4, 1700000000000, [][]byte{lead})},
		{Index: 3, Term: 2, Type: raft.LogCommand, Data: garbage},
		{Index: 4, Term: 2, Type: raft.LogCommand, Data: make([]byte, 1<<20)}, // in pieces
		{Index: 5, Term: 2, Type: raft.LogNoop},
	}))
	require.NoError(t, s.SetUint64([]byte("CurrentTerm"), 2))
	require.NoError(t, s.SetUint64([]byte("LastVoteTerm"), 2))
	require.NoError(t, s.Set([]byte("LastVoteCand"), []byte("n1/x")))
	require.NoError(t, logs.Quarantine(testGroup, (&raftgroup.EntryError{Index: 3, Term: 2, Size: 4, Err: codec.ErrMalformed}).Error()))
	require.NoError(t, logs.Close())

	db, err := store.Open(filepath.Join(dir, "state"), store.Options{LargeRowBytes: 1000})
	require.NoError(t, err)
	p, err := db.Partition(testPartition)
	require.NoError(t, err)
	txn := p.Begin()
	txn.Meta().Epoch = 4
	txn.PutInvocation(&machine.Invocation{ID: invoked, Target: machine.Target{Service: "Greeter", Handler: "greet"}, Status: machine.Invoked, Length: 1})
	txn.AppendEntry(invoked, 0, journal.Entry{Type: journal.Input, Payload: []byte("hello")})
	txn.PutValue(machine.Object{Service: "Counter", Key: "k"}, []byte("large"), make([]byte, 5000))
	require.NoError(t, txn.Commit(2, 1))
	wait, err := db.Flush()
	require.NoError(t, err)
	require.NoError(t, wait(t.Context()))
	require.NoError(t, db.Close())
	return dir
}

func openDir(t *testing.T, path string, readOnly bool) *Directory {
	d, err := Open(path, readOnly)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func entriesOf(t *testing.T, d *Directory, from, to uint64) (all []Entry) {
	next, err := d.Entries(testGroup, from, to, 100, func(e Entry) error {
		all = append(all, e)
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, next)
	return all
}

// contents are all files below a directory but the locks.
func contents(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	}))
	return files
}

func TestInspectShowsWhatADirectoryHolds(t *testing.T) {
	path := stopped(t)
	before := contents(t, path)
	d := openDir(t, path, true)
	s, err := d.Summary()
	require.NoError(t, err)
	require.Equal(t, "1", s.Format)
	require.Contains(t, s.Identity, "n1")
	require.Len(t, s.Groups, 1)
	g := s.Groups[0]
	require.Equal(t, testGroup, g.Group)
	require.EqualValues(t, testPartition, *g.Partition)
	require.Equal(t, []uint64{1, 5, 2, 2, 2, 1}, []uint64{g.First, g.Last, g.Term, g.VoteTerm, g.Applied, g.AppliedTerm})
	require.Equal(t, "n1/x", g.Vote)
	require.Contains(t, g.Quarantine, "entry 3 ")
	require.Empty(t, g.Errors)

	all := entriesOf(t, d, 0, 0)
	require.Len(t, all, 5)
	require.Equal(t, "n1/x", string(all[0].Servers[0].ID))
	require.JSONEq(t, `{"version":1,"leaderEpoch":"4","time":"1700000000000","commands":[{"lead":{"epoch":"4","node":"n1"}}]}`, string(all[1].Commands))
	require.Equal(t, hex.EncodeToString(garbage), all[2].Hex)
	require.NotEmpty(t, all[2].Error)
	require.Equal(t, 1<<20, all[3].Bytes)
	require.Len(t, all[3].Hex, 2*maxHex)
	require.Equal(t, "LogNoop", all[4].Type)
	require.Len(t, entriesOf(t, d, 2, 3), 2)

	var rows []Row
	require.NoError(t, d.Rows(t.Context(), testPartition, Selection{}, func(r Row) error {
		r.Value = append([]byte(nil), r.Value...)
		rows = append(rows, r)
		return nil
	}))
	tables := map[string]Row{}
	for _, r := range rows {
		tables[r.Table] = r
	}
	require.Len(t, rows, 4)
	require.Equal(t, invoked.String(), tables["live"].ID)
	require.Contains(t, string(tables["live"].Record), "Greeter")
	require.Zero(t, *tables["journal"].Index)
	require.Contains(t, string(tables["meta"].Record), `"epoch":"4"`)
	require.Len(t, tables["state"].Value, 5000)
	require.Error(t, d.Rows(t.Context(), 9, Selection{}, func(Row) error { return nil }))

	require.NoError(t, d.Close())
	require.Equal(t, before, contents(t, path), "nothing was written")
}

func TestSelectionsWithoutDataFail(t *testing.T) {
	d := openDir(t, stopped(t), false)
	entry := func(Entry) error { return nil }
	row := func(Row) error { return nil }
	next, err := d.Entries(testGroup, 0, 0, 2, entry)
	require.NoError(t, err)
	require.EqualValues(t, 3, next)
	_, err = d.Entries(99, 0, 0, 1, entry)
	require.ErrorContains(t, err, "no group 99")
	_, err = d.Entries(testGroup, 1000, 0, 1, entry)
	require.ErrorContains(t, err, "it has 1 to 5")
	require.ErrorContains(t, d.Rows(t.Context(), testPartition, Selection{Table: "nope"}, row), "journal, live")
	require.ErrorContains(t, d.Rows(t.Context(), testPartition, Selection{ID: "inv_1"}, row), "not the id of an invocation")
	_, err = d.DropEntry(99, 1, filepath.Join(t.TempDir(), "out"))
	require.ErrorContains(t, err, "no group 99")
	_, err = d.Release(99)
	require.ErrorContains(t, err, "no group 99")
	_, err = d.AssessLoss(99)
	require.ErrorContains(t, err, "no group 99")
}

func TestADirectoryInUseIsRefused(t *testing.T) {
	path := stopped(t)
	d := openDir(t, path, true)
	_, err := Open(path, false)
	require.ErrorContains(t, err, "used by another server")
	require.NoError(t, d.Close())
	locked, err := datadir.OpenStopped(path)
	require.NoError(t, err)
	require.NoError(t, locked.Close())
	_, err = Open(t.TempDir(), true)
	require.ErrorContains(t, err, "not the data directory")
}

func TestAnEntryIsDroppedAfterItWasExported(t *testing.T) {
	path, out := stopped(t), filepath.Join(t.TempDir(), "dropped.json")
	d := openDir(t, path, false)
	for index, reason := range map[uint64]string{2: "applied already", 5: "only commands", 6: "has no entry", 0: "has no entry"} {
		_, err := d.DropEntry(testGroup, index, out)
		require.ErrorContains(t, err, reason)
		require.NoFileExists(t, out)
	}
	_, err := d.DropEntry(MetadataGroup, 3, out)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(out, nil, 0o600))
	_, err = d.DropEntry(testGroup, 3, out)
	require.ErrorIs(t, err, os.ErrExist)
	require.NotEmpty(t, entriesOf(t, d, 3, 3)[0].Hex, "what is not exported stays")
	require.NoError(t, os.Remove(out))

	released, err := d.DropEntry(testGroup, 4, out) // another one
	require.NoError(t, err)
	require.False(t, released)
	require.NoError(t, os.Remove(out))
	released, err = d.DropEntry(testGroup, 3, out)
	require.NoError(t, err)
	require.True(t, released)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(text), hex.EncodeToString(garbage))
	require.NoError(t, d.Close())

	d = openDir(t, path, true)
	all := entriesOf(t, d, 0, 0)
	require.Len(t, all, 5)
	for _, i := range []int{2, 3} {
		require.Equal(t, Entry{Group: testGroup, Index: uint64(i + 1), Term: 2, Type: "LogNoop"}, all[i])
	}
	require.Empty(t, d.group(testGroup).Quarantine)
}

func TestAQuarantineIsReleased(t *testing.T) {
	d := openDir(t, stopped(t), false)
	reason, err := d.Release(testGroup)
	require.NoError(t, err)
	require.Contains(t, reason, "entry 3 ")
	_, err = d.Release(testGroup)
	require.ErrorContains(t, err, "not in quarantine")
}

func TestAnUnfinishedRecoveryComesBeforeRepairs(t *testing.T) {
	path := stopped(t)
	require.NoError(t, os.WriteFile(filepath.Join(path, "IDENTITY"), []byte(`{"node_name": "n1", "next_incarnation": "b"}`), 0o600))
	_, err := Open(path, false)
	require.ErrorContains(t, err, `run "platform-server recover" again`)
	openDir(t, path, true) // the lock is free, and it can be looked at
}

func TestInspectShowsThatTheMetadataAreDamaged(t *testing.T) {
	path := stopped(t)
	require.NoError(t, os.Mkdir(filepath.Join(path, "metadata"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "metadata", "log.db"), make([]byte, 20_000), 0o600))
	s, err := openDir(t, path, true).Summary()
	require.NoError(t, err)
	require.Len(t, s.Groups, 2)
	require.EqualValues(t, MetadataGroup, s.Groups[0].Group)
	require.Contains(t, s.Groups[0].Errors[0], "both meta pages are invalid")
}

// TestAnExportContinuesAfterDamage damages a block in the middle of a table file.
func TestAnExportContinuesAfterDamage(t *testing.T) {
	path := stopped(t)
	db, err := store.Open(filepath.Join(path, "state"), store.Options{})
	require.NoError(t, err)
	p, err := db.Partition(testPartition)
	require.NoError(t, err)
	txn := p.Begin()
	const count = 3000
	for i := range uint64(count) {
		id := ids.NewInvocation(i, [16]byte(binary.BigEndian.AppendUint64(make([]byte, 8), i*0x9e3779b97f4a7c15)))
		txn.PutInvocation(&machine.Invocation{ID: id, Target: machine.Target{Service: "Greeter", Handler: "greet", Key: id.String()}, Status: machine.Invoked})
	}
	require.NoError(t, txn.Commit(3, 1))
	wait, err := db.Flush()
	require.NoError(t, err)
	require.NoError(t, wait(t.Context()))
	require.NoError(t, db.Close())

	tables, err := filepath.Glob(filepath.Join(path, "state", "*.sst"))
	require.NoError(t, err)
	damaged := slices.MaxFunc(tables, func(a, b string) int { return cmp.Compare(size(t, a), size(t, b)) })
	text, err := os.ReadFile(damaged)
	require.NoError(t, err)
	copy(text[len(text)/2:], "damage")
	require.NoError(t, os.WriteFile(damaged, text, 0o600))

	d := openDir(t, path, true)
	var read []string
	var gaps []Row
	err = d.Rows(t.Context(), testPartition, Selection{Table: "live"}, func(r Row) error {
		if r.Error != "" {
			gaps = append(gaps, r)
		} else {
			read = append(read, r.ID)
		}
		return nil
	})
	require.ErrorContains(t, err, "rows are missing where a line has an error")
	require.ErrorContains(t, err, filepath.Base(damaged))
	require.Len(t, gaps, 1)
	require.Contains(t, gaps[0].Error, "rows after this key cannot be read")
	require.Less(t, len(read), count)
	require.Greater(t, len(read), count/2, "rows before and after the damage")
}

func size(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}
