package store

import (
	"encoding/binary"
	"fmt"

	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/machine"
)

func (s space) event(b []byte, id *ids.Invocation, number uint32) []byte {
	return binary.BigEndian.AppendUint32(s.invocation(b, tableEvents, id), number)
}

func (t *Txn) eventKey(id *ids.Invocation, number uint32) []byte {
	return t.space.event(t.keys.room(entryKeyLen), id, number)
}

// Event implements machine.State.
func (t *Txn) Event(id ids.Invocation, number uint32) (machine.Event, error) {
	key := t.eventKey(&id, number)
	b, err := t.smallRow(key)
	if err != nil {
		return machine.Event{}, err
	}
	if b == nil {
		return machine.Event{}, fmt.Errorf("history of %s has no event %d", id, number)
	}
	e, err := codec.DecodeEvent(b)
	return decoded(key, e, err)
}

// PutEvent implements machine.State.
func (t *Txn) PutEvent(id ids.Invocation, number uint32, e machine.Event) {
	b := codec.AppendEvent(nil, &e)
	t.bytes += len(b)
	t.small.put(t.keys.keep(t.eventKey(&id, number)), b)
}

// DeleteEvents implements machine.State.
func (t *Txn) DeleteEvents(id ids.Invocation, first, next uint32) {
	if next-first > manyRows {
		deleteRange(t, &t.small, t.space.event(nil, &id, first), t.space.event(nil, &id, next))
		return
	}
	for n := first; n < next; n++ {
		t.small.remove(t.keys.keep(t.eventKey(&id, n)))
	}
}

// Events returns the history of an invocation, the oldest event first.
func (v *View) Events(id ids.Invocation) (events []machine.Event, err error) {
	prefix := v.space.invocation(nil, tableEvents, &id)
	err = v.each(prefix, after(prefix), func(key, value []byte) (bool, error) {
		e, err := codec.DecodeEvent(value)
		if err == nil {
			events = append(events, e)
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("read history of %s: %w", id, err)
	}
	return events, nil
}
