package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// reader is a consistent picture of the database: one Pebble iterator, which other
// iterators are cloned from. Single rows are read with it as well, and not with
// Pebble's Get, which does not ask the bloom filters of the lowest level: most rows
// that commands look for do not exist, and Get would read a block for each (2 µs
// against 25 µs).
type reader struct{ it *pebble.Iterator }

func newReader(db *pebble.DB) (reader, error) {
	it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return reader{}, fmt.Errorf("open iterator: %w", err)
	}
	return reader{it}, nil
}

func (r reader) close() error { return r.it.Close() }

// row returns a copy of a row, nil if there is none. An empty row is not nil.
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

// size is the length of a row, 0 if there is none. It does not read values in pieces.
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

// scan is an iterator over the keys from lower on and before upper, of the same
// picture. The caller closes it.
func (r reader) scan(lower, upper []byte) (*pebble.Iterator, error) {
	it, err := r.it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{
		LowerBound: lower, UpperBound: upper, UseL6Filters: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("open iterator: %w", err)
	}
	return it, nil
}

// owned calls visit for the rows of an owner, whose prefix of the keys that is,
// until it returns false. Both slices are valid during the call only, in which r
// must not be used, unless own says that the value is a copy. An owner without rows
// mostly costs a look at a bloom filter.
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

// each calls visit for every row from lower on and before upper, until it returns
// false or an error. The key is valid during the call only, the value is a copy.
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
