package store

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/partition/journal"
	"platform/partition/machine"
)

// requireChunks checks that a partition knows its large rows, and that there are no
// chunks of others.
func requireChunks(t require.TestingT, p *Partition) {
	settle(t, p.db)
	r, err := newReader(p.db.pebble)
	require.NoError(t, err)
	known, lost, err := r.large(p.space, math.MaxInt)
	require.NoError(t, err)
	require.NoError(t, r.close())
	require.Empty(t, lost)
	if p.large.dropped {
		require.Empty(t, p.large.rows)
		return
	}
	require.LessOrEqual(t, p.large.bytes, p.large.limit)
	require.Equal(t, known.bytes, p.large.bytes)
	require.Equal(t, len(known.rows), len(p.large.rows))
	for i := range known.rows {
		require.Equal(t, known.rows[i], p.large.rows[i])
	}
}

// chunkRows counts the rows of chunks of all partitions.
func chunkRows(t *testing.T, db *DB, p *Partition) (n int) {
	settle(t, db)
	lower := p.space.table(nil, tableChunks)
	it, err := db.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	require.NoError(t, it.Close())
	return n
}

var largeObject = machine.Object{Service: "S", Key: "a\x00b"}

func TestLargeRowsAreChunkedAndDeletedWithTheirRow(t *testing.T) {
	db, big := open(t), bytes.Repeat([]byte("0123456789"), 3<<20/10)
	p, id := partition(t, db, 1), testID(3)
	commit(t, p, 1, func(s machine.State) {
		s.PutInvocation(&machine.Invocation{ID: id, Status: machine.Completed, Length: 40, Result: &journal.Result{Value: big}})
		for i := range uint32(40) {
			s.AppendEntry(id, i, journal.Entry{Type: journal.Input, AppendedAt: 5, Payload: big[:defaultLargeRow/40*i]})
		}
		s.PutValue(largeObject, []byte("k\x00"), big)
		s.PutOutgoing(9, 1, &machine.Complete{Result: journal.Result{Value: big}})
		s.PutPromise(largeObject, "p", machine.Promise{Result: &journal.Result{Value: big}})
	})
	flush(t, db)
	require.Positive(t, chunkRows(t, db, p))
	requireChunks(t, p)
	v := p.View()
	inv, err := v.Invocation(id)
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, inv.Result.Value))
	entries, _, err := v.Journal(id, 40, math.MaxInt)
	require.NoError(t, err)
	for i, e := range entries {
		require.Len(t, e.Payload, defaultLargeRow/40*i)
	}
	values, complete, err := v.Values(largeObject, len(big)+2)
	require.NoError(t, err)
	require.True(t, complete)
	require.True(t, bytes.Equal(big, values[0].Value))
	_, messages, _, err := v.Outgoing(9, 0, 10, 1<<30)
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, messages[0].(*machine.Complete).Result.Value))
	require.NoError(t, v.Close())

	commit(t, p, 2, func(s machine.State) {
		s.DeleteJournal(id, 40)
		s.DeleteInvocation(id)
		s.PutValue(largeObject, []byte("k\x00"), []byte("small"))
		s.DeleteOutgoing(9, 1)
		s.DeletePromise(largeObject, "p")
	})
	require.Zero(t, chunkRows(t, db, p))
	requireChunks(t, p)
}

// Each chunk repeats the key of its row, which can have megabytes.
func TestLongKeysAreRepeatedByFewChunks(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	key, value := bytes.Repeat([]byte("k"), 1<<20), bytes.Repeat([]byte("0123456789"), 2<<20)
	commit(t, p, 1, func(s machine.State) { s.PutValue(largeObject, key, value) })
	e, err := p.Export()
	require.NoError(t, err)
	size := 0
	require.NoError(t, e.Each(t.Context(), func(key, value []byte) error {
		size += len(key) + len(value)
		return nil
	}))
	require.NoError(t, e.Close())
	require.Less(t, size, len(value)+5*len(key), "three chunks, their row and the rest")
	v := p.View()
	values, complete, err := v.Values(largeObject, 1<<30)
	require.NoError(t, err)
	require.True(t, complete)
	require.True(t, bytes.Equal(value, values[0].Value))
	require.NoError(t, v.Close())
	requireChunks(t, p)
	commit(t, p, 2, func(s machine.State) { s.PutValue(largeObject, key, nil) })
	require.Zero(t, chunkRows(t, db, p))
}

func TestKeysOfLargeRowsAreBounded(t *testing.T) {
	cutAt(t, 10)
	db := open(t)
	p := partition(t, db, 1)
	value := make([]byte, 30)
	key := func(i int) []byte { return fmt.Appendf(nil, "%0500d", i) }
	const rows = 3000
	commit(t, p, 1, func(s machine.State) {
		for i := range rows {
			s.PutValue(largeObject, key(i), value)
		}
	})
	held := func() (n int) {
		for _, row := range p.large.rows {
			n += len(row.key)
		}
		return n
	}
	require.LessOrEqual(t, held(), 1<<20)
	commit(t, p, 2, func(s machine.State) { // overwritten, deleted, and with chunks again
		s.PutValue(largeObject, key(0), []byte("small"))
		s.DeleteValue(largeObject, key(1))
		s.PutValue(largeObject, key(2), value)
	})
	require.Equal(t, 3*(rows-2), chunkRows(t, db, p))
	requireChunks(t, p)
	commit(t, p, 3, func(s machine.State) {
		for i := range rows {
			s.DeleteValue(largeObject, key(i))
		}
	})
	require.Zero(t, chunkRows(t, db, p))
	require.LessOrEqual(t, held(), 1<<20)
}

func TestViewKeepsAnOverwrittenLargeRow(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	put := func(index uint64, fill string, size int) []byte {
		value := bytes.Repeat([]byte(fill), size)
		commit(t, p, index, func(s machine.State) { s.PutValue(largeObject, []byte("k"), value) })
		return value
	}
	first := put(1, "a", 2<<20)
	v := p.View()
	defer v.Close()
	second := put(2, "b", 1<<20)
	for view, want := range map[*View][]byte{v: first, p.View(): second} {
		got, found, err := view.Value(largeObject, []byte("k"))
		require.NoError(t, err)
		require.True(t, found)
		require.True(t, bytes.Equal(want, got))
		require.NoError(t, view.Close())
	}
	requireChunks(t, p)
}

func TestSizesOfState(t *testing.T) {
	p := partition(t, open(t), 1)
	want := map[string]int{"": 3, "chunks": 2 << 20, "empty": 0, "long": 100_000}
	commit(t, p, 1, func(s machine.State) {
		for key, size := range want {
			s.PutValue(largeObject, []byte(key), make([]byte, size))
		}
		s.PutValue(machine.Object{Service: largeObject.Service, Key: largeObject.Key + "x"}, []byte("other"), []byte("object"))
	})
	require.NotEmpty(t, p.large.rows)
	v, got := p.View(), map[string]int{}
	defer v.Close()
	require.NoError(t, v.StateSizes(largeObject, func(key []byte, size int) { got[string(key)] = size }))
	require.Equal(t, want, got)
}

// TestOrphanedChunksAreRemoved has chunks whose batch was never committed.
func TestOrphanedChunksAreRemoved(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	p := partition(t, db, 1)
	value := bytes.Repeat([]byte("a"), 1<<20)
	commit(t, p, 1, func(s machine.State) { s.PutValue(largeObject, []byte("k"), value) })
	kept := chunkRows(t, db, p)
	for i, key := range []string{"k", "other"} {
		txn := p.Begin()
		txn.index = uint64(2 + i)
		txn.batch = db.pebble.NewBatch()
		txn.put(txn.space.value(nil, &largeObject, []byte(key)), value)
		require.NoError(t, txn.err)
		txn.Discard()
	}
	require.Equal(t, 3*kept, chunkRows(t, db, p))
	flush(t, db)
	require.NoError(t, db.Close())

	db = openAt(t, dir)
	defer func() { require.NoError(t, db.Close()) }()
	p = partition(t, db, 1)
	require.Equal(t, kept, chunkRows(t, db, p))
	requireChunks(t, p)
	v := p.View()
	defer v.Close()
	got, _, err := v.Value(largeObject, []byte("k"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, got))
}

func TestValuesThatLookLikeStubsRoundTrip(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	for i, value := range [][]byte{stubMark, stub{1, 5}.append(nil), append(bytes.Clone(stubMark), make([]byte, 100)...)} {
		commit(t, p, uint64(i+1), func(s machine.State) { s.PutValue(largeObject, []byte("k"), value) })
		v := p.View()
		got, found, err := v.Value(largeObject, []byte("k"))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, value, got)
		require.NoError(t, v.Close())
	}
}

func TestDamagedChunksAreDetected(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	key := p.space.value(nil, &largeObject, []byte("k"))
	chunk := func(n byte) []byte { return append(p.space.chunksOf(key, 1), 0, 0, 0, n) }
	set := func(key, value []byte) { require.NoError(t, db.pebble.Set(key, value, pebble.NoSync)) }
	commit(t, p, 1, func(s machine.State) { s.PutValue(largeObject, []byte("k"), make([]byte, 1<<20)) })
	for _, damage := range []func(){
		func() { set(key, stubMark) },
		func() { set(key, stub{1, 3}.append(nil)) },
		func() { set(key, stub{1, maxLarge}.append(nil)) },
		func() { set(key, stub{2, 1 << 20}.append(nil)) },
		func() { set(key, append(stub{1, 1 << 20}.append(nil), 0)) },
		func() { set(key, stub{1, 1 << 20}.append(nil)); set(chunk(3), []byte("short")) },
		func() { set(chunk(3), make([]byte, maxChunk+1)) },
		func() { set(chunk(3), make([]byte, maxChunk)); set(chunk(0), nil) },
		func() { require.NoError(t, db.pebble.Delete(chunk(0), pebble.NoSync)) },
	} {
		damage()
		v := p.View()
		_, _, err := v.Value(largeObject, []byte("k"))
		require.ErrorIs(t, err, ErrDamaged)
		require.NoError(t, v.Close())
	}
}

func TestLargeRowRangesMatchKeyRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := large{limit: math.MaxInt}
		all := map[string]bool{}
		for i, key := range rapid.SliceOfDistinct(anyPart, func(s string) string { return s }).Draw(t, "keys") {
			l.add(largeRow{key, uint64(i), 1})
			all[key] = true
		}
		lower, upper := anyPart.Draw(t, "lower"), anyPart.Draw(t, "upper")
		for _, row := range l.takeRange(lower, upper) {
			require.True(t, lower <= row.key && row.key < upper)
			delete(all, row.key)
		}
		require.Len(t, l.rows, len(all))
		for key := range all {
			require.False(t, lower <= key && key < upper)
			row, found := l.take(key)
			require.True(t, found)
			require.Equal(t, key, row.key)
		}
		require.Zero(t, l.bytes)
	})
}

func TestOpenUpgradesFormatVersion1(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, openAt(t, dir).Close())
	path := filepath.Join(dir, formatFile)
	require.NoError(t, os.WriteFile(path, []byte("1\n"), 0o600))
	require.NoError(t, openAt(t, dir).Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "2\n", string(text))
}
