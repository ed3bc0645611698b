package store

import (
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"platform/partition/codec"
	"platform/partition/machine"
)

// promise is a promise that the transaction has read or written, decoded: one handler may access
// it thousands of times in a log entry, and it may have as many waiters, or a large result.
type promise struct {
	machine.Promise
	written bool
}

func (t *Txn) promiseKey(o *machine.Object, key string) []byte {
	return t.space.promise(t.keys.room(objectLen(o)+len(key)), o, key)
}

// Promise implements machine.State.
func (t *Txn) Promise(o machine.Object, key string) (machine.Promise, error) {
	k := t.promiseKey(&o, key)
	if r := t.promises.find(k); r != nil {
		return r.value.Promise, nil
	}
	b, err := t.stored(k)
	if err != nil {
		return machine.Promise{}, err
	}
	p, err := promiseOf(k, b)
	if err == nil {
		t.Hold(len(b))
		t.promises.write(row[promise]{key: t.keys.keep(t.promiseKey(&o, key)), value: promise{Promise: p}, deleted: b == nil})
	}
	return p, err
}

// promiseOf decodes a promise; the zero Promise if there is no row.
func promiseOf(key, b []byte) (machine.Promise, error) {
	if len(b) == 0 {
		return machine.Promise{}, nil
	}
	p, err := codec.DecodePromise(b)
	return decoded(key, p, err)
}

// PutPromise implements machine.State.
func (t *Txn) PutPromise(o machine.Object, key string, p machine.Promise) {
	t.bytes += sinkBytes * len(p.Waiting)
	if p.Result != nil {
		t.bytes += len(p.Result.Value)
	}
	t.promises.put(t.keys.keep(t.promiseKey(&o, key)), promise{p, true})
}

// DeletePromise implements machine.State.
func (t *Txn) DeletePromise(o machine.Object, key string) {
	t.promises.write(row[promise]{key: t.keys.keep(t.promiseKey(&o, key)), value: promise{written: true}, deleted: true})
}

// Promises implements machine.State. Writes during the iteration are not visible to it.
func (t *Txn) Promises(o machine.Object) iter.Seq2[machine.NamedPromise, error] {
	return func(yield func(machine.NamedPromise, error) bool) {
		for r, err := range owned(t, &t.promises, t.space.object(nil, tablePromises, &o), t.committedPromise) {
			if !yield(machine.NamedPromise{Key: string(r.key), Promise: r.value.Promise}, err) {
				return
			}
		}
	}
}

// committedPromise decodes the row of an iterator.
func (t *Txn) committedPromise(prefix []byte, it *pebble.Iterator) (row[promise], error) {
	e, err := t.committedEntry(prefix, it)
	if err != nil {
		return row[promise]{}, err
	}
	p, err := promiseOf(it.Key(), e.value)
	return row[promise]{key: e.key, value: promise{Promise: p}}, err
}

func (t *Txn) fillPromises() {
	for i := range t.promises.rows {
		switch r := &t.promises.rows[i]; {
		case !r.value.written:
		case r.deleted:
			t.delete(r.key)
		default:
			t.set(r.key, codec.AppendPromise(t.scratch[:0], r.value.Promise))
		}
	}
}
