// Package logstoretest opens, damages and delays log storages for tests.
package logstoretest

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

// Group is the group whose storages OpenPebble and openBolt open.
const Group = 7

// Kinds opens a storage of each kind in a directory; close closes it, after which it may be
// opened again.
var Kinds = map[string]func(t testing.TB, dir string) (s logstore.Storage, close func()){
	"pebble": OpenPebble,
	"bolt":   openBolt,
}

// OpenPebble opens the storage of a group in a log database.
func OpenPebble(t testing.TB, dir string) (logstore.Storage, func()) {
	t.Helper()
	db, err := logstore.Open(dir, logstore.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s, err := db.Storage(Group)
	require.NoError(t, err)
	return s, func() { require.NoError(t, db.Close()) }
}

// DamageTables flips a bit in the first block of each table of a closed Pebble database.
func DamageTables(t testing.TB, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, path := range tables {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[10] ^= 1
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}

// openBolt opens a bbolt file.
func openBolt(t testing.TB, dir string) (logstore.Storage, func()) {
	t.Helper()
	opts := logstore.BoltOptions{Logger: slog.New(slog.DiscardHandler), MmapBytes: 1 << 20}
	s, err := logstore.OpenBolt(filepath.Join(dir, "raft.db"), opts)
	require.NoError(t, err)
	return s, func() { require.NoError(t, s.Close()) }
}

// Logs returns commands of term 3 with the indexes from first to last.
func Logs(first, last uint64) (logs []*raft.Log) {
	for i := first; i <= last; i++ {
		logs = append(logs, &raft.Log{
			Index: i, Term: 3, Type: raft.LogCommand, Data: fmt.Appendf(nil, "data %d", i),
			AppendedAt: time.Unix(1700000000, int64(i)),
		})
	}
	return logs
}

// RequireBounds verifies the first and the last index of a log, 0 if it must be empty.
func RequireBounds(t testing.TB, s raft.LogStore, first, last uint64) {
	t.Helper()
	f, l, err := logstore.Bounds(s)
	require.NoError(t, err)
	require.Equal(t, first, f, "first index")
	require.Equal(t, last, l, "last index")
}

// WriteAheadLog finds the write-ahead log that the log database in dir is writing, and its size with the zeros at its end.
func WriteAheadLog(t testing.TB, fs vfs.FS, dir string) (path string, size int64) {
	t.Helper()
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		if fs.PathBase(name) > fs.PathBase(path) && len(name) > 4 && name[len(name)-4:] == ".log" {
			path = fs.PathJoin(dir, name)
			info, err := fs.Stat(path)
			require.NoError(t, err)
			size = info.Size()
		}
	}
	require.Positive(t, size)
	return path, size
}

// DamageEntry overwrites an entry in a closed log database.
func DamageEntry(t testing.TB, dir string, group uint32, index uint64) {
	t.Helper()
	overwrite(t, dir, 'l', group, binary.BigEndian.AppendUint64(nil, index))
}

// DamageValue overwrites a value in a closed log database.
func DamageValue(t testing.TB, dir string, group uint32, key []byte) {
	t.Helper()
	overwrite(t, dir, 's', group, key)
}

func overwrite(t testing.TB, dir string, kind byte, group uint32, name []byte) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: discard{}})
	require.NoError(t, err)
	key := append(binary.BigEndian.AppendUint32([]byte{kind}, group), name...)
	require.NoError(t, db.Set(key, []byte("damaged"), pebble.Sync))
	require.NoError(t, db.Close())
}

type discard struct{}

func (discard) Infof(string, ...any)           {}
func (discard) Errorf(string, ...any)          {}
func (discard) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// Held is a storage whose writes of entries can be held.
type Held struct {
	logstore.Storage
	next atomic.Pointer[Write]
}

// Write is a held write: Arrived is closed when it arrives, and it waits until Released is closed.
type Write struct{ Arrived, Released chan struct{} }

// Hold holds the next write.
func (h *Held) Hold() *Write {
	w := &Write{Arrived: make(chan struct{}), Released: make(chan struct{})}
	h.next.Store(w)
	return w
}

// StoreLogs implements logstore.Storage.
func (h *Held) StoreLogs(logs []*raft.Log) error {
	if w := h.next.Swap(nil); w != nil {
		close(w.Arrived)
		<-w.Released
	}
	return h.Storage.StoreLogs(logs)
}
