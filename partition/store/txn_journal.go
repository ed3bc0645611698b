package store

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/journal"
)

// manyRows is the number of rows above which they are deleted as a range. Pebble checks all
// range deletions of a memtable on every read, so few rows are deleted one by one.
const manyRows = 32

// Entry implements machine.State.
func (t *Txn) Entry(id ids.Invocation, index uint32) (journal.Entry, error) {
	key := t.space.entry(t.keys.room(entryKeyLen), &id, index)
	if r := t.entries.find(key); r != nil && !r.deleted {
		return r.value, nil
	} else if r == nil {
		b, err := t.stored(key)
		if err != nil {
			return journal.Entry{}, err
		}
		if b != nil {
			e, err := codec.DecodeEntry(b)
			return decoded(key, e, err)
		}
	}
	return journal.Entry{}, fmt.Errorf("journal of %s has no entry %d", id, index)
}

const entryKeyLen = prefixLen + idLen + 4

// AppendEntry implements machine.State.
func (t *Txn) AppendEntry(id ids.Invocation, index uint32, e journal.Entry) {
	t.bytes += len(e.Payload)
	t.entries.put(t.keys.keep(t.space.entry(t.keys.room(entryKeyLen), &id, index)), e)
}

// DeleteJournal implements machine.State.
func (t *Txn) DeleteJournal(id ids.Invocation, length uint32) {
	if length > manyRows {
		deleteRange(t, &t.entries, t.space.entry(nil, &id, 0), t.space.entry(nil, &id, length))
	} else {
		for i := range length {
			t.entries.remove(t.keys.keep(t.space.entry(t.keys.room(entryKeyLen), &id, i)))
		}
	}
	t.deletePrefix(&t.small, t.space.invocation(nil, tableNotified, &id))
}

// deletePrefix deletes the rows of an owner, whose keys begin with prefix.
func (t *Txn) deletePrefix(w *writeSet[[]byte], prefix []byte) {
	upper := after(prefix)
	if !t.inDeletedRange(prefix) {
		t.deleteCommitted(w, prefix, upper)
	}
	for i := range w.rows { // rows that are not in the database yet
		if r := &w.rows[i]; !r.deleted && (keyRange{prefix, upper}).contains(r.key) {
			*r = row[[]byte]{key: r.key, deleted: true}
		}
	}
}

// deleteCommitted deletes the committed rows of an owner, many as a range.
func (t *Txn) deleteCommitted(w *writeSet[[]byte], prefix, upper []byte) {
	r, err := t.committed()
	if err != nil {
		t.fail(err)
		return
	}
	n := 0
	t.fail(r.ownedKeys(prefix, func(key []byte) bool {
		if n++; n > manyRows {
			deleteRange(t, w, prefix, upper)
			return false
		}
		w.remove(t.keep(key))
		return true
	}))
}

// keep copies a key into the arena.
func (t *Txn) keep(key []byte) []byte {
	return t.keys.keep(append(t.keys.room(len(key)), key...))
}

// deleteRange deletes the keys [lower, upper) of a table whose writes are in w. It takes
// ownership of both slices.
func deleteRange[V any](t *Txn, w *writeSet[V], lower, upper []byte) {
	r := keyRange{lower, upper}
	t.bytes += len(lower) + len(upper)
	t.ranges = append(t.ranges, r)
	for i := range w.rows {
		if old := &w.rows[i]; r.contains(old.key) {
			*old = row[V]{key: old.key, deleted: true}
		}
	}
}

func (t *Txn) notifiedKey(id *ids.Invocation, n *journal.NotificationID) []byte {
	return t.space.notified(t.keys.room(prefixLen+idLen+5+len(n.Name)), id, n)
}

// Notified implements machine.State.
func (t *Txn) Notified(id ids.Invocation, n journal.NotificationID) (journal.Settled, error) {
	if r, loaded := t.invocations[id]; loaded {
		if r.notes == (notes{}) {
			if err := t.learn(&id, &r.notes); err != nil {
				return journal.Pending, err
			}
			t.invocations[id] = r
		}
		if r.notes.exclude(&n) {
			return journal.Pending, nil
		}
	}
	key := t.notifiedKey(&id, &n)
	b, err := t.smallRow(key)
	if err != nil || b == nil {
		return journal.Pending, err
	}
	return settled(key, b)
}

func settled(key, b []byte) (journal.Settled, error) {
	if len(b) != 1 {
		return journal.Pending, fmt.Errorf("%w: settlement %x at %x", ErrDamaged, b, key)
	}
	return journal.Settled(b[0]), nil
}

var settledRows = [...][]byte{{0}, {1}, {2}, {3}}

// PutNotified implements machine.State.
func (t *Txn) PutNotified(id ids.Invocation, n journal.NotificationID, how journal.Settled) {
	t.small.put(t.keys.keep(t.notifiedKey(&id, &n)), settledRows[how])
	if r, loaded := t.invocations[id]; !loaded {
		t.p.cache.setNotes(&id, notes{})
	} else if r.notes.known {
		r.notes.add(n.Signal || n.Name != "", n.Index)
		t.invocations[id] = r
	}
}

// notes is what is known about the notifications of an invocation, to save the lookup of new
// ones: SDKs number completions in order. The zero value means that they were not read yet.
type notes struct {
	known       bool
	many        bool   // too many to read them
	signals     bool   // there may be signals
	completions uint64 // completions have lower numbers
}

// exclude reports whether a notification certainly does not exist.
func (s *notes) exclude(n *journal.NotificationID) bool {
	if n.Signal || n.Name != "" {
		return s.known && !s.signals
	}
	return s.known && uint64(n.Index) >= s.completions
}

func (s *notes) add(signal bool, index uint32) {
	if signal {
		s.signals = true
	} else {
		s.completions = max(s.completions, uint64(index)+1)
	}
}

// learn reads which notifications of an invocation exist, unless there are many.
func (t *Txn) learn(id *ids.Invocation, found *notes) error {
	prefix := t.space.invocation(t.keys.room(prefixLen+idLen), tableNotified, id)
	rows := 0
	add := func(key []byte) bool {
		if rows++; rows > manyRows {
			return false
		}
		signal := key[len(prefix)] != byCompletion
		index := uint32(0)
		if !signal {
			index = binary.BigEndian.Uint32(key[len(prefix)+1:])
		}
		found.add(signal, index)
		return true
	}
	t.eachNotified(id, prefix, add)
	r, err := t.committed()
	if err == nil {
		err = r.ownedKeys(prefix, add)
	}
	found.known, found.many = rows <= manyRows, rows > manyRows
	return err
}

// fewScanned is the number of rows up to which those of an owner are found by a search of all.
const fewScanned = 128

// eachNotified calls visit for the written rows of the notifications of an invocation, whose keys begin with prefix, until it
// returns false. A log entry may notify thousands of invocations.
func (t *Txn) eachNotified(id *ids.Invocation, prefix []byte, visit func(key []byte) bool) {
	if len(t.small.rows) <= fewScanned {
		for i := range t.small.rows {
			if key := t.small.rows[i].key; bytes.HasPrefix(key, prefix) && !visit(key) {
				return
			}
		}
		return
	}
	for i := t.notified.last(t.small.rows, id); i >= 0 && visit(t.small.rows[i].key); i = t.notified.before[i] {
	}
}

// notifiedIndex finds the rows of the notifications of an invocation in a write set, each from the one after it.
type notifiedIndex struct {
	newest map[ids.Invocation]int32
	before []int32 // of each row; -1: none
}

// last returns the place of the last row, -1 if there is none.
func (x *notifiedIndex) last(rows []row[[]byte], id *ids.Invocation) int32 {
	if x.newest == nil {
		x.newest = map[ids.Invocation]int32{}
	}
	for i := len(x.before); i < len(rows); i++ {
		before, key := int32(-1), rows[i].key
		if len(key) > prefixLen+idLen && key[prefixLen-1] == tableNotified {
			owner := ids.Invocation(key[prefixLen : prefixLen+idLen])
			if known, found := x.newest[owner]; found {
				before = known
			}
			x.newest[owner] = int32(i)
		}
		x.before = append(x.before, before)
	}
	if i, found := x.newest[*id]; found {
		return i
	}
	return -1
}

func (x *notifiedIndex) reset() {
	if len(x.before) > keptRows {
		*x = notifiedIndex{}
		return
	}
	clear(x.newest)
	x.before = x.before[:0]
}

// smallRow reads a row of a table whose writes are in the small set; nil if there is none.
func (t *Txn) smallRow(key []byte) ([]byte, error) {
	if r := t.small.find(key); r != nil {
		return r.value, nil // nil if deleted
	}
	return t.stored(key)
}
