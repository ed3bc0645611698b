package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"
)

// Digest is the digest of some rows. Replicas that have applied the same log have the
// same rows, and so the same digests.
type Digest struct {
	Rows  uint64
	Bytes uint64 // of keys and values
	Next  []byte // first key behind the rows, without partition and generation; nil: there is none
	Sum   [16]byte
}

// Digest takes the digest of the rows from a key on, as many as the limits allow but
// at least one. It covers keys and whole values, not how the node stores them: in
// which generation they are, and whether a value is in pieces.
func (e *Export) Digest(ctx context.Context, from []byte, maxRows, maxBytes uint64) (Digest, error) {
	lower, upper := e.view.space.bounds()
	begin := len(lower)
	it, err := e.view.reader.scan(append(lower, from...), upper)
	if err != nil {
		return Digest{}, fmt.Errorf("digest: %w", err)
	}
	var d Digest
	hash := xxh3.New()
	var lengths [2 * binary.MaxVarintLen64]byte
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if key[prefixLen-1] == tablePieces { // parts of other rows' values
			ok = it.SeekGE(after(key[:prefixLen]))
			if !ok {
				break
			}
			key = it.Key()
		}
		if d.Rows > 0 && (d.Rows >= maxRows || d.Bytes >= maxBytes) {
			d.Next = bytes.Clone(key[begin:])
			break
		}
		if err = ctx.Err(); err != nil {
			break
		}
		var value []byte
		if value, err = it.ValueAndErr(); err != nil {
			break
		}
		if value, _, err = e.view.reader.whole(key, value); err != nil {
			break
		}
		n := binary.PutUvarint(lengths[:], uint64(len(key)-begin))
		n += binary.PutUvarint(lengths[n:], uint64(len(value)))
		_, _ = hash.Write(lengths[:n])
		_, _ = hash.Write(key[begin:])
		_, _ = hash.Write(value)
		d.Rows++
		d.Bytes += uint64(len(key) - begin + len(value))
	}
	d.Sum = hash.Sum128().Bytes()
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return Digest{}, fmt.Errorf("digest: %w", err)
	}
	return d, nil
}
