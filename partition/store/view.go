package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"platform/internal/ids"
	"platform/internal/limits"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

// View is a consistent snapshot of a partition's tables as of one commit, for the leader and
// operators. The caller owns what it returns. An open View retains obsolete memory and
// files, so it should be closed soon. It is not safe for concurrent use.
type View struct {
	db     *DB
	reader reader
	space  space
	err    error // why it could not be opened, or that it is closed
}

// View opens a snapshot of the committed rows. If that fails, all reads return the error.
func (p *Partition) View() *View {
	v := &View{db: p.db}
	if v.err = p.db.enter(); v.err != nil {
		return v
	}
	if v.err = p.Settle(); v.err == nil {
		p.mu.RLock()
		defer p.mu.RUnlock()
		v.space = p.space
		v.reader, v.err = newReader(p.db.pebble)
	}
	if v.err != nil {
		p.db.views.Done()
	}
	return v
}

// enter registers a view, which Close waits for.
func (db *DB) enter() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return ErrClosed
	}
	db.views.Add(1)
	return nil
}

// Close releases the view.
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

// Meta returns the metadata of the partition, including the last applied log entry.
func (v *View) Meta() (codec.Meta, error) {
	if v.err != nil {
		return codec.Meta{}, v.err
	}
	return v.reader.meta(v.space)
}

// Invocation returns an invocation; nil if it does not exist.
func (v *View) Invocation(id ids.Invocation) (*machine.Invocation, error) {
	if v.err != nil {
		return nil, v.err
	}
	inv, _, err := v.reader.invocation(v.space, &id)
	return inv, err
}

// Record is Invocation, but without a result that is only in the journal, which FetchResult adds.
func (v *View) Record(id ids.Invocation) (*machine.Invocation, error) {
	if v.err != nil {
		return nil, v.err
	}
	inv, _, err := v.reader.record(v.space, &id)
	return inv, err
}

// maxResults bounds the results that are read concurrently. Only once a result is read, its size is known and
// its reader can reserve memory for it.
const maxResults = 8

// FetchResult adds the result to what Record has returned. It waits while as many results as possible are read.
func (v *View) FetchResult(ctx context.Context, inv *machine.Invocation) error {
	switch {
	case v.err != nil:
		return v.err
	case !inv.ResultInJournal:
		return nil
	}
	select {
	case v.db.results <- struct{}{}:
		defer func() { <-v.db.results }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := v.reader.fetchResult(v.space, inv)
	return err
}

// Entry returns a journal entry, which must exist.
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

// maxJournalAlloc bounds the entries allocated in advance, because the length may come from
// a damaged record.
const maxJournalAlloc = 4096

// Journal returns the first length entries of a journal and their size, see limits.JournalEntry. It
// fails if there are fewer. If the size exceeds most, it returns only an estimate of the size
// of all, without reading them.
func (v *View) Journal(id ids.Invocation, length uint32, most int) (entries []journal.Entry, size int, err error) {
	if v.err != nil {
		return nil, 0, v.err
	}
	entries = make([]journal.Entry, 0, min(length, maxJournalAlloc))
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
		size += limits.JournalEntry(len(e.Payload))
		return damage == nil && size <= most
	})
	if err == nil && damage == nil && size > most {
		size = 0
		err = v.reader.ownedSizes(v.space.invocation(nil, tableJournal, &id), func(_ []byte, n int) { size += limits.JournalEntry(n) })
		return nil, size, err
	}
	if err == nil && damage == nil && len(entries) != int(length) {
		damage = fmt.Errorf("%d entries, expected %d", len(entries), length)
	}
	if damage != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, damage)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read journal of %s: %w", id, err)
	}
	return entries, size, nil
}

// Notified returns whether a notification is in a journal, and its outcome.
func (v *View) Notified(id ids.Invocation, n journal.NotificationID) (journal.Settled, error) {
	key := v.space.notified(nil, &id, &n)
	b, err := v.row(key)
	if err != nil || b == nil {
		return journal.Pending, err
	}
	return settled(key, b)
}

// Value returns one value of an object's state.
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

// KeysSize returns the bytes of the keys of an object's state, or a number above most if they
// have more than that.
func (v *View) KeysSize(o machine.Object, most int) (sum int, err error) {
	if v.err != nil {
		return 0, v.err
	}
	prefix := v.space.object(make([]byte, 0, objectLen(&o)), tableValues, &o)
	err = v.reader.ownedKeys(prefix, func(key []byte) bool {
		sum += len(key) - len(prefix)
		return sum <= most
	})
	return sum, err
}

// StateSizes calls visit for the keys of an object's state, in order, with the lengths of their
// values. It does not read large values. The key is valid during the call only.
func (v *View) StateSizes(o machine.Object, visit func(key []byte, size int)) error {
	if v.err != nil {
		return v.err
	}
	prefix := v.space.object(make([]byte, 0, objectLen(&o)), tableValues, &o)
	return v.reader.ownedSizes(prefix, func(key []byte, size int) { visit(key[len(prefix):], size) })
}

// EntrySize is about the length of an entry of a journal, 0 if there is none.
func (v *View) EntrySize(id ids.Invocation, index uint32) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	return v.reader.size(v.space.entry(nil, &id, index))
}

// Values returns an object's state in key order, up to limit bytes of keys and values;
// complete reports whether that is the entire state.
func (v *View) Values(o machine.Object, limit int) (entries []machine.StateEntry, complete bool, err error) {
	if v.err != nil {
		return nil, false, v.err
	}
	rows := objectRows{prefix: v.space.object(make([]byte, 0, objectLen(&o)), tableValues, &o), reader: v.reader}
	return rows.values(limit)
}

// Lock returns the lock of an object: its holder and the bounds of its queue.
func (v *View) Lock(o machine.Object) (machine.Lock, error) {
	key := v.space.object(nil, tableLocks, &o)
	b, err := v.row(key)
	if err != nil {
		return machine.Lock{}, err
	}
	return lockOf(key, b)
}

// LastSent returns the sequence number of the last message to another partition.
func (v *View) LastSent(to uint32) (uint64, error) { return v.counter(tableSent, to) }

// LastDelivered returns the sequence number of the last message from another partition.
func (v *View) LastDelivered(from uint32) (uint64, error) { return v.counter(tableDelivered, from) }

func (v *View) counter(table byte, peer uint32) (uint64, error) {
	key := v.space.peer(nil, table, peer)
	b, err := v.row(key)
	if err != nil {
		return 0, err
	}
	return number(key, b)
}
