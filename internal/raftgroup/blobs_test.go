package raftgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestMissingBlobFileIsDamage(t *testing.T) {
	dir := t.TempDir()
	db, err := OpenLogDB(dir, LogDBOptions{Logger: testLogger(t)})
	require.NoError(t, err)
	s, err := db.Storage(7)
	require.NoError(t, err)
	require.NoError(t, s.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: make([]byte, 64<<10)}))
	require.NoError(t, db.db.Flush())
	require.NoError(t, db.Close())

	db, err = OpenLogDB(dir, LogDBOptions{Logger: testLogger(t)})
	require.NoError(t, err, "the blob file is intact")
	require.NoError(t, db.Close())
	blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	require.NotEmpty(t, blobs)
	require.NoError(t, os.Remove(blobs[0]))
	_, err = OpenLogDB(dir, LogDBOptions{Logger: testLogger(t)})
	require.ErrorIs(t, err, ErrCorrupt)
}
