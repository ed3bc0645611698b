package store

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	if runCrashChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	testWait = 20 * time.Second
	testTick = time.Millisecond
)

func quiet() Options {
	return Options{Logger: slog.New(slog.DiscardHandler), LargeRowBytes: testLargeRow, LargeSetBytes: testLargeSet, CollectedRows: testCollected}
}

// testLargeRow is the size from which rows are cut in databases of tests, testLargeSet the
// limit for the memory of their keys, testCollected the number of rows collected between commits.
var testLargeRow, testLargeSet, testCollected int

// collect sets testCollected for the length of a test.
func collect(t interface{ Cleanup(func()) }, rows int) {
	before := testCollected
	testCollected = rows
	t.Cleanup(func() { testCollected = before })
}

// cutAt sets testLargeRow for the length of a test.
func cutAt(t interface{ Cleanup(func()) }, size int) {
	before := testLargeRow
	testLargeRow = size
	t.Cleanup(func() { testLargeRow = before })
}

// holdLarge sets testLargeSet for the length of a test.
func holdLarge(t interface{ Cleanup(func()) }, size int) {
	before := testLargeSet
	testLargeSet = size
	t.Cleanup(func() { testLargeSet = before })
}

func openAt(t require.TestingT, dir string) *DB {
	db, err := Open(dir, quiet())
	require.NoError(t, err)
	return db
}

// open opens a database for the length of a test.
func open(t *testing.T) *DB {
	db := openAt(t, t.TempDir())
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func partition(t require.TestingT, db *DB, id uint32) *Partition {
	p, err := db.Partition(id)
	require.NoError(t, err)
	return p
}

// flush makes what was committed durable.
func flush(t require.TestingT, db *DB) {
	settle(t, db)
	require.NoError(t, db.pebble.Flush())
}

// settle writes the commits of all partitions without an open transaction.
func settle(t require.TestingT, db *DB) {
	for _, p := range db.all() {
		if len(p.turn) == 0 {
			require.NoError(t, p.Settle())
		}
	}
}

// tempDir is a directory for one run of a property.
func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "store")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
