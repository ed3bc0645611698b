package store

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/machine"
)

// objectLen returns a lower bound of the length of the key of an object's row.
func objectLen(o *machine.Object) int {
	return prefixLen + 8 + len(o.Scope) + len(o.Service) + len(o.Key)
}

func (t *Txn) valueKey(o *machine.Object, key []byte) []byte {
	return t.space.value(t.keys.room(objectLen(o)+len(key)), o, key)
}

// Value implements machine.State.
func (t *Txn) Value(o machine.Object, key []byte) (value []byte, found bool, err error) {
	k := t.valueKey(&o, key)
	if r := t.values.find(k); r != nil {
		return r.value, !r.deleted, nil
	}
	value, err = t.stored(k)
	return value, value != nil, err
}

// PutValue implements machine.State.
func (t *Txn) PutValue(o machine.Object, key, value []byte) {
	k := t.keys.keep(t.valueKey(&o, key))
	t.bytes += len(value)
	t.values.put(k, value)
}

// DeleteValue implements machine.State.
func (t *Txn) DeleteValue(o machine.Object, key []byte) {
	t.values.remove(t.keys.keep(t.valueKey(&o, key)))
}

// DeleteValues implements machine.State.
func (t *Txn) DeleteValues(o machine.Object) {
	t.deletePrefix(&t.values, t.space.object(nil, tableValues, &o))
}

// Values implements machine.State. Writes during the iteration are not visible to it.
func (t *Txn) Values(o machine.Object) iter.Seq2[machine.StateEntry, error] {
	return func(yield func(machine.StateEntry, error) bool) {
		for r, err := range owned(t, &t.values, t.space.object(nil, tableValues, &o), t.committedEntry) {
			if !yield(machine.StateEntry{Key: r.key, Value: r.value}, err) {
				return
			}
		}
	}
}

// Keys implements machine.State. Writes during the iteration are not visible to it.
func (t *Txn) Keys(o machine.Object) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r, err := range owned(t, &t.values, t.space.object(nil, tableValues, &o), committedKey) {
			if !yield(r.key, err) {
				return
			}
		}
	}
}

// committedEntry copies the row of an iterator.
func (t *Txn) committedEntry(prefix []byte, it *pebble.Iterator) (row[[]byte], error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return row[[]byte]{}, err
	}
	value, own, err := t.reader.whole(it.Key(), value)
	if err != nil {
		return row[[]byte]{}, err
	}
	e := stateEntry(prefix, it.Key(), value, own)
	return row[[]byte]{key: e.Key, value: e.Value}, nil
}

// committedKey copies the key of the row of an iterator.
func committedKey(prefix []byte, it *pebble.Iterator) (row[[]byte], error) {
	return row[[]byte]{key: bytes.Clone(it.Key()[len(prefix):])}, nil
}

// owned yields the rows of an object in one table, merging those in w with committed ones,
// which read copies. Keys omit the prefix.
func owned[V any](t *Txn, w *writeSet[V], prefix []byte, read func(prefix []byte, it *pebble.Iterator) (row[V], error)) iter.Seq2[row[V], error] {
	return func(yield func(row[V], error) bool) {
		written := w.owned(prefix)
		it, err := t.objectScan(prefix)
		if err != nil {
			yield(row[V]{}, fmt.Errorf("read rows of an object: %w", err))
			return
		}
		defer it.Close()
		ok := !t.inDeletedRange(prefix) && it.SeekPrefixGE(prefix)
		for ok || len(written) > 0 {
			var r row[V]
			order := 1
			switch {
			case !ok:
			case len(written) == 0:
				order = -1
			default:
				order = bytes.Compare(it.Key(), written[0].key)
			}
			if order < 0 {
				if r, err = read(prefix, it); err != nil {
					yield(row[V]{}, fmt.Errorf("read rows of an object: %w", err))
					return
				}
			}
			if order <= 0 {
				ok = it.Next()
			}
			if order >= 0 {
				r, written = written[0], written[1:]
				if r.deleted {
					continue
				}
				r.key = bytes.Clone(r.key[len(prefix):])
			}
			if !yield(r, nil) {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(row[V]{}, fmt.Errorf("read rows of an object: %w", err))
		}
	}
}

func (t *Txn) objectScan(prefix []byte) (*pebble.Iterator, error) {
	r, err := t.committed()
	if err != nil {
		return nil, err
	}
	return r.scan(prefix, after(prefix))
}

// stateEntry copies a row of an iterator; the value only if the caller does not own it.
func stateEntry(prefix, key, value []byte, own bool) machine.StateEntry {
	key = key[len(prefix):]
	if own {
		return machine.StateEntry{Key: bytes.Clone(key), Value: value}
	}
	b := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
	return machine.StateEntry{Key: b[:len(key):len(key)], Value: b[len(key):]}
}

// Lock implements machine.State.
func (t *Txn) Lock(o machine.Object) (machine.Lock, error) {
	key := t.space.object(t.keys.room(objectLen(&o)), tableLocks, &o)
	if r := t.locks.find(key); r != nil {
		return r.value, nil
	}
	if l, ok := t.p.cache.locks[string(key)]; ok {
		return l, nil
	}
	b, err := t.stored(key)
	if err != nil {
		return machine.Lock{}, err
	}
	l, err := lockOf(key, b)
	if err == nil {
		t.p.cache.putLock(key, l)
	}
	return l, err
}

// lockOf decodes a lock; the zero Lock if there is no row.
func lockOf(key, b []byte) (machine.Lock, error) {
	if b == nil {
		return machine.Lock{}, nil
	}
	l, err := codec.DecodeLock(b)
	return decoded(key, l, err)
}

// PutLock implements machine.State.
func (t *Txn) PutLock(o machine.Object, l machine.Lock) {
	t.locks.put(t.keys.keep(t.space.object(t.keys.room(objectLen(&o)), tableLocks, &o)), l)
}

func (t *Txn) fillLocks() {
	for i := range t.locks.rows {
		r := &t.locks.rows[i]
		if r.value == (machine.Lock{}) {
			t.delete(r.key)
		} else {
			t.set(r.key, codec.AppendLock(t.scratch[:0], r.value))
		}
		t.p.cache.putLock(r.key, r.value)
	}
}

func (t *Txn) waitingKey(o *machine.Object, seq uint64) []byte {
	return t.space.waiting(t.keys.room(objectLen(o)+8), o, seq)
}

// FirstWaiting implements machine.State.
func (t *Txn) FirstWaiting(o machine.Object, from, before uint64) (seq uint64, id ids.Invocation, err error) {
	key := t.waitingKey(&o, from)
	seq, b, err := t.firstNumbered(key, before)
	if err != nil || b == nil {
		return 0, id, err
	}
	id, err = waitingID(key, b)
	return seq, id, err
}

func waitingID(key, b []byte) (id ids.Invocation, err error) {
	if len(b) != len(id) {
		return id, fmt.Errorf("%w: waiting invocation %x at %x", ErrDamaged, b, key)
	}
	return ids.Invocation(b), nil
}

// PutWaiting implements machine.State.
func (t *Txn) PutWaiting(o machine.Object, seq uint64, id ids.Invocation) {
	key := t.keys.keep(t.waitingKey(&o, seq))
	t.small.put(key, t.keep(id[:]))
}

// DeleteWaiting implements machine.State.
func (t *Txn) DeleteWaiting(o machine.Object, seq uint64) {
	t.small.remove(t.keys.keep(t.waitingKey(&o, seq)))
}
