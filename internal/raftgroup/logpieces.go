package raftgroup

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// Large entries are stored in pieces. Pebble makes a block of a table of each large
// value, of which it has four copies at a time while it flushes; pieces go through
// buffers that are used again.
//
// The row of such an entry says how many bytes there are, under a checksum. The
// bytes, those of an ordinary row, are in rows of their own right behind it: their
// keys are the entry's and the piece's number.
const (
	entryInPieces = 2 // first byte of the row, where others have entryFormat
	pieceSize     = 256 << 10
	pieceKeyLen   = logKeyLen + 4
	// largeEntry is the size from which an entry is cut. A batch of small commands
	// stays below it.
	largeEntry = 512 << 10
	// maxEntry bounds what is believed of a length; Pebble's batches end there too.
	maxEntry = 4 << 30
)

// putPieces encodes a large log into the batch: header, extensions, data and
// checksum one after the other.
func (s *LogStore) putPieces(b *pebble.Batch, log *raft.Log, header []byte) error {
	key := logKey(s.group, log.Index)
	sum := binary.LittleEndian.AppendUint32(nil, crcOf(key, header, log.Extensions, log.Data))
	parts := [...][]byte{header, log.Extensions, log.Data, sum}
	left := 0
	for _, p := range parts {
		left += len(p)
	}
	row := binary.AppendUvarint([]byte{entryInPieces}, uint64(left))
	row = binary.LittleEndian.AppendUint32(row, entryChecksum(key, row))
	if err := b.Set(key, row, nil); err != nil {
		return err
	}
	for number, rest := uint32(0), parts[:]; left > 0; number++ {
		op := b.SetDeferred(pieceKeyLen, min(left, pieceSize))
		binary.BigEndian.PutUint32(op.Key[copy(op.Key, key):], number)
		for value := op.Value; len(value) > 0; {
			n := copy(value, rest[0])
			value, left = value[n:], left-n
			if rest[0] = rest[0][n:]; len(rest[0]) == 0 {
				rest = rest[1:]
			}
		}
		if err := op.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// inPieces reports whether a row is that of an entry in pieces.
func inPieces(row []byte) bool { return len(row) > 0 && row[0] == entryInPieces }

// joinPieces returns the bytes that an ordinary row would have.
func (s *LogStore) joinPieces(index uint64, row []byte) ([]byte, error) {
	key := logKey(s.group, index)
	size, err := joinedSize(key, row)
	if err != nil {
		return nil, err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: append(key[:len(key):len(key)], 0, 0, 0, 0),
		UpperBound: logKey(s.group, index+1),
	})
	if err != nil {
		return nil, err
	}
	value := make([]byte, 0, size)
	for ok := it.First(); ok && len(it.Value()) <= size-len(value); ok = it.Next() {
		value = append(value, it.Value()...)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, err
	}
	if len(value) != size {
		return nil, fmt.Errorf("%d bytes of an entry of %d: %w", len(value), size, ErrCorrupt)
	}
	return value, nil
}

func joinedSize(key, row []byte) (int, error) {
	n := len(row) - 4
	if n < 1 || entryChecksum(key, row[:n]) != binary.LittleEndian.Uint32(row[n:]) {
		return 0, fmt.Errorf("size of an entry in pieces: %w", ErrCorrupt)
	}
	size, used := binary.Uvarint(row[1:n])
	if used != n-1 || size > maxEntry {
		return 0, fmt.Errorf("size of an entry in pieces: %w", ErrCorrupt)
	}
	return int(size), nil
}
