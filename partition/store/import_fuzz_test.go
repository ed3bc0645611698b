package store

import (
	"bytes"
	"context"
	"iter"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"platform/internal/pebbledb"
	"platform/partition/machine"
)

// FuzzImport: rows of any content that pass for a partition's state can be read, or
// it is said that they cannot; no row changes another partition.
func FuzzImport(f *testing.F) {
	cutAt(f, 110)
	db := openInMemory(f)
	from, to := partition(f, db, source), partition(f, db, target)
	for i := uint64(1); i <= 3; i++ {
		commit(f, from, i, func(s machine.State) { require.NoError(f, applyBatch(s, i)) })
	}
	type row struct{ key, value []byte }
	var genuine []row
	untouched := rows(f, from)
	for i := 0; i < len(untouched); i += 2 {
		genuine = append(genuine, row{[]byte(untouched[i]), []byte(untouched[i+1])})
		if i == 0 || untouched[i][0] != untouched[i-2][0] { // one of each table
			f.Add([]byte(untouched[i]), []byte(untouched[i+1]))
		}
	}
	index, term := from.Applied()
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0xff}, []byte{1})

	f.Fuzz(func(t *testing.T, key, value []byte) {
		i, err := to.Import()
		require.NoError(t, err)
		placed := false
		put := func(key, value []byte) {
			if err == nil {
				err = i.Put(key, value)
			}
		}
		for _, r := range genuine {
			order := bytes.Compare(key, r.key)
			if !placed && order <= 0 {
				put(key, value)
				placed = true
			}
			if order != 0 {
				put(r.key, r.value)
			}
		}
		if !placed {
			put(key, value)
		}
		if err == nil {
			err = i.Commit(t.Context(), index, term)
		}
		if err != nil {
			require.NoError(t, i.Abort())
		}
		readAll(t, to)
		require.Equal(t, untouched, rows(t, from))
	})
}

// readAll reads what a leader and operators read, which may fail but no more.
func readAll(t *testing.T, p *Partition) {
	v := p.View()
	defer func() { require.NoError(t, v.Close()) }()
	for _, invocations := range []iter.Seq2[*machine.Invocation, error]{v.Live(), v.Done()} {
		for inv, err := range invocations {
			if err != nil {
				break
			}
			_, _, _ = v.Journal(inv.ID, inv.Length, math.MaxInt)
			_, _ = v.Invocation(inv.ID)
			_, _, _ = v.Values(inv.Target.Object(), 1<<20)
			_, _ = v.Lock(inv.Target.Object())
		}
	}
	for promise, err := range allPromises(v) {
		if err == nil {
			_, _ = v.Promise(promise.Workflow, promise.Key)
		}
	}
	_, _, _ = v.Timers(machine.Timer{At: math.MinInt64}, machine.Timer{At: math.MaxInt64}, 1000, math.MaxInt)
	for peer := range uint32(4) {
		_, _, _, _ = v.Outgoing(peer, 0, 1000, 1<<20)
		_, _ = v.LastSent(peer)
		_, _ = v.LastDelivered(peer)
	}
}

// rows is all that a partition exports.
func rows(t require.TestingT, p *Partition) (all []string) {
	e, err := p.Export()
	require.NoError(t, err)
	require.NoError(t, e.Each(context.Background(), func(key, value []byte) error {
		all = append(all, string(key), string(value))
		return nil
	}))
	require.NoError(t, e.Close())
	return all
}

// openInMemory opens a database that knows no disk.
func openInMemory(f *testing.F) *DB {
	opts := quiet().withDefaults()
	cache := pebble.NewCache(opts.CacheBytes)
	po := pebbleOptions(opts, cache, nil, new(pebbledb.WriteProgress))
	po.FS = vfs.NewMem()
	db, err := pebble.Open("tables", po)
	require.NoError(f, err)
	f.Cleanup(func() {
		require.NoError(f, db.Close())
		cache.Unref()
	})
	return &DB{pebble: db, cache: cache, opts: opts, partitions: map[uint16]*Partition{}}
}
