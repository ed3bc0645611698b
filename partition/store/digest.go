package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"
)

// Digest is the digest of a range of rows. Replicas that have applied the same log have the
// same digests.
type Digest struct {
	Rows  uint64
	Bytes uint64 // of keys and values
	Next  []byte // first key after the range, without partition and generation; nil at the end
	Sum   [16]byte
}

// Digest computes the digest of the rows from a key on, up to the limits but at least of one
// row. It covers keys and logical values, independently of generation and chunking.
func (e *Export) Digest(ctx context.Context, from []byte, maxRows, maxBytes uint64) (Digest, error) {
	var d Digest
	hash := xxh3.New()
	var lengths [2 * binary.MaxVarintLen64]byte
	err := e.stored(ctx, from, func(key, stored []byte) (bool, error) {
		if d.Rows > 0 && (d.Rows >= maxRows || d.Bytes >= maxBytes) {
			d.Next = bytes.Clone(key[prefixLen-1:])
			return false, nil
		}
		row := key[prefixLen-1:]
		size := len(stored)
		st, inChunks, err := stubOf(key, stored)
		if err != nil {
			return false, err
		}
		if inChunks {
			size = st.size
		}
		n := binary.PutUvarint(lengths[:], uint64(len(row)))
		n += binary.PutUvarint(lengths[n:], uint64(size))
		_, _ = hash.Write(lengths[:n])
		_, _ = hash.Write(row)
		d.Rows++
		d.Bytes += uint64(len(row) + size)
		if !inChunks {
			_, _ = hash.Write(stored)
			return true, nil
		}
		return true, e.view.reader.copyChunks(hash, key, st)
	})
	if err != nil {
		return Digest{}, fmt.Errorf("digest: %w", err)
	}
	d.Sum = hash.Sum128().Bytes()
	return d, nil
}

// stubOf decodes the stub stored in place of a value in chunks.
func stubOf(key, stored []byte) (st stub, inChunks bool, err error) {
	if !isStub(stored) || !chunkable(key[prefixLen-1]) {
		return stub{}, false, nil
	}
	st, err = readStub(stored)
	return st, true, err
}

// copyChunks writes the chunks of the row at key to w, one at a time.
func (r reader) copyChunks(w io.Writer, key []byte, st stub) error {
	lower := space{binary.BigEndian.Uint16(key), key[2]}.chunksOf(key, st.index)
	it, err := r.scan(lower, after(lower))
	if err != nil {
		return err
	}
	size := 0
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		n := 0
		n, err = w.Write(it.Value())
		size += n
	}
	if err = errors.Join(err, it.Error(), it.Close()); err == nil && size != st.size {
		err = fmt.Errorf("row %x: %w: chunks have %d bytes, expected %d", key, ErrDamaged, size, st.size)
	}
	return err
}

// Rows calls visit for the rows from a key on, in key order, until visit returns false or an
// error. Keys omit partition and generation; chunked values are joined. The slices are valid
// during the call only.
func (e *Export) Rows(ctx context.Context, from []byte, visit func(key, value []byte) (bool, error)) error {
	return e.stored(ctx, from, func(key, stored []byte) (bool, error) {
		value, _, err := e.view.reader.whole(key, stored)
		if err != nil {
			return false, err
		}
		return visit(key[prefixLen-1:], value)
	})
}

// stored is like Rows with keys and values as stored, skipping chunks.
func (e *Export) stored(ctx context.Context, from []byte, visit func(key, stored []byte) (bool, error)) error {
	lower, upper := e.view.space.bounds()
	it, err := e.view.reader.scan(append(lower, from...), upper)
	if err != nil {
		return err
	}
	more := true
	for ok := it.First(); ok && more; {
		if it.Key()[prefixLen-1] == tableChunks {
			ok = it.SeekGE(after(it.Key()[:prefixLen]))
			continue
		}
		if err = ctx.Err(); err != nil {
			break
		}
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			break
		}
		if more, err = visit(it.Key(), value); err != nil {
			break
		}
		ok = more && it.Next()
	}
	return errors.Join(err, it.Error(), it.Close())
}
