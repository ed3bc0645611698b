package boltfile

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

var options = &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}

// write makes a file with trees of several levels, values that overflow, a bucket within
// a page and an empty one.
func write(t *testing.T, opts *bbolt.Options) (path string, content map[string]string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "db")
	require.NoError(t, Check(path), "missing")
	db, err := bbolt.Open(path, 0o600, opts)
	require.NoError(t, err)
	require.NoError(t, Check(path), "it is open")
	for round := range 3 {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			for name, count := range map[string]int{"empty": 0, "small": 3, "large": 300} {
				b, err := tx.CreateBucketIfNotExists([]byte(name))
				if err != nil {
					return err
				}
				for i := range count {
					value := make([]byte, 40)
					if i%100 == 0 {
						value = make([]byte, 10_000)
					}
					key := binary.BigEndian.AppendUint64(nil, uint64(i*(round+1)))
					if err := b.Put(key, value); err != nil {
						return err
					}
					if round == 2 && i%3 == 0 {
						if err := b.Delete(key); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}))
	}
	require.NoError(t, db.Close())
	content, err = read(path)
	require.NoError(t, err)
	return path, content
}

// read returns all keys with the lengths of their values.
func read(path string) (map[string]string, error) {
	db, err := bbolt.Open(path, 0o600, options)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			all[string(name)] = "bucket"
			return b.ForEach(func(k, v []byte) error {
				all[fmt.Sprintf("%s/%x", name, k)] = fmt.Sprint(len(v))
				return nil
			})
		})
	})
	if closed := db.Close(); err == nil {
		err = closed
	}
	return all, err
}

func TestWholeFilesPass(t *testing.T) {
	path, _ := write(t, options)
	require.NoError(t, Check(path))
	path, _ = write(t, &bbolt.Options{PageSize: 8192}) // with a freelist
	require.NoError(t, Check(path))
	require.NoError(t, os.Truncate(path, 0))
	require.NoError(t, Check(path))
}

// For damage at any place: either Check detects it, or bbolt opens the file and finds the
// same number of keys.
func TestDamageIsDetected(t *testing.T) {
	path, want := write(t, options)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	size := len(whole)
	noticed, harmless := 0, 0
	meta := true // falls back to the previous transaction
	try := func(what string, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		if err := Check(path); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			noticed++
			return
		}
		got, err := read(path)
		require.NoError(t, err, what)
		if !meta {
			require.Equal(t, want, got, what)
		}
		harmless++
	}
	for at := 2 * 4096; at < size; at += 2039 {
		meta = false
		data := append([]byte(nil), whole...)
		data[at] ^= 0x10
		try(fmt.Sprintf("bit %d", at), data)
	}
	for page := 0; page < size; page += 4096 {
		meta = page < 2*4096
		for at := page; at < page+40; at += 5 { // headers and first elements
			data := append([]byte(nil), whole...)
			data[at] ^= 0x01
			try(fmt.Sprintf("bit %d", at), data)
		}
		for _, torn := range []int{0, 512, 2048} {
			data := append([]byte(nil), whole...)
			clear(data[page+torn : page+4096])
			try(fmt.Sprintf("page %d from byte %d on", page/4096, torn), data)
		}
		if page > 0 {
			try(fmt.Sprintf("cut at page %d", page/4096), whole[:page])
			try(fmt.Sprintf("cut within page %d", page/4096), whole[:page+1000])
		}
	}
	require.Positive(t, noticed)
	t.Logf("%d bytes: damage noticed %d times, harmless %d times", size, noticed, harmless)
}
