package logstore

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

func TestDamagedBoltEntryIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s, err := OpenBolt(path, BoltOptions{Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, s.StoreLogs(testLogs(1, 3)))
	require.NoError(t, s.Set([]byte("CurrentTerm"), []byte("12345678")))
	require.NoError(t, s.Close())

	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for _, bucket := range []string{"logs", "conf"} {
			b := tx.Bucket([]byte(bucket))
			k, v := b.Cursor().First()
			bad := append([]byte(nil), v...)
			bad[len(bad)/2] ^= 1
			if err := b.Put(k, bad); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())

	s, err = OpenBolt(path, BoltOptions{Logger: quiet})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Error(t, s.GetLog(1, new(raft.Log)))
	require.NoError(t, s.GetLog(2, new(raft.Log)))
	_, err = s.Get([]byte("CurrentTerm"))
	require.ErrorIs(t, err, ErrCorrupt)
}
