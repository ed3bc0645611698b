package store

import (
	"fmt"
	"iter"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/codec"
	"platform/partition/machine"
)

// Rules returns the rule book of the partition.
func (v *View) Rules() (*flowcontrol.Book, error) {
	key := v.space.table(nil, tableRules)
	b, err := v.row(key)
	if err != nil {
		return nil, err
	}
	return rulesOf(key, b)
}

// Counter returns a counter; the zero Counter if it does not exist.
func (v *View) Counter(k flowcontrol.CounterKey) (flowcontrol.Counter, error) {
	key := v.space.limit(nil, tableCounters, &k)
	b, err := v.row(key)
	if err != nil || b == nil {
		return flowcontrol.Counter{}, err
	}
	c, err := codec.DecodeCounter(b)
	return decoded(key, c, err)
}

// AllCounters yields all counters ordered by key.
func (v *View) AllCounters() iter.Seq2[flowcontrol.NamedCounter, error] {
	return func(yield func(flowcontrol.NamedCounter, error) bool) {
		lower := v.space.table(nil, tableCounters)
		err := v.each(lower, after(lower), func(key, value []byte) (bool, error) {
			k, _, err := limitOf(key)
			if err != nil {
				return false, err
			}
			c, err := codec.DecodeCounter(value)
			return err == nil && yield(flowcontrol.NamedCounter{Key: k, Counter: c}, nil), err
		})
		if err != nil {
			yield(flowcontrol.NamedCounter{}, fmt.Errorf("read counters: %w", err))
		}
	}
}

// VQueue returns a vqueue; the zero VQueue if it does not exist.
func (v *View) VQueue(k flowcontrol.QueueKey) (flowcontrol.VQueue, error) {
	key := v.space.vqueue(nil, tableVQueues, &k)
	b, err := v.row(key)
	if err != nil || b == nil {
		return flowcontrol.VQueue{}, err
	}
	q, err := codec.DecodeVQueue(b)
	return decoded(key, q, err)
}

// NamedVQueue is a vqueue with its key.
type NamedVQueue struct {
	Key flowcontrol.QueueKey
	flowcontrol.VQueue
}

// VQueues yields all vqueues ordered by key, grouped by scope.
func (v *View) VQueues() iter.Seq2[NamedVQueue, error] {
	return func(yield func(NamedVQueue, error) bool) {
		lower := v.space.table(nil, tableVQueues)
		err := v.each(lower, after(lower), func(key, value []byte) (bool, error) {
			k, err := vqueueOf(key)
			if err != nil {
				return false, err
			}
			q, err := codec.DecodeVQueue(value)
			return err == nil && yield(NamedVQueue{k, q}, nil), err
		})
		if err != nil {
			yield(NamedVQueue{}, fmt.Errorf("read vqueues: %w", err))
		}
	}
}

// Queued returns the entry in a slot of a vqueue; zero if the slot is empty.
func (v *View) Queued(q flowcontrol.QueueKey, priority uint8, slot uint64) (flowcontrol.Queued, error) {
	key := v.space.queued(nil, &q, priority, slot)
	b, err := v.row(key)
	if err != nil || b == nil {
		return flowcontrol.Queued{}, err
	}
	entry, err := codec.DecodeQueued(b)
	return decoded(key, entry, err)
}

// FirstQueued returns the first entry in the slots [from, before) of a lane, and its slot; zero
// if there is none.
func (v *View) FirstQueued(q flowcontrol.QueueKey, priority uint8, from, before uint64) (slot uint64, first flowcontrol.Queued, err error) {
	lower, upper := v.space.queued(nil, &q, priority, from), v.space.queued(nil, &q, priority, before)
	err = v.each(lower, upper, func(key, value []byte) (bool, error) {
		entry, err := codec.DecodeQueued(value)
		slot, first = numberOf(key), entry
		return false, err
	})
	return slot, first, err
}

// QueuedBetween yields the entries in the slots [from, before) of a lane, in order.
func (v *View) QueuedBetween(q flowcontrol.QueueKey, priority uint8, from, before uint64) iter.Seq2[flowcontrol.Queued, error] {
	return func(yield func(flowcontrol.Queued, error) bool) {
		lower, upper := v.space.queued(nil, &q, priority, from), v.space.queued(nil, &q, priority, before)
		err := v.each(lower, upper, func(_, value []byte) (bool, error) {
			entry, err := codec.DecodeQueued(value)
			return err == nil && yield(entry, nil), err
		})
		if err != nil {
			yield(flowcontrol.Queued{}, fmt.Errorf("read vqueue %v: %w", q, err))
		}
	}
}

// WaitingBetween counts the invocations in the slots [from, before) of an object's lock queue.
func (v *View) WaitingBetween(o machine.Object, from, before uint64) (n uint64, err error) {
	err = v.lockQueue(o, from, before, func(uint64, ids.Invocation) bool {
		n++
		return true
	})
	return n, err
}

// FirstWaiting returns the first invocation in the slots [from, before) of an object's lock
// queue, and its slot; zero if there is none.
func (v *View) FirstWaiting(o machine.Object, from, before uint64) (slot uint64, first ids.Invocation, err error) {
	err = v.lockQueue(o, from, before, func(n uint64, id ids.Invocation) bool {
		slot, first = n, id
		return false
	})
	return slot, first, err
}

// lockQueue visits the invocations in the slots [from, before) of an object's lock queue.
func (v *View) lockQueue(o machine.Object, from, before uint64, visit func(slot uint64, id ids.Invocation) bool) error {
	err := v.each(v.space.waiting(nil, &o, from), v.space.waiting(nil, &o, before), func(key, value []byte) (bool, error) {
		id, err := waitingID(key, value)
		return err == nil && visit(numberOf(key), id), err
	})
	if err != nil {
		return fmt.Errorf("read lock queue of %v: %w", o, err)
	}
	return nil
}
