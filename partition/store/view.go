package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// View is a consistent picture of a partition's tables as of one commit, for the
// leader and operators. What it returns is the caller's to keep. Views hold back
// what compactions may drop, so close them soon. A View is for one goroutine.
type View struct {
	snapshot *pebble.Snapshot
	space    space
}

// View opens a picture of what is committed.
func (p *Partition) View() *View {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return &View{p.db.pebble.NewSnapshot(), p.space}
}

// Close gives the view up.
func (v *View) Close() error {
	if err := v.snapshot.Close(); err != nil {
		return fmt.Errorf("close view: %w", err)
	}
	return nil
}

// Meta is the partition's own record, and the log entry that the view contains
// everything up to.
func (v *View) Meta() (codec.Meta, error) { return readMeta(v.snapshot, v.space) }

// Invocation is nil if the id is unknown.
func (v *View) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	return findInvocation(v.snapshot, v.space, &id)
}

// Entry is an entry of a journal that has it.
func (v *View) Entry(id ids.Invocation, index uint32) (journal.Entry, error) {
	key := v.space.entry(nil, &id, index)
	b, err := read(v.snapshot, key)
	if err != nil {
		return journal.Entry{}, err
	}
	if b == nil {
		return journal.Entry{}, fmt.Errorf("journal of %s has no entry %d", id, index)
	}
	e, err := codec.DecodeEntry(b)
	return decoded(key, e, err)
}

// Journal is the first length entries of a journal. It is an error when there are
// fewer.
func (v *View) Journal(id ids.Invocation, length uint32) ([]journal.Entry, error) {
	entries := make([]journal.Entry, 0, length)
	rows := rows{reader: v.snapshot, lower: v.space.entry(nil, &id, 0), upper: v.space.entry(nil, &id, length)}
	err := rows.each(func(key, value []byte) (bool, error) {
		e, err := codec.DecodeEntry(value)
		entries = append(entries, e)
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("read journal of %s: %w", id, err)
	}
	if len(entries) != int(length) {
		return nil, fmt.Errorf("read journal of %s: %w: %d entries, not %d", id, ErrDamaged, len(entries), length)
	}
	return entries, nil
}

// Notified tells whether a notification is in a journal, and how it ended.
func (v *View) Notified(id ids.Invocation, n journal.NotificationID) (journal.Settled, error) {
	key := v.space.notified(nil, &id, &n)
	b, err := read(v.snapshot, key)
	if err != nil || b == nil {
		return journal.Pending, err
	}
	return settled(key, b)
}

// Value is one value of an object's state.
func (v *View) Value(o machine.Object, key []byte) (value []byte, found bool, err error) {
	value, err = read(v.snapshot, v.space.value(nil, &o, key))
	return value, value != nil, err
}

// Values is an object's state in key order, of up to limit bytes of keys and
// values; complete says that this is all of it.
func (v *View) Values(o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	prefix := v.space.object(make([]byte, 0, objectLen(&o)), tableValues, &o)
	it, err := objectIter(v.snapshot, prefix)
	if err != nil {
		return nil, false, err
	}
	complete = true
	for ok := it.SeekPrefixGE(prefix); ok; ok = it.Next() {
		limit -= len(it.Key()) - len(prefix) + len(it.Value())
		if limit < 0 {
			complete = false
			break
		}
		entries = append(entries, stateEntry(prefix, it.Key(), it.Value()))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, false, fmt.Errorf("read state: %w", err)
	}
	return entries, complete, nil
}

// Lock is who holds an object's key and who waits for it.
func (v *View) Lock(o machine.Object) (machine.Lock, error) {
	return readLock(v.snapshot, v.space.object(nil, tableLocks, &o))
}

// Waiting is who waits at a place for an object's key; zero if nobody does.
func (v *View) Waiting(o machine.Object, seq uint64) (ids.Invocation, error) {
	key := v.space.waiting(nil, &o, seq)
	b, err := read(v.snapshot, key)
	if err != nil || b == nil {
		return ids.Invocation{}, err
	}
	return waitingID(key, b)
}

// LastSent is the sequence number of the last message to another partition.
func (v *View) LastSent(to uint32) (uint64, error) {
	return readCounter(v.snapshot, v.space.peer(nil, tableSent, to))
}

// LastDelivered is the sequence number of the last message from another partition.
func (v *View) LastDelivered(from uint32) (uint64, error) {
	return readCounter(v.snapshot, v.space.peer(nil, tableDelivered, from))
}
