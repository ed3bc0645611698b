package store

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// large is the set of rows stored in chunks, in key order. It is consulted when a row is
// deleted or overwritten. It is small, and usually empty. A set that exceeds its limit is
// dropped: from then until the next start, rows are looked up in the table of chunks.
type large struct {
	rows    []largeRow
	bytes   int // memory of the rows
	limit   int
	dropped bool
}

// largeRow is a row stored in chunks: its key from the table byte on, the log entry that
// wrote it, and the number of chunks.
type largeRow struct {
	key    string
	index  uint64
	chunks uint32
}

// memory is what a row occupies in the set.
func (r largeRow) memory() int { return len(r.key) + 32 }

// none reports whether no row is stored in chunks.
func (l *large) none() bool { return len(l.rows) == 0 && !l.dropped }

func (l *large) find(key string) (int, bool) {
	return slices.BinarySearchFunc(l.rows, key, func(r largeRow, key string) int { return strings.Compare(r.key, key) })
}

// add inserts a row that is not in the set.
func (l *large) add(r largeRow) {
	if l.dropped {
		return
	}
	if l.bytes += r.memory(); l.bytes > l.limit {
		*l = large{limit: l.limit, dropped: true}
		return
	}
	i, _ := l.find(r.key)
	l.rows = slices.Insert(l.rows, i, r)
}

// take removes and returns the row with a key.
func (l *large) take(key string) (r largeRow, found bool) {
	i, found := l.find(key)
	if found {
		r = l.rows[i]
		l.rows = slices.Delete(l.rows, i, i+1)
		l.bytes -= r.memory()
	}
	return r, found
}

// takeRange removes and returns the rows [lower, upper).
func (l *large) takeRange(lower, upper string) []largeRow {
	from, _ := l.find(lower)
	to, _ := l.find(upper)
	taken := slices.Clone(l.rows[from:max(from, to)])
	l.rows = slices.Delete(l.rows, from, max(from, to))
	for _, r := range taken {
		l.bytes -= r.memory()
	}
	return taken
}

// large finds the rows of a space that are stored in chunks. Orphans have chunks but no
// stub: the stub was not written before a crash or an export.
func (r reader) large(s space, limit int) (l large, orphans []largeRow, err error) {
	l.limit = limit
	lower := s.table(nil, tableChunks)
	err = r.eachLarge(lower, after(lower), func(row largeRow) error {
		current, err := r.isCurrent(s, row)
		if err != nil {
			return err
		}
		if current {
			l.add(row)
		} else {
			orphans = append(orphans, row)
		}
		return nil
	})
	return l, orphans, err
}

// eachLarge calls visit for the rows whose chunks have keys in [lower, upper). A row that
// has chunks of several log entries is visited for each of them.
func (r reader) eachLarge(lower, upper []byte, visit func(largeRow) error) error {
	it, err := r.scan(lower, upper)
	if err != nil {
		return err
	}
	for ok := it.First(); ok && err == nil; {
		var row largeRow
		if row, err = ownerOfChunk(it.Key()); err != nil {
			break
		}
		end := after(it.Key()[:len(it.Key())-4])
		if !it.SeekLT(end) {
			break
		}
		row.chunks = uint32(chunkNumber(it.Key())) + 1
		err = visit(row)
		ok = it.SeekGE(end)
	}
	return errors.Join(err, it.Error(), it.Close())
}

// isCurrent reports whether the stub of a row refers to these chunks.
func (r reader) isCurrent(s space, row largeRow) (bool, error) {
	key := append(s.table(nil, row.key[0]), row.key[1:]...)
	if !r.it.SeekPrefixGE(key) || !bytes.Equal(r.it.Key(), key) {
		return false, r.it.Error()
	}
	value, err := r.it.ValueAndErr()
	if err != nil || !isStub(value) || !chunkable(row.key[0]) {
		return false, err
	}
	st, err := readStub(value)
	return st.index == row.index, err
}

// dropOrphans deletes chunks without a stub.
func (db *DB) dropOrphans(s space, orphans []largeRow) error {
	if len(orphans) == 0 {
		return nil
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	for _, row := range orphans {
		prefix := s.chunksOf(append(s.table(nil, row.key[0]), row.key[1:]...), row.index)
		if err := b.DeleteRange(prefix, after(prefix), nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}
