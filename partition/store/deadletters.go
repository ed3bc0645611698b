package store

import (
	"encoding/binary"
	"fmt"
	"iter"

	"platform/partition/codec"
	"platform/partition/machine"
)

func (s space) deadLetter(b []byte, subscription string, id machine.DeadLetterID) []byte {
	b = appendPart(s.subscription(b, tableDeadLetters, subscription), id.Topic)
	b = binary.BigEndian.AppendUint32(b, id.Partition)
	return binary.BigEndian.AppendUint64(b, uint64(id.Offset)) //nolint:gosec // offsets are not negative
}

// DeadLetter implements machine.State.
func (t *Txn) DeadLetter(subscription string, id machine.DeadLetterID) (*machine.DeadLetter, error) {
	key := t.space.deadLetter(nil, subscription, id)
	b, err := t.smallRow(key)
	if err != nil || b == nil {
		return nil, err
	}
	return deadLetterOf(key, b)
}

func deadLetterOf(key, b []byte) (*machine.DeadLetter, error) {
	l, err := codec.DecodeDeadLetter(b)
	if err != nil {
		return nil, fmt.Errorf("row %x: %w: %w", key, ErrDamaged, err)
	}
	return &l, nil
}

// PutDeadLetter implements machine.State.
func (t *Txn) PutDeadLetter(l *machine.DeadLetter) {
	t.small.put(t.space.deadLetter(nil, l.Stream.Subscription, l.ID()), codec.AppendDeadLetter(nil, l))
}

// DeleteDeadLetter implements machine.State.
func (t *Txn) DeleteDeadLetter(subscription string, id machine.DeadLetterID) {
	t.small.remove(t.space.deadLetter(nil, subscription, id))
}

// DeadLetters implements machine.State.
func (t *Txn) DeadLetters(subscription string) (machine.DeadLetters, error) {
	key := t.space.subscription(nil, tableDeadLetterTotals, subscription)
	b, err := t.smallRow(key)
	if err != nil {
		return machine.DeadLetters{}, err
	}
	return deadLettersOf(key, b)
}

// deadLettersOf decodes a row, which may not exist.
func deadLettersOf(key, b []byte) (machine.DeadLetters, error) {
	switch len(b) {
	case 0:
		return machine.DeadLetters{}, nil
	case 16:
		return machine.DeadLetters{Records: binary.BigEndian.Uint64(b), Bytes: binary.BigEndian.Uint64(b[8:])}, nil
	}
	return machine.DeadLetters{}, fmt.Errorf("%w: row %x has %d bytes", ErrDamaged, key, len(b))
}

// PutDeadLetters implements machine.State.
func (t *Txn) PutDeadLetters(subscription string, total machine.DeadLetters) {
	key := t.space.subscription(nil, tableDeadLetterTotals, subscription)
	if total == (machine.DeadLetters{}) {
		t.small.remove(key)
		return
	}
	t.small.put(key, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, total.Records), total.Bytes))
}

// DeadLetter returns a dead letter of a subscription; nil if there is none.
func (v *View) DeadLetter(subscription string, id machine.DeadLetterID) (*machine.DeadLetter, error) {
	key := v.space.deadLetter(nil, subscription, id)
	b, err := v.row(key)
	if err != nil || b == nil {
		return nil, err
	}
	return deadLetterOf(key, b)
}

// DeadLetters returns the number and size of the dead letters of a subscription.
func (v *View) DeadLetters(subscription string) (machine.DeadLetters, error) {
	key := v.space.subscription(nil, tableDeadLetterTotals, subscription)
	b, err := v.row(key)
	if err != nil {
		return machine.DeadLetters{}, err
	}
	return deadLettersOf(key, b)
}

// DeadLettersAfter yields the dead letters of a subscription behind one, or all if that is nil, in
// the order of their IDs.
func (v *View) DeadLettersAfter(subscription string, id *machine.DeadLetterID) iter.Seq2[*machine.DeadLetter, error] {
	return func(yield func(*machine.DeadLetter, error) bool) {
		prefix := v.space.subscription(nil, tableDeadLetters, subscription)
		from := prefix
		if id != nil {
			from = append(v.space.deadLetter(nil, subscription, *id), 0)
		}
		err := v.each(from, after(prefix), func(key, value []byte) (bool, error) {
			l, err := deadLetterOf(key, value)
			if err != nil {
				return false, err
			}
			return yield(l, nil), nil
		})
		if err != nil {
			yield(nil, fmt.Errorf("read dead letters: %w", err))
		}
	}
}
