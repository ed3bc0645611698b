package pebbledb

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// noTables is a file system on which no table can be created, in the first thousand attempts.
type noTables struct {
	vfs.FS
	attempts *atomic.Int32
}

func (fs noTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if filepath.Ext(name) == ".sst" && fs.attempts.Add(1) <= 1000 {
		return nil, errors.New("planted failure of a table")
	}
	return fs.FS.Create(name, c)
}

func TestFailedFlushesAreRepeatedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := new(atomic.Int32)
		po := &pebble.Options{FS: noTables{vfs.NewMem(), attempts}, EventListener: new(pebble.EventListener), FormatMajorVersion: pebble.FormatNewest}
		new(WriteProgress).Watch(po)
		db, err := pebble.Open("db", po)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		require.NoError(t, db.Set([]byte("key"), []byte("value"), nil))
		flushed, err := db.AsyncFlush()
		require.NoError(t, err)

		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.InDelta(t, 100, attempts.Load(), 2)
		<-flushed
		require.EqualValues(t, 1001, attempts.Load())
	})
}
