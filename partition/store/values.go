package store

import (
	"bytes"

	"platform/partition/machine"
)

// Values is View.Values as of the last commit. It reads the rows that commits have collected
// where they are, instead of having them written first: each attempt of an object reads its
// state, and each version of a value that was written is one more to step over. The values must
// not be modified.
func (p *Partition) Values(o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	if err := p.db.enter(); err != nil {
		return nil, false, err
	}
	defer p.db.views.Done()
	rows, err := p.objectRows(&o)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if closed := rows.close(); err == nil {
			err = closed
		}
	}()
	return rows.values(limit)
}

// objectRows are the rows of an object's state.
type objectRows struct {
	prefix  []byte               // of their keys
	written []row[[]byte]        // collected, in key order; they replace those in the database
	stored  []machine.StateEntry // in the database, if known
	reader  reader               // reads those in the database; nil if they are known or all deleted
	known   knownAt              // where to record what is read
}

// objectRows returns the rows of an object's state. The caller closes them.
func (p *Partition) objectRows(o *machine.Object) (rows objectRows, err error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.failed != nil && p.collected.Load() { // the rows were discarded
		return rows, p.failed
	}
	rows.prefix = p.space.object(make([]byte, 0, objectLen(o)), tableValues, o)
	rows.written = p.txn.values.owned(rows.prefix)
	for i := range rows.written {
		rows.written[i].key = bytes.Clone(rows.written[i].key) // that of the set is reused
	}
	if p.txn.inDeletedRange(rows.prefix) {
		return rows, nil
	}
	var found bool
	if rows.stored, rows.known, found = p.known.get(rows.prefix); found {
		return rows, nil
	}
	rows.reader, err = newReader(p.db.pebble)
	return rows, err
}

func (o *objectRows) close() error {
	if o.reader.it == nil {
		return nil
	}
	return o.reader.close()
}

// values returns the state in key order, up to limit bytes of keys and values; complete reports
// whether that is the entire state.
func (o *objectRows) values(limit int) (entries []machine.StateEntry, complete bool, err error) {
	complete = true
	add := func(e machine.StateEntry) {
		limit -= len(e.Key) + len(e.Value)
		if complete = complete && limit >= 0; complete {
			entries = append(entries, e)
		}
	}
	addWritten := func() {
		w := o.written[0]
		o.written = o.written[1:]
		if !w.deleted {
			add(machine.StateEntry{Key: w.key[len(o.prefix):], Value: w.value})
		}
	}
	err = o.eachStored(func(e machine.StateEntry) bool {
		order := 1
		for complete && order > 0 && len(o.written) > 0 {
			if order = bytes.Compare(e.Key, o.written[0].key[len(o.prefix):]); order >= 0 {
				addWritten()
			}
		}
		if order != 0 {
			add(e)
		}
		return complete
	})
	for complete && len(o.written) > 0 {
		addWritten()
	}
	return entries, complete, err
}

// eachStored calls visit for the rows in the database in key order, until it returns false.
func (o *objectRows) eachStored(visit func(machine.StateEntry) bool) error {
	for _, e := range o.stored {
		if !visit(e) {
			return nil
		}
	}
	if o.reader.it == nil {
		return nil
	}
	var read []machine.StateEntry
	size, all := knownSize(o.prefix), true
	err := o.reader.owned(o.prefix, func(key, value []byte, own bool) bool {
		e := stateEntry(o.prefix, key, value, own)
		if size += entrySize(&e); size <= maxKnown {
			read = append(read, e)
		} else {
			read = nil // most of it may have been replaced by rows that are not in the database yet
		}
		all = visit(e)
		return all
	})
	if err == nil && all {
		o.known.put(o.prefix, read, size)
	}
	return err
}
