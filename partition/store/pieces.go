package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Large rows are stored in pieces. Pebble makes a block of a table of each large
// value, of which it has four copies at a time while it flushes or compacts, and
// keeps a large batch until it is flushed; pieces go through buffers that are used
// again.
//
// The row itself then has a stub in place of its value. The pieces are rows of a
// table of their own, found by the row's key, the log entry that wrote them, and
// their number. They are committed before the batch that has the stub: until then
// nobody sees them, and those that a crash left without a stub are removed. A value
// that begins like a stub is stored in pieces whatever its size, so that there is no
// doubt.

const (
	// largeValue is the size from which a value is cut, if Options say nothing.
	largeValue = 512 << 10
	// maxPiece is the size of a piece, unless values are cut at less than that.
	maxPiece = 64 << 10
	// pieceBatch is how much of pieces is committed at a time.
	pieceBatch = 512 << 10
	// maxLarge bounds what is believed of a stub; Pebble's batches end there too.
	maxLarge = 4 << 30
)

// stubMark begins the values that are stubs. It is on disk: it never changes.
var stubMark = []byte{0xf1, 0x9c, 0x03, 0x5e, 0xb2, 0x47, 0x8a, 0xd0, 0x6b, 0x11, 0xe5, 0x7c, 0x29, 0xc8, 0x90, 0x3d}

// stub is what a row in pieces has in place of its value.
type stub struct {
	index uint64 // of the log entry that wrote it
	size  int    // of the value
}

func (st stub) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(append(b, stubMark...), st.index), uint64(st.size))
}

func isStub(value []byte) bool { return bytes.HasPrefix(value, stubMark) }

func readStub(value []byte) (stub, error) {
	index, n := binary.Uvarint(value[len(stubMark):])
	if n > 0 {
		rest := value[len(stubMark)+n:]
		if size, m := binary.Uvarint(rest); m > 0 && m == len(rest) && 0 < size && size <= maxLarge {
			return stub{index, int(size)}, nil
		}
	}
	return stub{}, fmt.Errorf("%w: stub %x", ErrDamaged, value)
}

// cuttable reports whether the rows of a table may be stored in pieces. The others
// are small, and some are read past the reader.
func cuttable(table byte) bool {
	switch table {
	case tableLive, tableDone, tableJournal, tableValues, tablePromises, tableOutbox:
		return true
	}
	return false
}

// piecesOf begins the keys of the pieces that a log entry wrote of the row at key.
func (s space) piecesOf(key []byte, index uint64) []byte {
	b := make([]byte, 0, prefixLen+len(key)+16)
	return binary.BigEndian.AppendUint64(appendPart(s.table(b, tablePieces), asString(key[prefixLen-1:])), index)
}

// pieceKeyEnd is the length of what follows the row's key in that of a piece.
const pieceKeyEnd = 8 + 4

// ownerOfPiece is the row that a piece belongs to, its key from the table on.
func ownerOfPiece(key []byte) (largeRow, error) {
	rest := key[prefixLen:]
	at := endOfPart(rest)
	if at+pieceKeyEnd != len(rest) || at < 3 {
		return largeRow{}, fmt.Errorf("%w: key %x", ErrDamaged, key)
	}
	row := bytes.ReplaceAll(rest[:at-2], []byte{0, partEscape}, []byte{0})
	return largeRow{string(row), binary.BigEndian.Uint64(rest[at:]), uint32(pieceNumber(key)) + 1}, nil
}

func pieceNumber(key []byte) int { return int(binary.BigEndian.Uint32(key[len(key)-4:])) }

// whole is the value of a row, of which stored is what is in its place: stored itself
// or, if that is a stub, a copy of its own.
func (r reader) whole(key, stored []byte) (value []byte, own bool, err error) {
	if !isStub(stored) || len(key) < prefixLen || !cuttable(key[prefixLen-1]) {
		return stored, false, nil
	}
	if value, err = r.joined(key, stored); err != nil {
		return nil, false, fmt.Errorf("read row %x: %w", key, err)
	}
	return value, true, nil
}

// copied is whole, and always a copy.
func (r reader) copied(key, stored []byte) ([]byte, error) {
	value, own, err := r.whole(key, stored)
	if err == nil && !own {
		value = append(make([]byte, 0, len(value)), value...) // an empty row is not nil
	}
	return value, err
}

// joined is the value that a stub stands for.
func (r reader) joined(key, stored []byte) ([]byte, error) {
	st, err := readStub(stored)
	if err != nil {
		return nil, err
	}
	s := space{binary.BigEndian.Uint16(key), key[2]}
	lower := s.piecesOf(key, st.index)
	it, err := r.scan(lower, after(lower))
	if err != nil {
		return nil, err
	}
	value, err := join(it, st.size)
	return value, errors.Join(err, it.Error(), it.Close())
}

// join puts pieces together. All but the last have the size of the first, and room
// is made only if the last one is there.
func join(it *pebble.Iterator, size int) ([]byte, error) {
	each := 0
	if it.First() {
		each = len(it.Value())
	}
	if each == 0 || !it.Last() || pieceNumber(it.Key()) != (size-1)/each {
		return nil, fmt.Errorf("%w: pieces of %d bytes", ErrDamaged, size)
	}
	value := make([]byte, 0, size)
	for ok := it.First(); ok && len(it.Value()) <= size-len(value); ok = it.Next() {
		value = append(value, it.Value()...)
	}
	if len(value) != size {
		return nil, fmt.Errorf("%w: %d bytes of %d", ErrDamaged, len(value), size)
	}
	return value, nil
}
