package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// stateOf returns what Values should return.
func stateOf(model map[string]string, limit int) (want []string, complete bool) {
	keys := make([]string, 0, len(model))
	for k := range model {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if limit -= len(k) + len(model[k]); limit < 0 {
			return want, false
		}
		want = append(want, k+"="+model[k])
	}
	return want, true
}

func written(entries []machine.StateEntry) (all []string) {
	for _, e := range entries {
		all = append(all, string(e.Key)+"="+string(e.Value))
	}
	return all
}

// The state of an object is partly in the database and partly in the rows that were collected.
func TestValuesAreReadFromTheDatabaseAndFromCollectedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := partition(t, open(t), 1)
	objects := []machine.Object{{Service: "S", Key: "a"}, {Service: "S", Key: "ab"}, {Service: "T", Key: "a"}}
	models := make([]map[string]string, len(objects))
	for i := range models {
		models[i] = map[string]string{}
	}
	for n := range uint64(3000) {
		i := rng.IntN(len(objects))
		o, model := objects[i], models[i]
		commit(t, p, n+1, func(s machine.State) {
			for range 1 + rng.IntN(4) {
				key := fmt.Sprint("k", rng.IntN(2*manyRows))
				switch rng.IntN(20) {
				case 0:
					s.DeleteValues(o)
					clear(model)
				case 1, 2, 3, 4:
					s.DeleteValue(o, []byte(key))
					delete(model, key)
				default:
					value := bytes.Repeat([]byte{byte('a' + n%26)}, rng.IntN(20))
					s.PutValue(o, []byte(key), value)
					model[key] = string(value)
				}
			}
		})
		if rng.IntN(40) == 0 {
			require.NoError(t, p.Settle())
		}
		i = rng.IntN(len(objects))
		limit := 1 << 20
		if rng.IntN(2) == 0 {
			limit = rng.IntN(500)
		}
		want, whole := stateOf(models[i], limit)
		collected := p.collected.Load()
		entries, complete, err := p.Values(objects[i], limit)
		require.NoError(t, err)
		require.Equal(t, want, written(entries))
		require.Equal(t, whole, complete)
		require.Equal(t, collected, p.collected.Load(), "they are not written for that")
		if n%100 == 0 {
			v := p.View()
			entries, complete, err = v.Values(objects[i], limit)
			require.NoError(t, err)
			require.Equal(t, want, written(entries))
			require.Equal(t, whole, complete)
			require.NoError(t, v.Close())
		}
	}
}

func TestValuesRemainWhenTheirRowsAreWritten(t *testing.T) {
	p := partition(t, open(t), 1)
	o := machine.Object{Service: "S", Key: "a"}
	commit(t, p, 1, func(s machine.State) { s.PutValue(o, []byte("key"), []byte("value")) })
	entries, _, err := p.Values(o, 100)
	require.NoError(t, err)
	commit(t, p, 2, func(s machine.State) { s.PutValue(o, []byte("key"), []byte("other")) })
	require.NoError(t, p.Settle())
	commit(t, p, 3, func(s machine.State) { s.PutValue(o, []byte("name"), []byte("third")) })
	require.Equal(t, []string{"key=value"}, written(entries))
}

func TestLargeValuesAreReadWhole(t *testing.T) {
	p := partition(t, open(t), 1)
	o, large := machine.Object{Service: "S", Key: "a"}, bytes.Repeat([]byte("v"), 600<<10)
	commit(t, p, 1, func(s machine.State) { s.PutValue(o, []byte("key"), large) })
	for range 2 {
		entries, complete, err := p.Values(o, 1<<20)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, large, entries[0].Value)
		require.NoError(t, p.Settle())
	}
}

func TestValuesOfDiscardedCommitsAreNotRead(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	o := machine.Object{Service: "S", Key: "a"}
	commit(t, p, 1, func(s machine.State) { s.PutValue(o, []byte("key"), []byte("value")) })
	p.Begin().Discard()
	_, _, err := p.Values(o, 100)
	require.ErrorIs(t, err, errDiscarded)
}

func TestValuesAreNotReadFromAClosedDatabase(t *testing.T) {
	db := openAt(t, t.TempDir())
	p := partition(t, db, 1)
	require.NoError(t, db.Close())
	_, _, err := p.Values(machine.Object{Service: "S", Key: "a"}, 100)
	require.ErrorIs(t, err, ErrClosed)
}

func TestTheStateInTheDatabaseIsKnownUntilRowsAreWritten(t *testing.T) {
	p := partition(t, open(t), 1)
	o := machine.Object{Service: "S", Key: "a"}
	put := func(index uint64, value string) {
		commit(t, p, index, func(s machine.State) { s.PutValue(o, []byte("key"), []byte(value)) })
	}
	values := func() []string {
		entries, complete, err := p.Values(o, 1<<20)
		require.NoError(t, err)
		require.True(t, complete)
		return written(entries)
	}
	put(1, "first")
	require.NoError(t, p.Settle())
	require.Equal(t, []string{"key=first"}, values())
	put(2, "second")
	require.Len(t, p.known.objects, 1)
	require.Equal(t, []string{"key=second"}, values())

	late, err := p.objectRows(&o)
	require.NoError(t, err)
	require.Nil(t, late.reader.it, "nothing is read from the database")
	require.NoError(t, p.Settle())
	require.Empty(t, p.known.objects)
	entries, _, err := late.values(100)
	require.NoError(t, err)
	require.Equal(t, []string{"key=second"}, written(entries))

	late, err = p.objectRows(&o)
	require.NoError(t, err)
	put(3, "third")
	require.NoError(t, p.Settle())
	entries, _, err = late.values(100)
	require.NoError(t, errors.Join(err, late.close()))
	require.Equal(t, []string{"key=second"}, written(entries))
	require.Empty(t, p.known.objects, "it was read before the rows were written")
	require.Equal(t, []string{"key=third"}, values())

	put(4, string(make([]byte, maxKnown)))
	require.NoError(t, p.Settle())
	values()
	require.Empty(t, p.known.objects, "it is too large")
}

// What collected rows replace is no part of the result, so it must not be kept while the rest is read.
func TestReplacedValuesAreNotKeptWhileTheStateIsRead(t *testing.T) {
	const values, size = 128, 512 << 10
	p := partition(t, open(t), 1)
	o := machine.Object{Service: "S", Key: "a"}
	key := func(i int) []byte { return fmt.Appendf(nil, "key%03d", i) }
	for i := range values {
		commit(t, p, uint64(i)+1, func(s machine.State) { s.PutValue(o, key(i), make([]byte, size)) })
	}
	require.NoError(t, p.Settle())
	commit(t, p, values+1, func(s machine.State) {
		for i := range values {
			s.PutValue(o, key(i), []byte("v"))
		}
	})
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before, last uint64
	for range 2 { // the first time fills the cache of the database
		rows, err := p.objectRows(&o)
		require.NoError(t, err)
		before = inUse()
		visited := 0
		err = rows.eachStored(func(machine.StateEntry) bool {
			if visited++; visited == values {
				last = inUse()
			}
			return true
		})
		require.NoError(t, errors.Join(err, rows.close()))
		require.Equal(t, values, visited)
	}
	require.Less(t, last, before+values*size/2)
	require.Empty(t, p.known.objects)
}

// Small states need more memory than their bytes.
func TestKnownStatesOfManyObjectsAreBounded(t *testing.T) {
	p := partition(t, open(t), 1)
	for i := range 5000 {
		_, _, err := p.Values(machine.Object{Service: "S", Key: fmt.Sprint(i)}, 100)
		require.NoError(t, err)
	}
	require.Less(t, len(p.known.objects), 1000)
	require.LessOrEqual(t, p.known.bytes, maxKnown)
}
