package metadata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/boltfile"
	"platform/internal/raftgroup"
)

// The test flips bits of the state file, tears pages and truncates it. Either the file is
// rejected, or it contains all records of the last or the previous transaction, which the
// log continues.
func TestDamagedStateFileIsDetected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := openDatabase(path)
	require.NoError(t, err)
	records := func(at uint64) (all []string) {
		for i := range at {
			all = append(all, fmt.Sprintf("key-%03d", i))
		}
		return all
	}
	const last = 120
	for i := range uint64(last) {
		value := sealed(make([]byte, 200))
		require.NoError(t, db.write(raftgroup.Position{Index: i + 1, Term: 1}, []write{{table: tableDeployments, key: records(i + 1)[i], value: value}}))
	}
	require.NoError(t, db.close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	whole = whole[:min(len(whole), 60*4096)] // the used part
	rejected, held := 0, 0
	try := func(file []byte, size int, what string) {
		require.NoError(t, os.WriteFile(path, file, 0o600))
		require.NoError(t, os.Truncate(path, int64(size)))
		keys, at, err := keysOf(path)
		if err != nil {
			require.True(t, errors.Is(err, boltfile.ErrDamaged) || errors.Is(err, ErrCorrupt), "%s: %v", what, err)
			rejected++
			return
		}
		if size == 0 {
			require.Zero(t, at, "the log or its snapshot shows that entries are missing")
			return
		}
		require.Contains(t, []uint64{last - 1, last}, at, what)
		require.Equal(t, records(at), keys, what)
		held++
	}
	full := 1 << 20
	for page := 0; page < len(whole); page += 4096 {
		for _, at := range []int{0, 8, 10, 17, 20, 24, 28, 33, 1000, 3000} {
			file := slices.Clone(whole)
			file[min(page+at, len(file)-1)] ^= 0x02
			try(file, full, fmt.Sprintf("bit %d of page %d", at, page/4096))
		}
		for _, from := range []int{0, 512} {
			file := slices.Clone(whole)
			clear(file[page+from : min(page+4096, len(file))])
			try(file, full, fmt.Sprintf("page %d from %d on", page/4096, from))
		}
		try(whole, page, fmt.Sprintf("cut at page %d", page/4096))
	}
	require.Positive(t, rejected)
	require.Positive(t, held)
	t.Logf("rejected %d times, harmless %d times", rejected, held)
}

// keysOf opens a state file and reads a table.
func keysOf(path string) (keys []string, at uint64, err error) {
	db, err := openDatabase(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	tx, err := db.bolt.Begin(false)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	applied, err := readApplied(tx)
	if err != nil {
		return nil, 0, err
	}
	return keys, applied.Index, tx.Bucket([]byte(tableDeployments)).ForEach(func(key, stored []byte) error {
		if _, err := unsealed(stored); err != nil {
			return err
		}
		keys = append(keys, string(key))
		return nil
	})
}
