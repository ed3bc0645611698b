package store

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// large is the set of rows stored in chunks, in key order. It is consulted when a row is
// deleted or overwritten. It is small, and usually empty.
type large struct{ rows []largeRow }

// largeRow is a row stored in chunks: its key from the table byte on, the log entry that
// wrote it, and the number of chunks.
type largeRow struct {
	key    string
	index  uint64
	pieces uint32
}

func (l *large) find(key string) (int, bool) {
	return slices.BinarySearchFunc(l.rows, key, func(r largeRow, key string) int { return strings.Compare(r.key, key) })
}

// add inserts a row that is not in the set.
func (l *large) add(r largeRow) {
	i, _ := l.find(r.key)
	l.rows = slices.Insert(l.rows, i, r)
}

// take removes and returns the row with a key.
func (l *large) take(key string) (r largeRow, found bool) {
	i, found := l.find(key)
	if found {
		r = l.rows[i]
		l.rows = slices.Delete(l.rows, i, i+1)
	}
	return r, found
}

// takeRange removes and returns the rows [lower, upper).
func (l *large) takeRange(lower, upper string) []largeRow {
	from, _ := l.find(lower)
	to, _ := l.find(upper)
	taken := slices.Clone(l.rows[from:max(from, to)])
	l.rows = slices.Delete(l.rows, from, max(from, to))
	return taken
}

// large finds the rows of a space that are stored in chunks. Orphans have chunks but no
// stub: the stub was not written before a crash or an export.
func (r reader) large(s space) (l large, orphans []largeRow, err error) {
	lower := s.table(nil, tablePieces)
	it, err := r.scan(lower, after(lower))
	if err != nil {
		return l, nil, err
	}
	for ok := it.First(); ok; {
		var row largeRow
		if row, err = ownerOfPiece(it.Key()); err != nil {
			break
		}
		end := after(it.Key()[:len(it.Key())-4])
		if !it.SeekLT(end) {
			break
		}
		row.pieces = uint32(pieceNumber(it.Key())) + 1
		var current bool
		if current, err = r.isCurrent(s, row); err != nil {
			break
		}
		if current {
			l.rows = append(l.rows, row)
		} else {
			orphans = append(orphans, row)
		}
		ok = it.SeekGE(end)
	}
	return l, orphans, errors.Join(err, it.Error(), it.Close())
}

// isCurrent reports whether the stub of a row refers to these chunks.
func (r reader) isCurrent(s space, row largeRow) (bool, error) {
	key := append(s.table(nil, row.key[0]), row.key[1:]...)
	if !r.it.SeekPrefixGE(key) || !bytes.Equal(r.it.Key(), key) {
		return false, r.it.Error()
	}
	value, err := r.it.ValueAndErr()
	if err != nil || !isStub(value) || !cuttable(row.key[0]) {
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
		prefix := s.piecesOf(append(s.table(nil, row.key[0]), row.key[1:]...), row.index)
		if err := b.DeleteRange(prefix, after(prefix), nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}
