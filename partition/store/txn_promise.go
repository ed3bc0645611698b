package store

import (
	"iter"

	"platform/partition/codec"
	"platform/partition/machine"
)

// Promises share the write set of an object's state values: both are byte rows keyed by
// their owner.

func (t *Txn) promiseKey(o *machine.Object, key string) []byte {
	return t.space.promise(t.keys.room(objectLen(o)+len(key)), o, key)
}

// Promise implements machine.State.
func (t *Txn) Promise(o machine.Object, key string) (machine.Promise, error) {
	k := t.promiseKey(&o, key)
	if r := t.values.find(k); r != nil {
		return promiseOf(k, r.value)
	}
	b, err := t.stored(k)
	if err != nil {
		return machine.Promise{}, err
	}
	return promiseOf(k, b)
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
	k, b := t.keys.keep(t.promiseKey(&o, key)), codec.AppendPromise(nil, p)
	t.bytes += len(b)
	t.values.put(k, b)
}

// DeletePromise implements machine.State.
func (t *Txn) DeletePromise(o machine.Object, key string) {
	t.values.remove(t.keys.keep(t.promiseKey(&o, key)))
}

// Promises implements machine.State. Writes during the iteration are not visible to it.
func (t *Txn) Promises(o machine.Object) iter.Seq2[machine.NamedPromise, error] {
	return func(yield func(machine.NamedPromise, error) bool) {
		for e, err := range t.owned(t.space.object(nil, tablePromises, &o), t.committedEntry) {
			var p machine.NamedPromise
			if err == nil {
				p.Key = string(e.Key)
				p.Promise, err = promiseOf(e.Key, e.Value)
			}
			if !yield(p, err) {
				return
			}
		}
	}
}
