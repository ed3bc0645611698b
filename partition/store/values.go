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
	rows, r, err := p.objectRows(&o)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if closed := r.close(); err == nil {
			err = closed
		}
	}()
	return rows.values(r, limit)
}

// objectRows returns the collected rows of an object's state, and a reader of those in the
// database. The caller closes the reader.
func (p *Partition) objectRows(o *machine.Object) (rows objectRows, r reader, err error) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if p.failed != nil && p.collected.Load() { // the rows were discarded
		return rows, r, p.failed
	}
	rows.prefix = p.space.object(make([]byte, 0, objectLen(o)), tableValues, o)
	rows.replaced = p.txn.inDeletedRange(rows.prefix)
	rows.written = p.txn.writtenValues(rows.prefix)
	for i := range rows.written {
		rows.written[i].key = bytes.Clone(rows.written[i].key) // that of the set is reused
	}
	r, err = newReader(p.db.pebble)
	return rows, r, err
}

// objectRows are the rows of an object's state.
type objectRows struct {
	prefix   []byte        // of their keys
	written  []row[[]byte] // in key order; they replace those in the database
	replaced bool          // none of those in the database exists anymore
}

// values returns the state in key order, up to limit bytes of keys and values; complete reports
// whether that is the entire state.
func (o *objectRows) values(r reader, limit int) (entries []machine.StateEntry, complete bool, err error) {
	complete = true
	fits := func(key, value []byte) bool {
		limit -= len(key) - len(o.prefix) + len(value)
		complete = limit >= 0
		return complete
	}
	// addWritten adds the written rows up to a key, and reports whether it is one of them.
	addWritten := func(key []byte) (found bool) {
		for complete && !found && len(o.written) > 0 {
			w := o.written[0]
			order := bytes.Compare(w.key, key)
			if order > 0 {
				return false
			}
			if !w.deleted && fits(w.key, w.value) {
				entries = append(entries, machine.StateEntry{Key: w.key[len(o.prefix):], Value: w.value})
			}
			o.written = o.written[1:]
			found = order == 0
		}
		return found
	}
	if !o.replaced {
		err = r.owned(o.prefix, func(key, value []byte, own bool) bool {
			if !addWritten(key) && complete && fits(key, value) {
				entries = append(entries, stateEntry(o.prefix, key, value, own))
			}
			return complete
		})
	}
	addWritten(after(o.prefix))
	return entries, complete, err
}
