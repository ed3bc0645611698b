package store

import (
	"bytes"
	"errors"
	"fmt"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// View is a consistent picture of a partition's tables as of one commit, for the
// leader and operators. What it returns is the caller's to keep. An open View holds
// back memory and files that are no longer needed, so close it soon. It is for one
// goroutine.
type View struct {
	db     *DB
	reader reader
	space  space
	err    error // why it could not be opened
}

// View opens a picture of what is committed. If that fails, all reads do.
func (p *Partition) View() *View {
	v := &View{db: p.db}
	if v.err = p.db.enter(); v.err != nil {
		return v
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	v.space = p.space
	if v.reader, v.err = newReader(p.db.pebble); v.err != nil {
		p.db.views.Done()
	}
	return v
}

// enter counts a view.
func (db *DB) enter() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return ErrClosed
	}
	db.views.Add(1)
	return nil
}

// Close gives the view up.
func (v *View) Close() error {
	if v.err != nil {
		return nil
	}
	v.err = errors.New("view is closed")
	defer v.db.views.Done()
	if err := v.reader.close(); err != nil {
		return fmt.Errorf("close view: %w", err)
	}
	return nil
}

func (v *View) row(key []byte) ([]byte, error) {
	if v.err != nil {
		return nil, v.err
	}
	return v.reader.row(key)
}

// Meta is the partition's own record, and the log entry that the view contains
// everything up to.
func (v *View) Meta() (codec.Meta, error) {
	if v.err != nil {
		return codec.Meta{}, v.err
	}
	return v.reader.meta(v.space)
}

// Invocation is nil if the id is unknown.
func (v *View) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	if v.err != nil {
		return nil, v.err
	}
	return v.reader.invocation(v.space, &id)
}

// Entry is an entry of a journal that has it.
func (v *View) Entry(id ids.Invocation, index uint32) (journal.Entry, error) {
	key := v.space.entry(nil, &id, index)
	b, err := v.row(key)
	if err != nil {
		return journal.Entry{}, err
	}
	if b == nil {
		return journal.Entry{}, fmt.Errorf("journal of %s has no entry %d", id, index)
	}
	e, err := codec.DecodeEntry(b)
	return decoded(key, e, err)
}

// longJournal is for how many entries room is made at once. A length may come from
// a damaged record.
const longJournal = 4096

// Journal is the first length entries of a journal. It is an error when there are
// fewer.
func (v *View) Journal(id ids.Invocation, length uint32) (entries []journal.Entry, err error) {
	if v.err != nil {
		return nil, v.err
	}
	entries = make([]journal.Entry, 0, min(length, longJournal))
	var damage error
	err = v.reader.owned(v.space.invocation(nil, tableJournal, &id), func(_, value []byte, own bool) bool {
		if len(entries) == int(length) {
			return false
		}
		if !own {
			value = bytes.Clone(value)
		}
		var e journal.Entry
		e, damage = codec.DecodeEntry(value)
		entries = append(entries, e)
		return damage == nil
	})
	if err == nil && damage == nil && len(entries) != int(length) {
		damage = fmt.Errorf("%d entries, not %d", len(entries), length)
	}
	if damage != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, damage)
	}
	if err != nil {
		return nil, fmt.Errorf("read journal of %s: %w", id, err)
	}
	return entries, nil
}

// Notified tells whether a notification is in a journal, and how it ended.
func (v *View) Notified(id ids.Invocation, n journal.NotificationID) (journal.Settled, error) {
	key := v.space.notified(nil, &id, &n)
	b, err := v.row(key)
	if err != nil || b == nil {
		return journal.Pending, err
	}
	return settled(key, b)
}

// Value is one value of an object's state.
func (v *View) Value(o machine.Object, key []byte) (value []byte, found bool, err error) {
	value, err = v.row(v.space.value(nil, &o, key))
	return value, value != nil, err
}

// ValueSize is the length of a value of an object's state, 0 if there is none.
func (v *View) ValueSize(o machine.Object, key []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	return v.reader.size(v.space.value(nil, &o, key))
}

// EntrySize is about the length of an entry of a journal, 0 if there is none.
func (v *View) EntrySize(id ids.Invocation, index uint32) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	return v.reader.size(v.space.entry(nil, &id, index))
}

// Values is an object's state in key order, of up to limit bytes of keys and
// values; complete says that this is all of it.
func (v *View) Values(o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	if v.err != nil {
		return nil, false, v.err
	}
	prefix := v.space.object(make([]byte, 0, objectLen(&o)), tableValues, &o)
	complete = true
	err = v.reader.owned(prefix, func(key, value []byte, own bool) bool {
		if limit -= len(key) - len(prefix) + len(value); limit < 0 {
			complete = false
			return false
		}
		entries = append(entries, stateEntry(prefix, key, value, own))
		return true
	})
	return entries, complete, err
}

// Lock is who holds an object's key and who waits for it.
func (v *View) Lock(o machine.Object) (machine.Lock, error) {
	key := v.space.object(nil, tableLocks, &o)
	b, err := v.row(key)
	if err != nil {
		return machine.Lock{}, err
	}
	return lockOf(key, b)
}

// Waiting is who waits at a place for an object's key; zero if nobody does.
func (v *View) Waiting(o machine.Object, seq uint64) (ids.Invocation, error) {
	key := v.space.waiting(nil, &o, seq)
	b, err := v.row(key)
	if err != nil || b == nil {
		return ids.Invocation{}, err
	}
	return waitingID(key, b)
}

// LastSent is the sequence number of the last message to another partition.
func (v *View) LastSent(to uint32) (uint64, error) { return v.counter(tableSent, to) }

// LastDelivered is the sequence number of the last message from another partition.
func (v *View) LastDelivered(from uint32) (uint64, error) { return v.counter(tableDelivered, from) }

func (v *View) counter(table byte, peer uint32) (uint64, error) {
	key := v.space.peer(nil, table, peer)
	b, err := v.row(key)
	if err != nil {
		return 0, err
	}
	return number(key, b)
}
