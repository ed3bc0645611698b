package logstore

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// largeLogs are entries around the sizes at which they are cut.
func largeLogs(from uint64) (out []*raft.Log) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{10, largeEntry - 100, largeEntry, largeEntry + chunkSize, fileEntry + 1, 20} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		log := &raft.Log{Index: from, Term: 3, Type: raft.LogCommand, Data: data}
		if size%2 == 1 {
			log.Extensions = bytes.Repeat([]byte{1}, chunkSize+7)
		}
		out = append(out, log)
		from++
	}
	return out
}

func requireLogs(t *testing.T, s Storage, logs []*raft.Log) {
	t.Helper()
	for _, want := range logs {
		var got raft.Log
		require.NoError(t, s.GetLog(want.Index, &got))
		require.True(t, bytes.Equal(want.Data, got.Data), "data of entry %d", want.Index)
		require.True(t, bytes.Equal(want.Extensions, got.Extensions), "extensions of entry %d", want.Index)
		require.Equal(t, want.Term, got.Term)
		require.Equal(t, want.Type, got.Type)
	}
}

func TestLargeEntriesAreStoredLikeOthers(t *testing.T) {
	open, dir := openStorage, t.TempDir()
	s, closeIt := open(t, dir)
	first := largeLogs(1)
	require.NoError(t, s.StoreLogs(first))
	requireLogs(t, s, first)
	requireBounds(t, s, 1, 6)

	require.NoError(t, s.DeleteRange(1, 2)) // compaction
	require.NoError(t, s.DeleteRange(4, 6)) // conflict
	requireBounds(t, s, 3, 3)
	second := largeLogs(4)
	for _, log := range second {
		require.NoError(t, s.StoreLog(log))
	}
	closeIt()
	s, closeIt = open(t, dir)
	defer closeIt()
	requireBounds(t, s, 3, 9)
	requireLogs(t, s, append(first[2:3:3], second...))
	require.NoError(t, s.DeleteRange(3, 9))
	requireBounds(t, s, 0, 0)
	from, to := groupBounds(keyKindLog, 7)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	require.NoError(t, err)
	require.False(t, it.First(), "chunks go with their entry")
	require.NoError(t, it.Close())
}

// TestChunksWithoutTheirRowAreNoEntry has a log end as a crash leaves it that came
// between the chunks and the row.
func TestChunksWithoutTheirRowAreNoEntry(t *testing.T) {
	open, dir := openStorage, t.TempDir()
	logs := largeLogs(1)
	for _, kept := range [][]*raft.Log{nil, logs[:1], logs[:3]} {
		s, closeIt := open(t, dir)
		require.NoError(t, s.StoreLogs(kept))
		require.NoError(t, s.storeFiles(logs[3:5]))
		b := s.db.NewBatch()
		for _, log := range logs[3:5] {
			require.NoError(t, s.put(b, log))
		}
		require.NoError(t, b.Close()) // not committed
		closeIt()
		s, closeIt = open(t, dir)
		requireLogs(t, s, kept)
		last := uint64(len(kept))
		requireBounds(t, s, min(last, 1), last)
		from, to := groupBounds(keyKindLog, 7)
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		require.NoError(t, err)
		require.Equal(t, last > 0, it.Last())
		require.NoError(t, it.Close())
		require.NoError(t, s.StoreLogs(largeLogs(last+1)))
		requireLogs(t, s, largeLogs(last+1))
		requireBounds(t, s, 1, last+6)
		require.NoError(t, s.DeleteRange(1, last+6))
		closeIt()
	}
}

func TestDamageOfALargeEntryIsFound(t *testing.T) {
	s, closeIt := openStorage(t, t.TempDir())
	defer closeIt()
	db, log := s.db, largeLogs(1)[4]
	chunk := func(number byte) []byte { return append(logKey(7, log.Index), 0, 0, 0, number) }
	flip := func(key []byte) {
		value, closer, err := db.Get(key)
		require.NoError(t, err)
		value = bytes.Clone(value)
		require.NoError(t, closer.Close())
		value[len(value)/2] ^= 4
		require.NoError(t, db.Set(key, value, pebble.NoSync))
	}
	for name, damage := range map[string]func(){
		"the row":         func() { flip(logKey(7, log.Index)) },
		"a chunk":         func() { flip(chunk(3)) },
		"a chunk is gone": func() { require.NoError(t, db.Delete(chunk(1), pebble.NoSync)) },
		"the last is gone": func() {
			require.NoError(t, db.Delete(chunk(byte((len(log.Data)+len(log.Extensions))/chunkSize)), pebble.NoSync))
		},
		"one in its middle": func() { require.NoError(t, db.Set(append(chunk(2), 0), []byte("more"), pebble.NoSync)) },
		"an empty row":      func() { require.NoError(t, db.Set(logKey(7, log.Index), []byte{entryInChunks}, pebble.NoSync)) },
	} {
		require.NoError(t, s.StoreLog(log))
		requireLogs(t, s, []*raft.Log{log})
		damage()
		require.ErrorIs(t, s.GetLog(log.Index, new(raft.Log)), ErrCorrupt, name)
		require.NoError(t, s.DeleteRange(log.Index, log.Index))
	}
}
