package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Large values are stored in chunks. Pebble puts a large value into a block of
// its own, of which it holds four copies while it flushes or compacts, and retains a large
// batch until it is flushed; chunks pass through reused buffers.
//
// The row contains a stub in place of its value. Chunks are rows of a separate table, keyed
// by the row's key, the log entry that wrote them, and their number. They are committed
// before the batch with the stub and are invisible until then; a crash in between leaves
// orphans, which are deleted at start. A value that begins with the mark of a stub is stored
// in chunks whatever its size, so that stubs are unambiguous.

const (
	// defaultLargeRow is the default of Options.LargeRowBytes.
	defaultLargeRow = 512 << 10
	// maxChunk is the maximum size of a chunk, unless the key of its row is long.
	maxChunk = 64 << 10
	// Each chunk repeats the key of its row. A long one, such as that of an object and of its
	// state, gets chunks of chunkPerKey times its length, up to maxLongChunk: otherwise a value of
	// 48 MiB with a key of 3 MiB would be 2 GiB.
	chunkPerKey  = 8
	maxLongChunk = 16 << 20
	// chunkBatch is the batch size in which chunks are committed.
	chunkBatch = 512 << 10
	// maxStub exceeds the size of a stub.
	maxStub = 64
	// maxLarge is the maximum plausible size in a stub, which is that of a Pebble batch.
	maxLarge = 4 << 30
)

// stubMark is the prefix of stubs. It is part of the disk format and must not change.
var stubMark = []byte{0xf1, 0x9c, 0x03, 0x5e, 0xb2, 0x47, 0x8a, 0xd0, 0x6b, 0x11, 0xe5, 0x7c, 0x29, 0xc8, 0x90, 0x3d}

// stub is stored in place of a value in chunks.
type stub struct {
	index uint64 // log entry that wrote the value
	size  int    // size of the value
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

// chunkable reports whether the values of a table may be stored in chunks. Rows of other
// tables are small, and some are read without joining chunks.
func chunkable(table byte) bool {
	switch table {
	case tableLive, tableDone, tableJournal, tableValues, tablePromises, tableOutbox:
		return true
	}
	return false
}

// chunksOf returns the key prefix of the chunks that a log entry wrote for the row at key.
func (s space) chunksOf(key []byte, index uint64) []byte {
	b := make([]byte, 0, prefixLen+len(key)+16)
	return binary.BigEndian.AppendUint64(appendPart(s.table(b, tableChunks), asString(key[prefixLen-1:])), index)
}

// chunkKeyEnd is the length of a chunk's key after the row's key: log entry and number.
const chunkKeyEnd = 8 + 4

// ownerOfChunk decodes the key of a chunk: the row it belongs to, assuming it is the last
// chunk.
func ownerOfChunk(key []byte) (largeRow, error) {
	rest := key[prefixLen:]
	at := endOfPart(rest)
	if at+chunkKeyEnd != len(rest) || at < 3 {
		return largeRow{}, fmt.Errorf("%w: key %x", ErrDamaged, key)
	}
	row := bytes.ReplaceAll(rest[:at-2], []byte{0, partEscape}, []byte{0})
	return largeRow{string(row), binary.BigEndian.Uint64(rest[at:]), uint32(chunkNumber(key)) + 1}, nil
}

func chunkNumber(key []byte) int { return int(binary.BigEndian.Uint32(key[len(key)-4:])) }

// whole returns the value of a row given its stored bytes: these, or the joined chunks if
// they are a stub. own reports that value is a copy.
func (r reader) whole(key, stored []byte) (value []byte, own bool, err error) {
	if !isStub(stored) || len(key) < prefixLen || !chunkable(key[prefixLen-1]) {
		return stored, false, nil
	}
	if value, err = r.joined(key, stored); err != nil {
		return nil, false, fmt.Errorf("read row %x: %w", key, err)
	}
	return value, true, nil
}

// copied is like whole, but always returns a copy.
func (r reader) copied(key, stored []byte) ([]byte, error) {
	value, own, err := r.whole(key, stored)
	if err == nil && !own {
		value = append(make([]byte, 0, len(value)), value...) // an empty value is not nil
	}
	return value, err
}

// joined returns the value that a stub refers to.
func (r reader) joined(key, stored []byte) ([]byte, error) {
	st, err := readStub(stored)
	if err != nil {
		return nil, err
	}
	s := space{binary.BigEndian.Uint16(key), key[2]}
	lower := s.chunksOf(key, st.index)
	it, err := r.scan(lower, after(lower))
	if err != nil {
		return nil, err
	}
	value, err := join(it, st.size)
	return value, errors.Join(err, it.Error(), it.Close())
}

// join concatenates chunks. All but the last have the size of the first; memory is allocated
// only if the last one exists.
func join(it *pebble.Iterator, size int) ([]byte, error) {
	chunk := 0
	if it.First() {
		chunk = len(it.Value())
	}
	if chunk == 0 || !it.Last() || chunkNumber(it.Key()) != (size-1)/chunk {
		return nil, fmt.Errorf("%w: chunks of a value of %d bytes are missing", ErrDamaged, size)
	}
	value := make([]byte, 0, size)
	for ok := it.First(); ok && len(it.Value()) <= size-len(value); ok = it.Next() {
		value = append(value, it.Value()...)
	}
	if len(value) != size {
		return nil, fmt.Errorf("%w: chunks have %d bytes, expected %d", ErrDamaged, len(value), size)
	}
	return value, nil
}
