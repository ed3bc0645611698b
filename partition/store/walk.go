package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Place is a position in a table: the key of a row without its prefix. nil is the start of
// the table. Places sort like rows.
type Place []byte

// Next returns the first place after p.
func (p Place) Next() Place { return append(bytes.Clone(p), 0) }

// Visit controls how a walk continues after a row: with the next row, with the first row at
// or after To, or not at all.
type Visit struct {
	To   Place
	Stop bool
}

// walker reads the rows of one table in order.
type walker struct {
	reader reader
	it     *pebble.Iterator
	prefix []byte
	ok     bool
	value  []byte // value of the row, set by load
	err    error  // error of load
}

// walker returns a walker over the rows [from, upto) of a table; a nil upto is the end of the
// table.
func (v *View) walker(table byte, from, upto Place) (*walker, error) {
	if v.err != nil {
		return nil, v.err
	}
	w := &walker{reader: v.reader, prefix: v.space.table(nil, table)}
	upper := after(w.prefix)
	if upto != nil {
		upper = append(bytes.Clone(w.prefix), upto...)
	}
	var err error
	if w.it, err = v.reader.scan(append(bytes.Clone(w.prefix), from...), upper); err != nil {
		return nil, err
	}
	w.ok = w.it.First()
	return w, nil
}

func (w *walker) at() Place { return w.it.Key()[prefixLen:] }

// load reads the value, joining chunks. It returns false on failure.
func (w *walker) load() bool {
	w.value, _, w.err = w.reader.whole(w.it.Key(), w.it.Value())
	return w.err == nil
}

// advance moves to the row that v selects. It returns false if v stops the walk.
func (w *walker) advance(v Visit) bool {
	switch {
	case v.Stop:
		return false
	case v.To != nil:
		w.ok = w.it.SeekGE(append(bytes.Clone(w.prefix), v.To...))
	default:
		w.ok = w.it.Next()
	}
	return true
}

func (w *walker) close(err error) error {
	if err != nil && w.ok {
		err = fmt.Errorf("row %x: %w: %w", w.it.Key(), ErrDamaged, err)
	}
	return errors.Join(err, w.err, w.it.Error(), w.it.Close())
}

// walk calls visit for the rows [from, upto) of a table.
func (v *View) walk(table byte, from, upto Place, visit func(w *walker) (Visit, error)) error {
	w, err := v.walker(table, from, upto)
	if err != nil {
		return err
	}
	for w.ok && err == nil && w.load() {
		var next Visit
		if next, err = visit(w); err == nil && !w.advance(next) {
			break
		}
	}
	return w.close(err)
}

// Statuses selects invocations: those that have not completed, those that have, or both.
type Statuses struct{ Live, Completed bool }

// WalkRecords visits the selected invocations [from, upto) ordered by ID. Both slices are valid during the call only. A walk that is continued with another
// view visits each invocation that existed throughout exactly once, even if it completed in
// between.
func (v *View) WalkRecords(from, upto Place, of Statuses, visit func(at Place, record []byte) (Visit, error)) error {
	var walkers []*walker
	for _, t := range []struct {
		table  byte
		wanted bool
	}{{tableLive, of.Live}, {tableDone, of.Completed}} {
		if !t.wanted {
			continue
		}
		w, err := v.walker(t.table, from, upto)
		if err != nil {
			return closeWalkers(walkers, err)
		}
		walkers = append(walkers, w)
	}
	for {
		w := first(walkers)
		if w == nil || !w.load() {
			return closeWalkers(walkers, nil)
		}
		next, err := visit(w.at(), w.value)
		if err != nil || next.Stop {
			return closeWalkers(walkers, err)
		}
		w.advance(next)
	}
}

// first returns the walker with the smallest row, nil if all are at the end.
func first(walkers []*walker) (least *walker) {
	for _, w := range walkers {
		if w.ok && (least == nil || bytes.Compare(w.at(), least.at()) < 0) {
			least = w
		}
	}
	return least
}

func closeWalkers(walkers []*walker, err error) error {
	errs := []error{err}
	for _, w := range walkers {
		errs = append(errs, w.close(nil))
	}
	return errors.Join(errs...)
}

// WalkEntries visits journal entries ordered by invocation and index. The entry is valid
// during the call only.
func (v *View) WalkEntries(from, upto Place, visit func(at Place, id ids.Invocation, index uint32, e journal.Entry) (Visit, error)) error {
	return v.walk(tableJournal, from, upto, func(w *walker) (Visit, error) {
		at := w.at()
		if len(at) != idLen+4 {
			return Visit{}, errKey
		}
		e, err := codec.DecodeEntry(w.value)
		if err != nil {
			return Visit{}, err
		}
		return visit(at, ids.Invocation(at[:idLen]), binary.BigEndian.Uint32(at[idLen:]), e)
	})
}

// JournalPlace returns the start of the journal of an invocation.
func JournalPlace(id ids.Invocation) Place { return bytes.Clone(id[:]) }

// JournalEnd returns the first place after the journal of an invocation.
func JournalEnd(id ids.Invocation) Place { return append(JournalPlace(id), 0xff, 0xff, 0xff, 0xff, 0) }

// ObjectPlace returns the start of the rows of an object.
func ObjectPlace(o machine.Object) Place {
	return appendPart(appendPart(appendPart(nil, o.Scope), o.Service), o.Key)
}

// AfterObject returns the first place after the rows of an object.
func AfterObject(o machine.Object) Place { return after(ObjectPlace(o)) }

// ServicePlace returns the start of the objects of a service in a scope.
func ServicePlace(scope, service string) Place {
	return appendPart(appendPart(nil, scope), service)
}

// AfterScope returns the first place after the objects of a scope.
func AfterScope(scope string) Place { return after(appendPart(nil, scope)) }

// AfterService returns the first place after the objects of a service in a scope.
func AfterService(scope, service string) Place {
	return after(appendPart(appendPart(nil, scope), service))
}

// walkObjects visits the rows of a table keyed by object; rest is what follows the object in
// the key.
func (v *View) walkObjects(table byte, from Place, visit func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error)) error {
	return v.walk(table, from, nil, func(w *walker) (Visit, error) {
		o, rest, ok := objectOf(w.at())
		if !ok {
			return Visit{}, errKey
		}
		return visit(w.at(), o, rest, w)
	})
}

// WalkValues visits the state of all objects, ordered by scope, service, key and state key.
// Key and value are valid during the call only.
func (v *View) WalkValues(from Place, visit func(at Place, o machine.Object, key, value []byte) (Visit, error)) error {
	return v.walkObjects(tableValues, from, func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error) {
		return visit(at, o, rest, w.value)
	})
}

// WalkPromises visits the promises of all workflows. visit owns the promise.
func (v *View) WalkPromises(from Place, visit func(at Place, p WorkflowPromise) (Visit, error)) error {
	return v.walkObjects(tablePromises, from, func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error) {
		promise, err := promiseOf(w.it.Key(), bytes.Clone(w.value))
		if err != nil {
			return Visit{}, err
		}
		return visit(at, WorkflowPromise{o, machine.NamedPromise{Key: string(rest), Promise: promise}})
	})
}

// WalkLocks visits the locks that are held or have a queue.
func (v *View) WalkLocks(from Place, visit func(at Place, o machine.Object, l machine.Lock) (Visit, error)) error {
	return v.walkObjects(tableLocks, from, func(at Place, o machine.Object, _ []byte, w *walker) (Visit, error) {
		l, err := lockOf(w.it.Key(), w.value)
		if err != nil {
			return Visit{}, err
		}
		return visit(at, o, l)
	})
}

// WalkWaiting visits the invocations in lock queues, those of an object in queue order.
func (v *View) WalkWaiting(from Place, visit func(at Place, o machine.Object, seq uint64, id ids.Invocation) (Visit, error)) error {
	return v.walkObjects(tableWaiting, from, func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error) {
		id, err := waitingID(w.it.Key(), w.value)
		if err != nil || len(rest) != 8 {
			return Visit{}, errors.Join(err, errKey)
		}
		return visit(at, o, binary.BigEndian.Uint64(rest), id)
	})
}

// WalkVQueues visits the vqueues of flow control in key order.
func (v *View) WalkVQueues(from Place, visit func(at Place, q NamedVQueue) (Visit, error)) error {
	return v.walk(tableVQueues, from, nil, func(w *walker) (Visit, error) {
		k, err := vqueueOf(w.it.Key())
		if err != nil {
			return Visit{}, err
		}
		q, err := codec.DecodeVQueue(bytes.Clone(w.value))
		if err != nil {
			return Visit{}, err
		}
		return visit(w.at(), NamedVQueue{k, q})
	})
}

// WalkCounters visits the counters of flow control in key order.
func (v *View) WalkCounters(from Place, visit func(at Place, c flowcontrol.NamedCounter) (Visit, error)) error {
	return v.walk(tableCounters, from, nil, func(w *walker) (Visit, error) {
		k, _, err := limitOf(w.it.Key())
		if err != nil {
			return Visit{}, err
		}
		c, err := codec.DecodeCounter(bytes.Clone(w.value))
		if err != nil {
			return Visit{}, err
		}
		return visit(w.at(), flowcontrol.NamedCounter{Key: k, Counter: c})
	})
}
