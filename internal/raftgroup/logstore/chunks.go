package logstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/hashicorp/raft"
)

// Large entries are stored in chunks. Pebble puts a large value into a block of
// its own, of which it holds four copies while it flushes, and retains a large batch until
// then; chunks pass through reused buffers.
//
// The row of such an entry contains the size and a checksum. The bytes of the ordinary row
// are in separate rows directly after it: their keys are the entry's key and the chunk
// number. They are written before the row, in separate batches: while the row does not
// exist, the entry does not exist.
const (
	entryInChunks = 2 // first byte of the row, where others have entryFormat
	chunkSize     = 64 << 10
	chunkBatch    = 512 << 10
	chunkKeyLen   = logKeyLen + 4
	// largeEntry is the size from which an entry is stored in chunks. A batch of small
	// commands stays below it.
	largeEntry = 512 << 10
	// maxEntry is the maximum plausible size, which is that of a Pebble batch.
	maxEntry = 4 << 30
)

// storedSize returns how many bytes a log entry has as it is stored, unless it is in chunks.
func storedSize(log *raft.Log) int {
	var head [maxEntryHeader]byte
	return len(appendEntryHeader(head[:0], log)) + len(log.Extensions) + len(log.Data) + crc32.Size
}

// storedParts returns the bytes of a log entry as it is stored: header, extensions, data and checksum.
func storedParts(key []byte, log *raft.Log) [][]byte {
	header := appendEntryHeader(make([]byte, 0, maxEntryHeader), log)
	sum := binary.LittleEndian.AppendUint32(nil, crcOf(key, header, log.Extensions, log.Data))
	return [][]byte{header, log.Extensions, log.Data, sum}
}

// putChunks writes the bytes of a large log entry in chunks, unless storeFiles has stored them, and its row into the
// batch.
func (s *PebbleStorage) putChunks(b *pebble.Batch, log *raft.Log) error {
	key, left := logKey(s.group, log.Index), storedSize(log)
	row := binary.AppendUvarint([]byte{entryInChunks}, uint64(left))
	row = binary.LittleEndian.AppendUint32(row, entryChecksum(key, row))
	if left >= fileEntry {
		return b.Set(key, row, nil)
	}

	rest := storedParts(key, log)
	chunks := s.db.NewBatchWithSize(chunkBatch + 2*chunkSize)
	defer chunks.Close()
	for number := uint32(0); left > 0; number++ {
		op := chunks.SetDeferred(chunkKeyLen, min(left, chunkSize))
		binary.BigEndian.PutUint32(op.Key[copy(op.Key, key):], number)
		left -= len(op.Value)
		rest = fill(op.Value, rest)
		if err := op.Finish(); err != nil {
			return err
		}
		if chunks.Len() < chunkBatch && left > 0 {
			continue
		}
		s.large.Await(s.db)
		if err := chunks.Commit(pebble.NoSync); err != nil { // synced with the row
			return err
		}
		chunks.Reset()
	}
	return b.Set(key, row, nil)
}

// fill copies from the front of parts until dst is full, and returns the rest.
func fill(dst []byte, parts [][]byte) [][]byte {
	for len(dst) > 0 {
		n := copy(dst, parts[0])
		dst = dst[n:]
		if parts[0] = parts[0][n:]; len(parts[0]) == 0 {
			parts = parts[1:]
		}
	}
	return parts
}

// afterChunks returns a key after those of the chunks of an entry and before the row of the next one, so that removals
// do not touch each other. Pebble merges those that do, and takes the merged one for as old as the oldest: it would not
// delete the files of entries that were written between two of them.
func afterChunks(group uint32, index uint64) []byte {
	return append(logKey(group, index), 0xff, 0xff, 0xff, 0xff, 0xff)
}

// findBounds finds the first and the last entry. It removes chunks of entries whose row was not written, unless keep is
// set: after the last entry, and before the first one, where an earlier server left them if storing an entry had failed
// and a snapshot then replaced the log.
func (s *PebbleStorage) findBounds(it *pebble.Iterator, keep bool) error {
	drop := func(index uint64) error {
		if keep {
			return nil
		}
		return s.db.DeleteRange(logKey(s.group, index), afterChunks(s.group, index), pebble.NoSync)
	}
	for ok := it.First(); ok && len(it.Key()) > logKeyLen; {
		index := indexOf(it.Key())
		ok = it.SeekGE(logKey(s.group, index+1))
		if err := drop(index); err != nil {
			return err
		}
	}
	if !it.Valid() {
		return it.Error()
	}
	s.first = indexOf(it.Key())
	for it.Last(); it.Valid() && len(it.Key()) > logKeyLen; {
		index := indexOf(it.Key())
		row := logKey(s.group, index)
		if it.SeekGE(row) && len(it.Key()) == logKeyLen {
			break
		}
		it.SeekLT(row)
		if err := drop(index); err != nil {
			return err
		}
	}
	if it.Valid() {
		s.last = indexOf(it.Key())
	}
	return it.Error()
}

// inChunks reports whether a row belongs to an entry in chunks.
func inChunks(row []byte) bool { return len(row) > 0 && row[0] == entryInChunks }

// joinChunks returns the bytes of the ordinary row; pebble.ErrNotFound if the entry has
// been removed.
func (s *PebbleStorage) joinChunks(index uint64) (value []byte, err error) {
	it, size, err := s.chunks(index)
	if err != nil {
		return nil, err
	}
	value = make([]byte, 0, size)
	for ok := it.Next(); ok && len(it.Value()) <= size-len(value); ok = it.Next() {
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

// chunks returns an iterator at the row of an entry in chunks, which the chunks follow, and
// their total size. Row and chunks are from one snapshot: the log may be truncated
// meanwhile.
func (s *PebbleStorage) chunks(index uint64) (it *pebble.Iterator, size int, err error) {
	key := logKey(s.group, index)
	if it, err = s.db.NewIter(&pebble.IterOptions{LowerBound: key, UpperBound: logKey(s.group, index+1)}); err != nil {
		return nil, 0, err
	}
	switch {
	case !it.First() || len(it.Key()) != logKeyLen:
		err = cmp.Or(it.Error(), pebble.ErrNotFound)
	default:
		size, err = joinedSize(key, it.Value())
	}
	if err != nil {
		return nil, 0, errors.Join(err, it.Close())
	}
	return it, size, nil
}

func joinedSize(key, row []byte) (int, error) {
	n := len(row) - 4
	if n < 1 || entryChecksum(key, row[:n]) != binary.LittleEndian.Uint32(row[n:]) {
		return 0, fmt.Errorf("size of an entry in chunks: %w", ErrCorrupt)
	}
	size, used := binary.Uvarint(row[1:n])
	if used != n-1 || size > maxEntry {
		return 0, fmt.Errorf("size of an entry in chunks: %w", ErrCorrupt)
	}
	return int(size), nil
}
