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

// Place is where a walk over a table is: what follows the prefix in a row's key. nil
// is before the first row. Places sort like rows.
type Place []byte

// Next is the first place behind p.
func (p Place) Next() Place { return append(bytes.Clone(p), 0) }

// Visit decides how a walk goes on after a row: with the next one, with the first one
// from To on, or not at all.
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
	value  []byte // of the row, once load was called for it
	err    error  // of load
}

// walker starts at the first row from a place on; upto is the first place that is not
// read any more, nil for the end of the table.
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

// load reads the value, which may be in pieces; false if that fails.
func (w *walker) load() bool {
	w.value, _, w.err = w.reader.whole(w.it.Key(), w.it.Value())
	return w.err == nil
}

// advance moves on as a visitor said; false if that is not at all.
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

// walk calls visit for the rows of a table, with their values.
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

// WalkRecords visits the invocations from a place on and before upto in the order of
// their ids: the live ones, the completed ones or both. Both slices are valid during
// the call only. A walk that goes on with another view meets each invocation that was
// there all the time exactly once, whatever became of it in between.
func (v *View) WalkRecords(from, upto Place, live, completed bool, visit func(at Place, record []byte) (Visit, error)) error {
	var walkers []*walker
	for _, t := range []struct {
		table  byte
		wanted bool
	}{{tableLive, live}, {tableDone, completed}} {
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

// first is the walker whose row comes next, nil if there are no more.
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

// WalkEntries visits the entries of journals in the order of invocation and index. The
// entry is valid during the call only.
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

// JournalPlace is where the journal of an invocation begins.
func JournalPlace(id ids.Invocation) Place { return bytes.Clone(id[:]) }

// JournalEnd is the first place behind the journal of an invocation.
func JournalEnd(id ids.Invocation) Place { return append(JournalPlace(id), 0xff, 0xff, 0xff, 0xff, 0) }

// ObjectPlace is where the rows of an object begin.
func ObjectPlace(o machine.Object) Place {
	return appendPart(appendPart(appendPart(nil, o.Scope), o.Service), o.Key)
}

// ServicePlace is where the objects of a service in a scope begin.
func ServicePlace(scope, service string) Place {
	return appendPart(appendPart(nil, scope), service)
}

// AfterScope is the first place behind the objects of a scope.
func AfterScope(scope string) Place { return after(appendPart(nil, scope)) }

// AfterService is the first place behind the objects of a service in a scope.
func AfterService(scope, service string) Place {
	return after(appendPart(appendPart(nil, scope), service))
}

// walkObjects visits rows that belong to objects, with what follows the object in
// their keys.
func (v *View) walkObjects(table byte, from Place, visit func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error)) error {
	return v.walk(table, from, nil, func(w *walker) (Visit, error) {
		o, rest, ok := objectOf(w.at())
		if !ok {
			return Visit{}, errKey
		}
		return visit(w.at(), o, rest, w)
	})
}

// WalkValues visits the state of all objects, in the order of scope, service, key and
// state key. Key and value are valid during the call only.
func (v *View) WalkValues(from Place, visit func(at Place, o machine.Object, key, value []byte) (Visit, error)) error {
	return v.walkObjects(tableValues, from, func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error) {
		return visit(at, o, rest, w.value)
	})
}

// WalkPromises visits the promises of all workflows. The promise is the caller's.
func (v *View) WalkPromises(from Place, visit func(at Place, p WorkflowPromise) (Visit, error)) error {
	return v.walkObjects(tablePromises, from, func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error) {
		promise, err := promiseOf(w.it.Key(), bytes.Clone(w.value))
		if err != nil {
			return Visit{}, err
		}
		return visit(at, WorkflowPromise{o, machine.NamedPromise{Key: string(rest), Promise: promise}})
	})
}

// WalkLocks visits the objects that are held or waited for.
func (v *View) WalkLocks(from Place, visit func(at Place, o machine.Object, l machine.Lock) (Visit, error)) error {
	return v.walkObjects(tableLocks, from, func(at Place, o machine.Object, _ []byte, w *walker) (Visit, error) {
		l, err := lockOf(w.it.Key(), w.value)
		if err != nil {
			return Visit{}, err
		}
		return visit(at, o, l)
	})
}

// WalkWaiting visits the invocations that wait for objects, those of an object in the
// order of their turns.
func (v *View) WalkWaiting(from Place, visit func(at Place, o machine.Object, seq uint64, id ids.Invocation) (Visit, error)) error {
	return v.walkObjects(tableWaiting, from, func(at Place, o machine.Object, rest []byte, w *walker) (Visit, error) {
		id, err := waitingID(w.it.Key(), w.value)
		if err != nil || len(rest) != 8 {
			return Visit{}, errors.Join(err, errKey)
		}
		return visit(at, o, binary.BigEndian.Uint64(rest), id)
	})
}

// WalkVQueues visits the vqueues of flow control, in the order of their keys.
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

// WalkCounters visits the counters of flow control, in the order of their keys.
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
