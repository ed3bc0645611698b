package store

import (
	"errors"
	"fmt"
	"iter"

	"platform/partition/machine"
)

// Ingested returns what is stored about the records of a stream. Without any, its offsets
// are machine.NoOffset.
func (v *View) Ingested(s machine.Stream) (machine.Ingested, error) {
	key := v.space.ingested(nil, &s)
	b, err := v.row(key)
	if err != nil {
		return machine.Ingested{}, err
	}
	return ingestedOf(key, b)
}

// FirstIncarnation returns the first incarnation of a subscription that was not forgotten.
func (v *View) FirstIncarnation(subscription string) (uint64, error) {
	key := v.space.subscription(nil, tableForgotten, subscription)
	b, err := v.row(key)
	if err != nil {
		return 0, err
	}
	return firstIncarnationOf(key, b)
}

// Position returns the position of a topic partition, nil if there is none.
func (v *View) Position(s machine.Stream) (*machine.StreamPosition, error) {
	key := v.space.position(nil, &s)
	b, err := v.row(key)
	if err != nil || b == nil {
		return nil, err
	}
	return positionOf(key, b)
}

// Positions yields the positions of a subscription; if that is empty, of all, grouped by
// subscription.
func (v *View) Positions(subscription string) iter.Seq2[*machine.StreamPosition, error] {
	return func(yield func(*machine.StreamPosition, error) bool) {
		prefix := v.space.table(nil, tablePositions)
		if subscription != "" {
			prefix = v.space.subscription(nil, tablePositions, subscription)
		}
		err := v.each(prefix, after(prefix), func(key, value []byte) (bool, error) {
			p, err := positionOf(key, value)
			if err != nil {
				return false, err
			}
			return yield(p, nil), nil
		})
		if err != nil {
			yield(nil, fmt.Errorf("read stream positions: %w", err))
		}
	}
}

// Incarnation is an incarnation of a subscription.
type Incarnation struct {
	Subscription string
	Number       uint64
}

// Incarnations returns the incarnations of subscriptions of which records were stored here.
// It skips from one to the next, so its cost does not depend on the number of topic
// partitions.
func (v *View) Incarnations() (found []Incarnation, err error) {
	prefix := v.space.table(nil, tableIngested)
	end := after(prefix)
	for from := prefix; ; {
		var next []byte
		err := v.each(from, end, func(key, _ []byte) (bool, error) {
			id, number, ok := incarnationOf(key[prefixLen:])
			if !ok {
				return false, errors.New("malformed key")
			}
			found = append(found, Incarnation{Subscription: id, Number: number})
			next = after(v.space.incarnation(nil, id, number))
			return false, nil
		})
		if err != nil {
			return nil, fmt.Errorf("read incarnations of subscriptions: %w", err)
		}
		if next == nil {
			return found, nil
		}
		from = next
	}
}
