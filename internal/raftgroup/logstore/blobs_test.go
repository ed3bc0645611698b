package logstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// entryInBlob stores an entry in a blob file, whose path it returns.
func entryInBlob(t *testing.T, dir string) string {
	db, err := Open(dir, Options{Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	require.NoError(t, s.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: make([]byte, 64<<10)}))
	require.NoError(t, db.db.Flush())
	require.NoError(t, db.Close())
	blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.NotEmpty(t, blobs)
	return blobs[0]
}

func TestMissingBlobFileIsDamage(t *testing.T) {
	dir := t.TempDir()
	path := entryInBlob(t, dir)
	db, err := Open(dir, Options{Logger: quiet})
	require.NoError(t, err, "the blob file is intact")
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(path))
	_, err = Open(dir, Options{Logger: quiet})
	require.ErrorIs(t, err, ErrCorrupt)
}

// Pebble reports a damaged value in a blob file only when it is released.
func TestDamagedEntryInABlobFileIsDamage(t *testing.T) {
	dir := t.TempDir()
	path := entryInBlob(t, dir)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content[100] ^= 1
	require.NoError(t, os.WriteFile(path, content, 0o600))

	db, err := Open(dir, Options{Logger: quiet})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	require.ErrorIs(t, s.GetLog(1, new(raft.Log)), ErrCorrupt)
	require.ErrorIs(t, s.GetLogHead(1, 10, new(raft.Log)), ErrCorrupt)
	require.NoError(t, db.Close())
}
