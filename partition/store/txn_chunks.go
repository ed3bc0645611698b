package store

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// put writes a row whose value is the concatenation of parts.
func (t *Txn) put(key []byte, parts ...[]byte) {
	t.dropChunks(key)
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size > 0 && (size >= t.p.db.opts.LargeRowBytes || isStub(parts[0])) && chunkable(key[prefixLen-1]) {
		t.putChunks(key, parts, size)
		return
	}
	if len(parts) == 1 {
		t.fail(t.batch.Set(key, parts[0], nil))
		return
	}
	op := t.batch.SetDeferred(len(key), size)
	copy(op.Key, key)
	fillFrom(op.Value, parts)
	t.fail(op.Finish())
}

// putChunks commits the chunks of the concatenated parts and writes the stub.
func (t *Txn) putChunks(key []byte, parts [][]byte, size int) {
	st := stub{t.index, size}
	prefix := t.space.chunksOf(key, st.index)
	most := min(maxChunk, t.p.db.opts.LargeRowBytes)
	if long := chunkPerKey * len(prefix); long > maxChunk {
		most = min(long, maxLongChunk)
	}
	b := t.p.db.pebble.NewBatchWithSize(min(size, chunkBatch) + len(prefix) + 2*maxChunk)
	defer b.Close()
	number := uint32(0)
	for ; size > 0 && t.err == nil; number++ {
		op := b.SetDeferred(len(prefix)+4, min(size, most))
		binary.BigEndian.PutUint32(op.Key[copy(op.Key, prefix):], number)
		size -= len(op.Value)
		parts = fillFrom(op.Value, parts)
		t.fail(op.Finish())
		if b.Len() >= chunkBatch || size == 0 {
			t.p.db.large.Await(t.p.db.pebble)
			t.fail(b.Commit(pebble.NoSync))
			b.Reset()
		}
	}
	t.p.large.add(largeRow{string(key[prefixLen-1:]), st.index, number})
	t.fail(t.batch.Set(key, st.append(nil), nil))
}

// fillFrom fills dst from the front of parts and returns the rest.
func fillFrom(dst []byte, parts [][]byte) [][]byte {
	for len(dst) > 0 {
		n := copy(dst, parts[0])
		dst = dst[n:]
		if parts[0] = parts[0][n:]; len(parts[0]) == 0 {
			parts = parts[1:]
		}
	}
	return parts
}

func (t *Txn) delete(key []byte) {
	t.dropChunks(key)
	t.fail(t.batch.Delete(key, nil))
}

func (t *Txn) deleteRange(r keyRange) {
	t.fail(t.batch.DeleteRange(r.lower, r.upper, nil))
	switch l := &t.p.large; {
	case !chunkable(r.lower[prefixLen-1]):
	case l.dropped:
		t.deleteChunksBetween(t.chunksKey(r.lower), t.chunksKey(r.upper))
	default:
		for _, row := range l.takeRange(asString(r.lower[prefixLen-1:]), asString(r.upper[prefixLen-1:])) {
			t.deleteChunks(row)
		}
	}
}

// dropChunks deletes the chunks of a row that is deleted or overwritten.
func (t *Txn) dropChunks(key []byte) {
	l := &t.p.large
	if l.none() || !chunkable(key[prefixLen-1]) {
		return
	}
	if !l.dropped {
		if row, found := l.take(asString(key[prefixLen-1:])); found {
			t.deleteChunks(row)
		}
		return
	}
	r, err := t.committed()
	if err != nil {
		t.fail(err)
		return
	}
	prefix := t.chunksKey(key)
	if r.it.SeekPrefixGE(prefix) { // usually answered by a bloom filter
		t.deleteChunksBetween(prefix, after(prefix))
	}
	t.fail(r.it.Error())
}

// chunksKey returns the key prefix of the chunks of the row at key. Prefixes sort like keys.
func (t *Txn) chunksKey(key []byte) []byte {
	return appendPart(t.space.table(make([]byte, 0, prefixLen+len(key)+8), tableChunks), asString(key[prefixLen-1:]))
}

// deleteChunksBetween deletes the chunks of the rows whose chunks have keys in [lower, upper).
func (t *Txn) deleteChunksBetween(lower, upper []byte) {
	r, err := t.committed()
	if err == nil {
		err = r.eachLarge(lower, upper, func(row largeRow) error {
			t.deleteChunks(row)
			return t.err
		})
	}
	t.fail(err)
}

// deleteChunks deletes the chunks of a row.
func (t *Txn) deleteChunks(row largeRow) {
	prefix := t.space.chunksOf(append(t.space.table(nil, row.key[0]), row.key[1:]...), row.index)
	if row.chunks > manyRows {
		t.fail(t.batch.DeleteRange(prefix, after(prefix), nil))
		return
	}
	for n := range row.chunks {
		t.fail(t.batch.Delete(binary.BigEndian.AppendUint32(prefix[:len(prefix):len(prefix)], n), nil))
	}
}
