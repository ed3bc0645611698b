package store

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

func digestOf(t testing.TB, p *Partition, from []byte, rows, size uint64) Digest {
	e, err := p.Export()
	require.NoError(t, err)
	d, err := e.Digest(t.Context(), from, rows, size)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	return d
}

func putValues(t testing.TB, p *Partition, index uint64, values map[string][]byte) {
	txn := p.Begin()
	for key, v := range values {
		txn.PutValue(machine.Object{Service: "s", Key: "k"}, []byte(key), v)
	}
	require.NoError(t, txn.Commit(index, 1))
}

// digested is a database with rows of different sizes, some in chunks.
func digested(t testing.TB, large int) *Partition {
	db, err := Open(t.TempDir(), Options{LargeRowBytes: large})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	p, err := db.Partition(3)
	require.NoError(t, err)
	return p
}

func values(n int) map[string][]byte {
	out := map[string][]byte{}
	for i := range n {
		out[fmt.Sprintf("key-%04d", i)] = bytes.Repeat([]byte{byte(i)}, i*13)
	}
	return out
}

const all = math.MaxUint64

func TestDigestIsIndependentOfStorageLayout(t *testing.T) {
	whole, cut := digested(t, 1<<20), digested(t, 700)
	putValues(t, whole, 7, values(100))
	for i, v := range values(100) { // in batches of their own, overwritten rows in chunks included
		at, _ := cut.Applied()
		putValues(t, cut, at+1, map[string][]byte{i: bytes.Repeat([]byte("x"), 1000)})
		putValues(t, cut, at+2, map[string][]byte{i: v})
	}
	at, _ := cut.Applied()
	putValues(t, whole, at+1, nil)
	putValues(t, cut, at+1, nil)
	want := digestOf(t, whole, nil, all, all)
	require.EqualValues(t, 101, want.Rows, "values and the partition's record")
	require.Nil(t, want.Next)
	require.Equal(t, want, digestOf(t, cut, nil, all, all))

	// Another generation has the same digest.
	e, err := cut.Export()
	require.NoError(t, err)
	imp, err := cut.Import()
	require.NoError(t, err)
	require.NoError(t, e.Each(t.Context(), imp.Put))
	require.NoError(t, imp.Commit(t.Context(), at+1, 1))
	require.NoError(t, e.Close())
	require.Equal(t, want, digestOf(t, cut, nil, all, all))
}

func TestDigestChangesWithAnyRow(t *testing.T) {
	p := digested(t, 700)
	putValues(t, p, 1, values(50))
	before := digestOf(t, p, nil, all, all)
	changed := values(50)["key-0049"]
	changed[0]++
	putValues(t, p, 2, map[string][]byte{"key-0049": changed})
	putValues(t, p, 3, nil)
	after := digestOf(t, p, nil, all, all)
	require.NotEqual(t, before.Sum, after.Sum)
	require.Equal(t, before.Rows, after.Rows)
}

func TestDigestsCoverAllRowsInSteps(t *testing.T) {
	p := digested(t, 700)
	putValues(t, p, 1, values(100))
	var rows uint64
	var from []byte
	steps := 0
	for {
		d := digestOf(t, p, from, 9, all)
		require.LessOrEqual(t, d.Rows, uint64(9))
		rows += d.Rows
		steps++
		if from = d.Next; from == nil {
			break
		}
	}
	require.EqualValues(t, 101, rows)
	require.Equal(t, 12, steps)
	require.EqualValues(t, 1, digestOf(t, p, nil, all, 1).Rows, "one row whatever its size")
	require.Zero(t, digestOf(t, p, []byte{0xff}, all, all).Rows)
}

func BenchmarkDigest(b *testing.B) {
	p := digested(b, 0)
	for i := range 20 {
		rows := map[string][]byte{}
		for j := range 1000 {
			rows[fmt.Sprintf("key-%d-%d", i, j)] = make([]byte, 200)
		}
		putValues(b, p, uint64(i+1), rows)
	}
	for b.Loop() {
		d := digestOf(b, p, nil, 4096, 4<<20)
		b.SetBytes(int64(d.Bytes))
	}
}
