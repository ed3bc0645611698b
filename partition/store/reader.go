package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// reader is a consistent snapshot of the database: one Pebble iterator, from which other
// iterators are cloned. Single rows are read with it too rather than with Get, which does
// not use the bloom filters of the lowest level: most rows that commands look up do not
// exist, and Get would read a block for each (25 µs instead of 2 µs).
type reader struct{ it *pebble.Iterator }

func newReader(db *pebble.DB) (reader, error) {
	it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return reader{}, fmt.Errorf("open iterator: %w", err)
	}
	return reader{it}, nil
}

func (r reader) close() error { return r.it.Close() }

// row returns a copy of a value, nil if the key does not exist. An empty value is not nil.
func (r reader) row(key []byte) ([]byte, error) {
	if !r.it.SeekPrefixGE(key) || !bytes.Equal(r.it.Key(), key) {
		if err := r.it.Error(); err != nil {
			return nil, fmt.Errorf("read row %x: %w", key, err)
		}
		return nil, nil
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("read row %x: %w", key, err)
	}
	return r.copied(key, value)
}

// size is the length of a row, 0 if there is none. It does not read values in chunks.
func (r reader) size(key []byte) (int, error) {
	if !r.it.SeekPrefixGE(key) || !bytes.Equal(r.it.Key(), key) {
		if err := r.it.Error(); err != nil {
			return 0, fmt.Errorf("read row %x: %w", key, err)
		}
		return 0, nil
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		return 0, fmt.Errorf("read row %x: %w", key, err)
	}
	if !isStub(value) {
		return len(value), nil
	}
	st, err := readStub(value)
	return st.size, err
}

// scan returns an iterator over the keys [lower, upper) of the same snapshot. The caller
// must close it.
func (r reader) scan(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := r.it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{
		LowerBound: lower, UpperBound: upper, UseL6Filters: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("open iterator: %w", err)
	}
	return it, nil
}

// owned calls visit for the rows of an owner, whose keys begin with prefix, until visit
// returns false. visit must not use r. Both slices are valid during the call only, except
// for the value if own is true. An owner without rows usually costs one bloom filter check.
func (r reader) owned(prefix []byte, visit func(key, value []byte, own bool) bool) error {
	for ok := r.it.SeekPrefixGE(prefix); ok; ok = r.it.Next() {
		value, err := r.it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("read rows of %x: %w", prefix, err)
		}
		value, own, err := r.whole(r.it.Key(), value)
		if err != nil {
			return err
		}
		if !visit(r.it.Key(), value, own) {
			return nil
		}
	}
	if err := r.it.Error(); err != nil {
		return fmt.Errorf("read rows of %x: %w", prefix, err)
	}
	return nil
}

// ownedSizes is like owned, with the lengths of the values instead of the values.
func (r reader) ownedSizes(prefix []byte, visit func(key []byte, size int)) error {
	for ok := r.it.SeekPrefixGE(prefix); ok; ok = r.it.Next() {
		lazy := r.it.LazyValue()
		n := lazy.Len()
		if n < maxStub {
			value, err := r.it.ValueAndErr()
			if err != nil {
				return fmt.Errorf("read rows of %x: %w", prefix, err)
			}
			if isStub(value) {
				st, err := readStub(value)
				if err != nil {
					return err
				}
				n = st.size
			}
		}
		visit(r.it.Key(), n)
	}
	if err := r.it.Error(); err != nil {
		return fmt.Errorf("read rows of %x: %w", prefix, err)
	}
	return nil
}

// ownedKeys is like owned, without reading the values.
func (r reader) ownedKeys(prefix []byte, visit func(key []byte) bool) error {
	for ok := r.it.SeekPrefixGE(prefix); ok && visit(r.it.Key()); ok = r.it.Next() {
	}
	if err := r.it.Error(); err != nil {
		return fmt.Errorf("read keys of %x: %w", prefix, err)
	}
	return nil
}

// each calls visit for the rows [lower, upper) until visit returns false or an error. The
// key is valid during the call only; the value is a copy.
func (r reader) each(lower, upper []byte, visit func(key, value []byte) (bool, error)) error {
	it, err := r.scan(lower, upper)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		var value []byte
		if value, err = r.copied(it.Key(), it.Value()); err != nil {
			break
		}
		more, visitErr := visit(it.Key(), value)
		if visitErr != nil {
			err = fmt.Errorf("row %x: %w: %w", it.Key(), ErrDamaged, visitErr)
		}
		if err != nil || !more {
			break
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}
