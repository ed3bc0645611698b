package store

import (
	"errors"
	"fmt"
	"iter"

	"platform/partition/codec"
	"platform/partition/machine"
)

// each calls reader.each with the reader of the view.
func (v *View) each(lower, upper []byte, visit func(key, value []byte) (bool, error)) error {
	if v.err != nil {
		return v.err
	}
	return v.reader.each(lower, upper, visit)
}

// Live yields the invocations that are not completed, ordered by ID.
func (v *View) Live() iter.Seq2[*machine.Invocation, error] { return v.invocations(tableLive) }

// Done yields the completed invocations that are retained, ordered by ID.
func (v *View) Done() iter.Seq2[*machine.Invocation, error] { return v.invocations(tableDone) }

func (v *View) invocations(table byte) iter.Seq2[*machine.Invocation, error] {
	return func(yield func(*machine.Invocation, error) bool) {
		lower := v.space.table(nil, table)
		err := v.each(lower, after(lower), func(_, value []byte) (bool, error) {
			inv, err := codec.DecodeInvocation(value)
			if err == nil {
				_, err = v.reader.fetchResult(v.space, inv)
			}
			return err == nil && yield(inv, nil), err
		})
		if err != nil {
			yield(nil, fmt.Errorf("read invocations: %w", err))
		}
	}
}

// Timers returns the timers in [from, before), in the order of machine.Timer.Compare: at most
// count, or until their names have the given number of bytes. more reports that it stopped
// early.
func (v *View) Timers(from, before machine.Timer, count, bytes int) (timers []machine.Timer, more bool, err error) {
	if from.Compare(before) >= 0 {
		return nil, false, nil
	}
	names := 0
	err = v.each(v.space.timer(nil, &from), v.space.timer(nil, &before), func(key, _ []byte) (bool, error) {
		t, ok := timerOf(key[prefixLen:])
		if !ok {
			return false, errors.New("malformed key")
		}
		if more = len(timers) >= count || names >= bytes; more {
			return false, nil
		}
		names += len(t.Name)
		timers = append(timers, t)
		return true, nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read timers: %w", err)
	}
	return timers, more, nil
}

// Outgoing returns messages to another partition, starting at sequence number from: at most
// count messages and bytes bytes, but at least one message. Their sequence numbers are
// consecutive, starting at first. more reports whether others may follow.
func (v *View) Outgoing(to uint32, from uint64, count, bytes int) (first uint64, messages []machine.Message, more bool, err error) {
	lower := v.space.outgoing(nil, to, from)
	err = v.each(lower, after(v.space.peer(nil, tableOutbox, to)), func(key, value []byte) (bool, error) {
		if bytes -= len(value); len(messages) > 0 && bytes < 0 {
			more = true
			return false, nil
		}
		seq, err := outgoingSeq(key)
		if err != nil {
			return false, err
		}
		if len(messages) == 0 {
			first = seq
		}
		if next := first + uint64(len(messages)); seq != next {
			if (seq-next)%machine.LostNumbers != 0 {
				return false, fmt.Errorf("message %d follows %d", seq, next-1)
			}
			more = true // a recovery skipped numbers
			return false, nil
		}
		m, err := codec.DecodeMessage(value)
		messages = append(messages, m)
		more = len(messages) == count
		return !more, err
	})
	if err != nil {
		return 0, nil, false, fmt.Errorf("read outbox for partition %d: %w", to, err)
	}
	return first, messages, more, nil
}
