package store

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// large are the rows that are stored in pieces, in order of their keys. Whoever
// deletes or overwrites one has to know it; they are few, and mostly there are none.
type large struct{ rows []largeRow }

// largeRow is a row in pieces: its key from the table on, the log entry that wrote
// it, and how many pieces there are.
type largeRow struct {
	key    string
	index  uint64
	pieces uint32
}

func (l *large) find(key string) (int, bool) {
	return slices.BinarySearchFunc(l.rows, key, func(r largeRow, key string) int { return strings.Compare(r.key, key) })
}

// add notes a row that is not noted.
func (l *large) add(r largeRow) {
	i, _ := l.find(r.key)
	l.rows = slices.Insert(l.rows, i, r)
}

// take forgets the row with a key and returns it.
func (l *large) take(key string) (r largeRow, found bool) {
	i, found := l.find(key)
	if found {
		r = l.rows[i]
		l.rows = slices.Delete(l.rows, i, i+1)
	}
	return r, found
}

// takeRange forgets the rows from lower on and before upper, and returns them.
func (l *large) takeRange(lower, upper string) []largeRow {
	from, _ := l.find(lower)
	to, _ := l.find(upper)
	taken := slices.Clone(l.rows[from:max(from, to)])
	l.rows = slices.Delete(l.rows, from, max(from, to))
	return taken
}

// large finds the rows of a space that are stored in pieces. Those in lost have
// pieces and no stub: a crash, or a copy of the rows, came in between.
func (r reader) large(s space) (l large, lost []largeRow, err error) {
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
			lost = append(lost, row)
		}
		ok = it.SeekGE(end)
	}
	return l, lost, errors.Join(err, it.Error(), it.Close())
}

// isCurrent reports whether the pieces of a row are those that its stub stands for.
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

// dropLost removes pieces that belong to no row any more.
func (db *DB) dropLost(s space, lost []largeRow) error {
	if len(lost) == 0 {
		return nil
	}
	b := db.pebble.NewBatch()
	defer b.Close()
	for _, row := range lost {
		prefix := s.piecesOf(append(s.table(nil, row.key[0]), row.key[1:]...), row.index)
		if err := b.DeleteRange(prefix, after(prefix), nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}
