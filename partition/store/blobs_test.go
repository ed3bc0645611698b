package store

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// A damaged blob file is found when the database is opened, like a damaged sstable: what it
// contained is rebuilt before anything reads it.
func TestDamagedBlobFilesAreFoundAtTheStart(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"missing":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 100) },
		"footer":    damageEnd,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := openAt(t, dir)
			p := partition(t, db, 1)
			txn := p.Begin()
			txn.PutValue(machine.Object{Service: "S", Key: "k"}, []byte("large"), make([]byte, 64<<10))
			require.NoError(t, txn.Commit(1, 1))
			flush(t, db)
			require.NoError(t, db.Close())

			blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
			require.NoError(t, err)
			require.NotEmpty(t, blobs)
			require.NoError(t, damage(blobs[0]))
			_, err = Open(dir, quiet())
			require.ErrorIs(t, err, ErrDamaged)
		})
	}
}

func damageEnd(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[len(content)-20] ^= 1
	return os.WriteFile(path, content, 0o600)
}

// A caller that stops at a damaged value must not take it for an empty one.
func TestDamagedValueInABlobFileIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	txn := partition(t, db, 1).Begin()
	object := machine.Object{Service: "S", Key: "k"}
	txn.PutValue(object, []byte("large"), make([]byte, 64<<10))
	require.NoError(t, txn.Commit(1, 1))
	flush(t, db)
	require.NoError(t, db.Close())
	blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	require.NoError(t, err)
	content, err := os.ReadFile(blobs[0])
	require.NoError(t, err)
	content[10] ^= 1
	require.NoError(t, os.WriteFile(blobs[0], content, 0o600))

	db = openAt(t, dir)
	txn = partition(t, db, 1).Begin()
	for _, err := range txn.Values(object) {
		require.ErrorContains(t, err, "checksum mismatch")
		require.False(t, Failed(err))
		break
	}
	txn.Discard()
	require.NoError(t, db.Close())
}

// Reading a damaged block of an sstable returns an error and does not end the process.
func TestDamagedBlockOfAnSSTable(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	txn := partition(t, db, 1).Begin()
	object := machine.Object{Service: "S", Key: "k"}
	txn.PutValue(object, []byte("small"), []byte("value"))
	require.NoError(t, txn.Commit(1, 1))
	flush(t, db)
	require.NoError(t, db.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, tables, 1)
	content, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	content[10] ^= 1
	require.NoError(t, os.WriteFile(tables[0], content, 0o600))

	db = openAt(t, dir)
	_, err = db.Partition(1)
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, db.Close())
}

func TestBytesOfBlobFilesAreCounted(t *testing.T) {
	db := openAt(t, t.TempDir())
	txn := partition(t, db, 1).Begin()
	value := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value) // cannot be compressed
	txn.PutValue(machine.Object{Service: "S", Key: "k"}, []byte("large"), value)
	require.NoError(t, txn.Commit(1, 1))
	flush(t, db)
	require.Greater(t, db.stats().FlushedBytes, uint64(64<<10))
	require.NoError(t, db.Close())
}
