package hardstate

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

// checkedStorage returns a storage with entries from first to last, of term 3.
func checkedStorage(t *testing.T, first, last uint64) logstore.Storage {
	s, closeIt := logstoretest.OpenPebble(t, t.TempDir())
	t.Cleanup(closeIt)
	if last > 0 {
		require.NoError(t, s.StoreLogs(logstoretest.Logs(first, last)))
	}
	return s
}

func record(index, term, state uint64) SnapshotRecord {
	return SnapshotRecord{
		Index: index, Term: term, State: logstore.Position{Index: state, Term: term}, ConfigIndex: 1,
		Config: raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}}},
	}
}

func TestStartCheck(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last uint64
		snapshot    SnapshotRecord
		applied     uint64
		appliedTerm uint64
		want        error
		log         [2]uint64 // bounds afterwards
	}{
		{name: "empty"},
		{name: "log only", first: 1, last: 9, applied: 5, appliedTerm: 3, log: [2]uint64{1, 9}},
		{name: "nothing applied", first: 1, last: 9, log: [2]uint64{1, 9}},
		{name: "snapshot and log", first: 3, last: 9, snapshot: record(5, 3, 5), applied: 9, appliedTerm: 3, log: [2]uint64{3, 9}},
		{name: "snapshot ends with entries that are no commands", first: 3, last: 9, snapshot: record(7, 3, 5), applied: 5, appliedTerm: 3, log: [2]uint64{3, 9}},
		{name: "snapshot only", snapshot: record(5, 3, 5), applied: 5, appliedTerm: 3},
		{name: "state behind snapshot", first: 3, last: 9, snapshot: record(5, 3, 5), applied: 4, appliedTerm: 3, want: ErrStateBehindSnapshot},
		{name: "state beyond log", first: 1, last: 9, applied: 10, appliedTerm: 3, want: ErrQuarantined},
		{name: "state beyond snapshot without log", snapshot: record(5, 3, 5), applied: 6, appliedTerm: 3, want: ErrQuarantined},
		{name: "state made by another log", first: 1, last: 9, applied: 5, appliedTerm: 2, want: ErrQuarantined},
		{name: "hole after snapshot", first: 7, last: 9, snapshot: record(5, 3, 5), applied: 5, appliedTerm: 3, want: ErrQuarantined},
		{name: "log without beginning", first: 2, last: 9, applied: 5, appliedTerm: 3, want: ErrQuarantined},
		{name: "log ends before snapshot", first: 1, last: 4, snapshot: record(5, 3, 5), applied: 5, appliedTerm: 3},
		{name: "log of another history", first: 1, last: 9, snapshot: record(5, 4, 5), applied: 5, appliedTerm: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := checkedStorage(t, c.first, c.last)
			if c.snapshot.Index > 0 {
				require.NoError(t, CurrentSnapshot.Save(s, c.snapshot))
			}
			rec, have, err := Reconcile(s, nil, logstore.Position{Index: c.applied, Term: c.appliedTerm})
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.snapshot.Index > 0, have)
			require.Equal(t, c.snapshot, rec)
			if c.want == nil {
				logstoretest.RequireBounds(t, s, c.log[0], c.log[1])
			}
		})
	}
}

func TestInterruptedInstallationIsSettled(t *testing.T) {
	for _, c := range []struct {
		name    string
		applied uint64
		want    SnapshotRecord
		first   uint64
	}{
		{"before the switch", 4, record(3, 3, 3), 2},
		{"after the switch", 20, record(20, 5, 20), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := checkedStorage(t, 2, 9)
			require.NoError(t, CurrentSnapshot.Save(s, record(3, 3, 3)))
			require.NoError(t, PendingSnapshot.Save(s, record(20, 5, 20)))
			rec, have, err := Reconcile(s, nil, logstore.Position{Index: c.applied, Term: 3})
			require.NoError(t, err)
			require.True(t, have)
			require.Equal(t, c.want, rec)
			first, _, err := logstore.Bounds(s)
			require.NoError(t, err)
			require.Equal(t, c.first, first)
			_, pending, err := PendingSnapshot.Load(s)
			require.NoError(t, err)
			require.False(t, pending)
			again, _, err := CurrentSnapshot.Load(s)
			require.NoError(t, err)
			require.Equal(t, c.want, again)
		})
	}
}

func TestDamagedSnapshotRecordsAreQuarantined(t *testing.T) {
	for _, key := range []SnapshotKey{CurrentSnapshot, PendingSnapshot} {
		s := checkedStorage(t, 1, 9)
		require.NoError(t, s.Set([]byte(key), []byte("damaged")))
		_, _, err := Reconcile(s, nil, logstore.Position{Index: 5, Term: 3})
		require.ErrorIs(t, err, ErrQuarantined, string(key))
		logstoretest.RequireBounds(t, s, 1, 9)
	}
}

func TestDamagedMarksAreQuarantined(t *testing.T) {
	for _, key := range [][]byte{logstore.KeyQuarantine, logstore.KeyLeaving, keyRecorded} {
		dir := t.TempDir()
		s, closeIt := logstoretest.OpenPebble(t, dir)
		require.NoError(t, s.StoreLogs(logstoretest.Logs(1, 9)))
		require.NoError(t, s.Set(key, []byte("marked")))
		closeIt()
		logstoretest.DamageValue(t, dir, logstoretest.Group, key)
		s, closeIt = logstoretest.OpenPebble(t, dir)
		_, err := s.Get(key)
		require.ErrorIs(t, err, logstore.ErrCorrupt, string(key))
		h, g := openHard(t, vfs.NewMem())
		_, _, err = Reconcile(s, g, logstore.Position{Index: 5, Term: 3})
		require.ErrorIs(t, err, ErrQuarantined, string(key))
		require.NoError(t, h.Close())
		closeIt()
	}
}
