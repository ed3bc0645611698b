package store

import (
	"bytes"
	"slices"
	"unsafe"
)

// writeSet is the writes of a transaction to some tables: the last value of every key. Reads
// consult it before the database, and the commit writes each key once.
type writeSet[V any] struct {
	rows []row[V]
	at   map[string]int32 // key → index in rows, used above fewRows
}

type row[V any] struct {
	key     []byte
	value   V
	deleted bool
}

// fewRows is the number of rows up to which a linear search is used: it is faster than a map
// and needs no clearing.
const fewRows = 8

func (w *writeSet[V]) find(key []byte) *row[V] {
	if len(w.rows) <= fewRows {
		for i := range w.rows {
			if string(w.rows[i].key) == string(key) {
				return &w.rows[i]
			}
		}
		return nil
	}
	if i, ok := w.at[string(key)]; ok {
		return &w.rows[i]
	}
	return nil
}

// put retains key, which must not change until reset.
func (w *writeSet[V]) put(key []byte, v V) { w.write(row[V]{key: key, value: v}) }

// remove retains key, which must not change until reset.
func (w *writeSet[V]) remove(key []byte) { w.write(row[V]{key: key, deleted: true}) }

func (w *writeSet[V]) write(r row[V]) {
	if old := w.find(r.key); old != nil {
		*old = r
		return
	}
	w.rows = append(w.rows, r)
	switch n := len(w.rows); {
	case n == fewRows+1:
		if w.at == nil {
			w.at = make(map[string]int32, 8*fewRows)
		}
		for i := range w.rows {
			w.at[asString(w.rows[i].key)] = int32(i)
		}
	case n > fewRows:
		w.at[asString(r.key)] = int32(n - 1)
	}
}

// owned returns the rows whose keys begin with prefix, in key order.
func (w *writeSet[V]) owned(prefix []byte) (rows []row[V]) {
	for _, r := range w.rows {
		if bytes.HasPrefix(r.key, prefix) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row[V]) int { return bytes.Compare(a.key, b.key) })
	return rows
}

// asString converts a key to a string without copying it.
func asString(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }

// keptRows bounds the capacity kept for the next transaction.
const keptRows = 4096

func (w *writeSet[V]) reset() {
	if len(w.rows) > keptRows {
		*w = writeSet[V]{}
		return
	}
	if len(w.rows) > fewRows {
		clear(w.at)
	}
	clear(w.rows)
	w.rows = w.rows[:0]
}

// arena allocates the keys of a transaction.
type arena struct {
	chunk []byte
	size  int // of the keys since reset
}

const arenaChunk = 32 << 10

// room returns an empty slice with a capacity of at least n bytes; keep allocates what was
// appended to it.
func (a *arena) room(n int) []byte {
	if cap(a.chunk)-len(a.chunk) < n {
		a.chunk = make([]byte, 0, max(arenaChunk, n)) // the keys retain the old chunk
	}
	return a.chunk[len(a.chunk):len(a.chunk):cap(a.chunk)]
}

func (a *arena) keep(key []byte) []byte {
	a.size += len(key)
	if free := a.chunk[len(a.chunk):cap(a.chunk)]; len(key) <= len(free) && len(key) > 0 && &free[:1][0] == &key[0] {
		a.chunk = a.chunk[:len(a.chunk)+len(key)]
	}
	return key[:len(key):len(key)]
}

func (a *arena) reset() {
	if a.chunk, a.size = a.chunk[:0], 0; cap(a.chunk) > arenaChunk { // of a long key
		a.chunk = nil
	}
}
