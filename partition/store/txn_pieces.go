package store

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// put writes a row whose value is the concatenation of parts.
func (t *Txn) put(key []byte, parts ...[]byte) {
	t.dropPieces(key)
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size > 0 && (size >= t.p.db.opts.LargeRowBytes || isStub(parts[0])) && cuttable(key[prefixLen-1]) {
		t.putPieces(key, parts, size)
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

// putPieces commits the chunks of the concatenated parts and writes the stub.
func (t *Txn) putPieces(key []byte, parts [][]byte, size int) {
	st := stub{t.index, size}
	prefix := t.space.piecesOf(key, st.index)
	most := min(maxPiece, t.p.db.opts.LargeRowBytes)
	b := t.p.db.pebble.NewBatchWithSize(min(size, pieceBatch) + 2*maxPiece)
	defer b.Close()
	number := uint32(0)
	for ; size > 0 && t.err == nil; number++ {
		op := b.SetDeferred(len(prefix)+4, min(size, most))
		binary.BigEndian.PutUint32(op.Key[copy(op.Key, prefix):], number)
		size -= len(op.Value)
		parts = fillFrom(op.Value, parts)
		t.fail(op.Finish())
		if b.Len() >= pieceBatch || size == 0 {
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
	t.dropPieces(key)
	t.fail(t.batch.Delete(key, nil))
}

func (t *Txn) deleteRange(r keyRange) {
	t.fail(t.batch.DeleteRange(r.lower, r.upper, nil))
	if len(t.p.large.rows) == 0 {
		return
	}
	for _, row := range t.p.large.takeRange(asString(r.lower[prefixLen-1:]), asString(r.upper[prefixLen-1:])) {
		t.deletePieces(append(r.lower[:prefixLen-1:prefixLen-1], row.key...), row)
	}
}

// dropPieces deletes the chunks of a row that is deleted or overwritten.
func (t *Txn) dropPieces(key []byte) {
	if len(t.p.large.rows) == 0 {
		return
	}
	if row, found := t.p.large.take(asString(key[prefixLen-1:])); found {
		t.deletePieces(key, row)
	}
}

// deletePieces deletes the chunks of the row at key.
func (t *Txn) deletePieces(key []byte, row largeRow) {
	prefix := t.space.piecesOf(key, row.index)
	if row.pieces > manyRows {
		t.fail(t.batch.DeleteRange(prefix, after(prefix), nil))
		return
	}
	for n := range row.pieces {
		t.fail(t.batch.Delete(binary.BigEndian.AppendUint32(prefix[:len(prefix):len(prefix)], n), nil))
	}
}
