package hardstate

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

// randomLogs returns entries that differ between groups.
func randomLogs(group uint32, last uint64) (logs []*raft.Log) {
	rnd := rand.NewChaCha8([32]byte{byte(group)})
	for i := range last {
		data := make([]byte, 150)
		_, _ = rnd.Read(data) // never fails
		logs = append(logs, &raft.Log{Index: i + 1, Term: 3, Type: raft.LogCommand, Data: data})
	}
	return logs
}

// opener returns a function that opens the log database in dir, and returns a function that closes it.
func opener(t *testing.T, dir string) func() (*logstore.DB, func()) {
	return func() (*logstore.DB, func()) {
		db, err := logstore.Open(dir, logstore.Options{Logger: quiet})
		require.NoError(t, err)
		return db, func() { require.NoError(t, db.Close()) }
	}
}

// damageEntry changes a byte of an entry in the tables of a closed database.
func damageEntry(t *testing.T, dir string, log *raft.Log) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	found := false
	for _, path := range tables {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if at := bytes.Index(data, log.Data); at >= 0 {
			data[at] ^= 1
			require.NoError(t, os.WriteFile(path, data, 0o600))
			found = true
		}
	}
	require.True(t, found)
}

// Losses of several groups in one damaged block are accepted one after the other. Of each, everything up to the damage, or after
// it if the tables have the lost entries, is kept.
func TestLossesInABlockOfSeveralGroupsAreAccepted(t *testing.T) {
	const last, recorded = 200, 198 // the power failed before the last ones were recorded
	groups := []uint32{6, 7, 8, 9}
	for name, c := range map[string]struct {
		group           uint32
		damaged, tables uint64
	}{
		"first, in the tables":    {7, 1, 100},
		"last, after the tables":  {7, last, 100},
		"last, in the tables":     {7, last, last},
		"first of all, no others": {6, 1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open := opener(t, dir)
			hard, _ := openHard(t, vfs.NewMem())
			defer func() { require.NoError(t, hard.Close()) }()
			db, closeDB := open()
			for _, group := range groups {
				s, err := db.Storage(group)
				require.NoError(t, err)
				require.NoError(t, s.SetUint64(keyCurrentTerm, 3))
				require.NoError(t, s.StoreLogs(randomLogs(group, last)))
				g, err := hard.Group(group)
				require.NoError(t, err)
				require.NoError(t, g.setTerm(3))
				require.NoError(t, g.stored(logstore.Position{Index: recorded, Term: 3}))
			}
			closeDB()
			_, closeDB = open() // writes the entries to a table
			closeDB()
			damageEntry(t, dir, randomLogs(c.group, last)[c.damaged-1])

			accepted := 0
			for _, group := range append([]uint32{c.group}, groups...) {
				tables := uint64(100)
				if group == c.group {
					tables = c.tables
				}
				db, closeDB := open()
				s, err := db.Storage(group)
				g, groupErr := hard.Group(group)
				require.NoError(t, groupErr)
				at, members := logstore.Position{Index: tables, Term: 3}, []raft.Server{{ID: "self"}}
				var l Loss
				if err == nil {
					l, err = AssessLoss(s, g.Record(), at, members)
				} else {
					require.ErrorIs(t, err, logstore.ErrCorrupt)
					l, err = AssessDamage(db, group, g.Record(), at, members)
				}
				if !errors.Is(err, ErrNoLoss) {
					require.NoError(t, err)
					require.NoError(t, l.Accept(db, group, hard))
					accepted++
				}
				closeDB()

				db, closeDB = open()
				s, err = db.Storage(group)
				require.NoError(t, err)
				end, err := s.LastIndex()
				require.NoError(t, err)
				require.GreaterOrEqual(t, max(end, tables), uint64(last-25), "group %d", group)
				for i, want := range randomLogs(group, end) {
					var log raft.Log
					if index := uint64(i + 1); index > tables {
						require.NoError(t, s.GetLog(index, &log))
						require.Equal(t, want.Data, log.Data)
					}
				}
				closeDB()
			}
			require.LessOrEqual(t, accepted, 2)
		})
	}
}
