package store

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"platform/partition/machine"
)

// Promise returns a promise; the zero Promise if it was neither awaited nor completed.
func (v *View) Promise(o machine.Object, key string) (machine.Promise, error) {
	k := v.space.promise(nil, &o, key)
	b, err := v.row(k)
	if err != nil {
		return machine.Promise{}, err
	}
	return promiseOf(k, b)
}

// Promises yields the promises of a workflow in key order.
func (v *View) Promises(o machine.Object) iter.Seq2[machine.NamedPromise, error] {
	return func(yield func(machine.NamedPromise, error) bool) {
		prefix := v.space.object(nil, tablePromises, &o)
		err := v.each(prefix, after(prefix), func(key, value []byte) (more bool, err error) {
			_, name, ok := objectOf(key[prefixLen:])
			if !ok {
				return false, errors.New("malformed key")
			}
			promise, err := promiseOf(key, value)
			if err != nil {
				return false, err
			}
			return yield(machine.NamedPromise{Key: string(name), Promise: promise}, nil), nil
		})
		if err != nil {
			yield(machine.NamedPromise{}, fmt.Errorf("read promises: %w", err))
		}
	}
}

// WorkflowPromise is a promise and the workflow that owns it.
type WorkflowPromise struct {
	Workflow machine.Object
	machine.NamedPromise
}

// objectOf decodes the object at the beginning of b, a key without its prefix, and returns
// what follows it.
func objectOf(b []byte) (o machine.Object, rest []byte, ok bool) {
	for _, part := range []*string{&o.Scope, &o.Service, &o.Key} {
		if *part, b, ok = cutPart(b); !ok {
			return machine.Object{}, nil, false
		}
	}
	return o, b, true
}

// cutPart decodes a part encoded by appendPart and returns what follows it.
func cutPart(b []byte) (part string, rest []byte, ok bool) {
	var found []byte
	for {
		zero := bytes.IndexByte(b, 0)
		if zero < 0 || zero+1 == len(b) {
			return "", nil, false
		}
		found = append(found, b[:zero]...)
		mark := b[zero+1]
		b = b[zero+2:]
		switch mark {
		case partEnd:
			return string(found), b, true
		case partEscape:
			found = append(found, 0)
		default:
			return "", nil, false
		}
	}
}
