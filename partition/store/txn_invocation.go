package store

import (
	"bytes"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// record is an invocation that the transaction has read or written. inv is immutable;
// readers get a copy.
type record struct {
	inv     *machine.Invocation // nil if it does not exist
	stored  location
	written bool
	notes   notes
}

// location is the table in which the database has a record.
type location uint8

const (
	nowhere location = iota
	inLive
	inDone
	unknown // not looked up
)

func locationOf(inv *machine.Invocation) location {
	if inv.Status == machine.Completed {
		return inDone
	}
	return inLive
}

// Invocation implements machine.State.
func (t *Txn) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	r, known := t.invocations[id]
	if !known {
		var err error
		if r.inv, r.notes, err = t.lookup(&id); err != nil {
			return nil, err
		}
		if r.inv != nil {
			r.stored = locationOf(r.inv)
		}
		t.invocations[id] = r
	}
	if r.inv == nil {
		return nil, nil
	}
	inv := *r.inv
	return &inv, nil
}

// Absent implements machine.State.
func (t *Txn) Absent(id ids.Invocation) {
	if _, known := t.invocations[id]; !known {
		t.invocations[id] = record{notes: notes{known: true}}
	}
}

// lookup reads a record from the cache or the database.
func (t *Txn) lookup(id *ids.Invocation) (*machine.Invocation, notes, error) {
	if c, found := t.p.cache.records[*id]; found {
		t.Hold(len(c.bytes))
		inv, err := codec.DecodeInvocation(c.bytes)
		return inv, c.notes, err
	}
	r, err := t.committed()
	if err != nil {
		return nil, notes{}, err
	}
	inv, size, err := r.invocation(t.space, id)
	t.Hold(size)
	return inv, notes{}, err
}

// sinkBytes is the memory of a waiter in a record.
const sinkBytes = 40

// PutInvocation implements machine.State.
func (t *Txn) PutInvocation(inv *machine.Invocation) {
	t.bytes += len(inv.Target.Key) + len(inv.Source.CallerTarget) + sinkBytes*len(inv.Sinks)
	t.writeInvocation(inv.ID, inv)
}

// DeleteInvocation implements machine.State.
func (t *Txn) DeleteInvocation(id ids.Invocation) { t.writeInvocation(id, nil) }

func (t *Txn) writeInvocation(id ids.Invocation, inv *machine.Invocation) {
	r, known := t.invocations[id]
	if !known {
		r.stored = unknown
	}
	r.inv, r.written = inv, true
	t.invocations[id] = r
	t.changed = append(t.changed, id)
}

// fillInvocations writes the changed records to the table of their status and deletes them
// from the other one.
func (t *Txn) fillInvocations() {
	for id, r := range t.invocations {
		if !r.written {
			t.p.cache.setNotes(&id, r.notes)
			continue
		}
		target := nowhere
		if r.inv != nil {
			target = locationOf(r.inv)
		}
		if target != inLive && (r.stored == inLive || r.stored == unknown) {
			t.delete(t.recordKey(tableLive, &id))
		}
		if target != inDone && (r.stored == inDone || r.stored == unknown) {
			t.delete(t.recordKey(tableDone, &id))
		}
		switch target {
		case nowhere:
			t.p.cache.dropRecord(&id)
		case inDone:
			t.setCompleted(t.recordKey(tableDone, &id), r.inv)
			t.p.cache.dropRecord(&id)
		default:
			b := codec.AppendInvocation(t.scratch[:0], r.inv)
			t.set(t.recordKey(tableLive, &id), b)
			t.p.cache.putRecord(&id, cachedRecord{bytes.Clone(b), r.notes})
		}
	}
}

// setCompleted writes a completed record without a result that is in the journal, avoiding an
// intermediate copy of another large one.
func (t *Txn) setCompleted(key []byte, inv *machine.Invocation) {
	if inv.ResultInJournal {
		stored := *inv
		stored.Result = &journal.Result{}
		inv = &stored
	}
	if inv.Result == nil || len(inv.Result.Value) < largeEntry || inv.Result.Failure != nil {
		t.set(key, codec.AppendInvocation(t.scratch[:0], inv))
		return
	}
	head, tail := codec.AppendCompleted(t.scratch[:0], inv)
	t.put(key, head, inv.Result.Value, tail)
}

// recordKey returns a key that is valid until the next use of the arena.
func (t *Txn) recordKey(table byte, id *ids.Invocation) []byte {
	return t.space.invocation(t.keys.room(prefixLen+idLen), table, id)
}

// invocation reads an invocation, nil if it does not exist, and the size of its record.
func (r reader) invocation(s space, id *ids.Invocation) (inv *machine.Invocation, size int, err error) {
	inv, size, err = r.record(s, id)
	if err != nil || inv == nil {
		return nil, 0, err
	}
	fetched, err := r.fetchResult(s, inv)
	return inv, size + fetched, err
}

// record is invocation, but without a result that is only in the journal.
func (r reader) record(s space, id *ids.Invocation) (inv *machine.Invocation, size int, err error) {
	var buf [prefixLen + idLen]byte
	key := s.invocation(buf[:0], tableLive, id)
	b, err := r.row(key)
	if err == nil && b == nil {
		key[prefixLen-1] = tableDone
		b, err = r.row(key)
	}
	if err != nil || b == nil {
		return nil, 0, err
	}
	inv, err = codec.DecodeInvocation(b)
	if inv, err = decoded(key, inv, err); err != nil {
		return nil, 0, err
	}
	return inv, len(b), nil
}

// fetchResult reads the result of an invocation if it is only in the journal, and returns its size.
func (r reader) fetchResult(s space, inv *machine.Invocation) (size int, err error) {
	if !inv.ResultInJournal {
		return 0, nil
	}
	key := s.entry(nil, &inv.ID, inv.Output)
	b, err := r.row(key)
	if err != nil {
		return 0, err
	}
	e, err := codec.DecodeEntry(b)
	if err == nil {
		*inv.Result, err = journal.ParseOutput(e.Payload)
	}
	_, err = decoded(key, e, err)
	return len(b), err
}
