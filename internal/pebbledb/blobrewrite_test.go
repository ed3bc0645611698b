package pebbledb

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// openBlobs opens a database that rewrites blob files immediately. failed receives the
// failures of its background work.
func openBlobs(t *testing.T, disk vfs.FS, failed chan error) *pebble.DB {
	o := &pebble.Options{
		FS: disk, Logger: Logger{slog.New(slog.DiscardHandler)}, FormatMajorVersion: pebble.FormatNewest,
		EventListener: &pebble.EventListener{BackgroundError: func(err error) { failed <- err }},
	}
	SeparateValues(o)
	policy := o.Experimental.ValueSeparationPolicy
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		p := policy()
		p.RewriteMinimumAge = time.Nanosecond
		return p
	}
	db, err := pebble.Open("db", o)
	require.NoError(t, err)
	return db
}

// A blob file with garbage has a damaged block: it is not rewritten, the process continues, and
// only the values in the block cannot be read.
func TestRewriteOfDamagedBlobFile(t *testing.T) {
	disk := vfs.NewMem()
	failed := make(chan error, 1000)
	db := openBlobs(t, disk, failed)
	const values = 100
	for i := range byte(values) {
		require.NoError(t, db.Set([]byte{i}, make([]byte, 64<<10), nil))
	}
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())

	files, err := disk.List("db")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, blobSuffix) {
			file, err := disk.OpenReadWrite("db/"+name, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			_, err = file.WriteAt([]byte("damage"), 10)
			require.NoError(t, err)
			require.NoError(t, file.Close())
		}
	}
	db = openBlobs(t, disk, failed)
	require.NoError(t, db.DeleteRange([]byte{1}, []byte{values - 1}, nil))
	require.Eventually(t, func() bool { // the garbage is noticed by a compaction
		require.NoError(t, db.Set([]byte{values}, []byte("small"), nil))
		require.NoError(t, db.Flush())
		require.NoError(t, db.Compact(t.Context(), []byte{0}, []byte{values + 1}, false))
		return len(failed) > 0
	}, time.Minute, 100*time.Millisecond)
	require.True(t, pebble.IsCorruptionError(<-failed))
	value, closer, err := db.Get([]byte{0})
	require.NoError(t, err, "Pebble reports it only when the value is released")
	require.Empty(t, value)
	require.True(t, pebble.IsCorruptionError(closer.Close()))
	value, closer, err = db.Get([]byte{values - 1})
	require.NoError(t, err)
	require.Len(t, value, 64<<10)
	require.NoError(t, closer.Close())

	require.NoError(t, db.Flush())
	require.NoError(t, db.Compact(t.Context(), []byte{0}, []byte{values + 1}, false))
	require.NoError(t, db.Close())
	require.Empty(t, failed, "the rewrite was repeated")
}

// Releases without value separation have the same version of Pebble. They read and compact
// databases with blob files, and what they write is read again.
func TestReleasesWithoutValueSeparationReadBlobFiles(t *testing.T) {
	disk := vfs.NewMem()
	db := openBlobs(t, disk, make(chan error, 100))
	for i := range byte(50) {
		require.NoError(t, db.Set([]byte{i}, make([]byte, 64<<10), nil))
	}
	require.NoError(t, db.Flush())
	require.NoError(t, db.Close())
	old, err := pebble.Open("db", &pebble.Options{FS: disk, Logger: Logger{slog.New(slog.DiscardHandler)}, FormatMajorVersion: pebble.FormatTableFormatV6})
	require.NoError(t, err)
	for i := range byte(25) {
		require.NoError(t, old.Set([]byte{i * 2}, []byte("new"), nil))
	}
	require.NoError(t, old.Compact(t.Context(), []byte{0}, []byte{60}, false))
	for i := range byte(50) {
		v, c, err := old.Get([]byte{i})
		require.NoError(t, err)
		require.Equal(t, i%2 == 1, len(v) == 64<<10)
		require.NoError(t, c.Close())
	}
	require.NoError(t, old.Close())
	db = openBlobs(t, disk, make(chan error, 100))
	require.NoError(t, CheckFiles(db, disk, "db"))
	require.NoError(t, db.Close())
}
