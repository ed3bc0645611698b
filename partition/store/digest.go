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
	var d Digest
	hash := xxh3.New()
	var lengths [2 * binary.MaxVarintLen64]byte
	err := e.Rows(ctx, from, func(key, value []byte) (bool, error) {
		if d.Rows > 0 && (d.Rows >= maxRows || d.Bytes >= maxBytes) {
			d.Next = bytes.Clone(key)
			return false, nil
		}
		n := binary.PutUvarint(lengths[:], uint64(len(key)))
		n += binary.PutUvarint(lengths[n:], uint64(len(value)))
		_, _ = hash.Write(lengths[:n])
		_, _ = hash.Write(key)
		_, _ = hash.Write(value)
		d.Rows++
		d.Bytes += uint64(len(key) + len(value))
		return true, nil
	})
	if err != nil {
		return Digest{}, fmt.Errorf("digest: %w", err)
	}
	d.Sum = hash.Sum128().Bytes()
	return d, nil
}

// Rows calls visit for the rows from a key on, in order of the keys, until it returns
// false or an error. Keys are without partition and generation, values are whole. The
// slices are valid during the call only.
func (e *Export) Rows(ctx context.Context, from []byte, visit func(key, value []byte) (bool, error)) error {
	lower, upper := e.view.space.bounds()
	begin := len(lower)
	it, err := e.view.reader.scan(append(lower, from...), upper)
	if err != nil {
		return err
	}
	more := true
	for ok := it.First(); ok && more; {
		if it.Key()[prefixLen-1] == tablePieces { // parts of other rows' values
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
		if value, _, err = e.view.reader.whole(it.Key(), value); err != nil {
			break
		}
		if more, err = visit(it.Key()[begin:], value); err != nil {
			break
		}
		ok = more && it.Next()
	}
	return errors.Join(err, it.Error(), it.Close())
}
