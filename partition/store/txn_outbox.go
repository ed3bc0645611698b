package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"platform/partition/codec"
	"platform/partition/machine"
)

const (
	peerKeyLen     = prefixLen + 4
	outgoingKeyLen = peerKeyLen + 8
)

// LastSent implements machine.State.
func (t *Txn) LastSent(to uint32) (uint64, error) { return t.counter(tableSent, to) }

// LastDelivered implements machine.State.
func (t *Txn) LastDelivered(from uint32) (uint64, error) { return t.counter(tableDelivered, from) }

func (t *Txn) counter(table byte, peer uint32) (uint64, error) {
	key := t.space.peer(t.keys.room(peerKeyLen), table, peer)
	if r := t.counters.find(key); r != nil {
		return r.value, nil
	}
	if n, ok := t.p.cache.counters[string(key)]; ok {
		return n, nil
	}
	b, err := t.stored(key)
	if err != nil {
		return 0, err
	}
	n, err := number(key, b)
	if err == nil {
		t.p.cache.counters[string(key)] = n
	}
	return n, err
}

// PutLastSent implements machine.State.
func (t *Txn) PutLastSent(to uint32, seq uint64) { t.putCounter(tableSent, to, seq) }

// PutLastDelivered implements machine.State.
func (t *Txn) PutLastDelivered(from uint32, seq uint64) { t.putCounter(tableDelivered, from, seq) }

func (t *Txn) putCounter(table byte, peer uint32, n uint64) {
	t.counters.put(t.keys.keep(t.space.peer(t.keys.room(peerKeyLen), table, peer)), n)
}

func (t *Txn) fillCounters() {
	for i := range t.counters.rows {
		r := &t.counters.rows[i]
		t.set(r.key, binary.BigEndian.AppendUint64(t.scratch[:0], r.value))
		t.p.cache.counters[string(r.key)] = r.value
	}
}

// PutOutgoing implements machine.State.
func (t *Txn) PutOutgoing(to uint32, seq uint64, m machine.Message) {
	t.bytes += codec.MessageSize(m)
	t.messages.put(t.keys.keep(t.space.outgoing(t.keys.room(outgoingKeyLen), to, seq)), m)
	t.putCounter(tableSent, to, seq)
}

func (t *Txn) fillMessages() {
	for i := range t.messages.rows {
		r := &t.messages.rows[i]
		if r.deleted {
			t.delete(r.key)
			continue
		}
		b, err := codec.AppendMessage(t.scratch[:0], r.value)
		t.fail(err)
		t.set(r.key, b)
	}
}

// DeleteOutgoing implements machine.State.
func (t *Txn) DeleteOutgoing(to uint32, upto uint64) {
	first, err := t.firstOutgoing(to)
	if err != nil {
		t.fail(err)
		return
	}
	last, err := t.LastSent(to)
	if err != nil {
		t.fail(err)
		return
	}
	upto = min(upto, last)
	if first > upto {
		return
	}
	if upto-first < manyRows {
		for seq := first; seq <= upto; seq++ {
			t.messages.remove(t.keys.keep(t.space.outgoing(t.keys.room(outgoingKeyLen), to, seq)))
		}
	} else {
		deleteRange(t, &t.messages, t.space.outgoing(nil, to, first), after(t.space.outgoing(nil, to, upto)))
	}
	t.p.cache.outbox[to] = upto + 1
}

// firstOutgoing returns a lower bound of the sequence numbers in the outbox. It is cached,
// because a scan from the start would step over all tombstones.
func (t *Txn) firstOutgoing(to uint32) (uint64, error) {
	if first, ok := t.p.cache.outbox[to]; ok {
		return first, nil
	}
	r, err := t.committed()
	if err != nil {
		return 0, err
	}
	lower := t.space.peer(nil, tableOutbox, to)
	it, err := r.scan(lower, after(lower))
	if err != nil {
		return 0, fmt.Errorf("read outbox: %w", err)
	}
	first := uint64(math.MaxUint64)
	if it.First() {
		first, err = outgoingSeq(it.Key())
	}
	for _, r := range t.messages.rows {
		if seq, rowErr := outgoingSeq(r.key); rowErr == nil && bytes.HasPrefix(r.key, lower) {
			first = min(first, seq)
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return 0, fmt.Errorf("read outbox: %w", err)
	}
	return first, nil
}

func outgoingSeq(key []byte) (uint64, error) {
	if len(key) != outgoingKeyLen {
		return 0, fmt.Errorf("%w: key %x", ErrDamaged, key)
	}
	return binary.BigEndian.Uint64(key[peerKeyLen:]), nil
}
