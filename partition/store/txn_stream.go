package store

import (
	"encoding/binary"
	"fmt"

	"platform/partition/codec"
	"platform/partition/machine"
)

// Ingested implements machine.State.
func (t *Txn) Ingested(s machine.Stream) (machine.Ingested, error) {
	key := t.space.ingested(nil, &s)
	b, err := t.smallRow(key)
	if err != nil {
		return machine.Ingested{}, err
	}
	return ingestedOf(key, b)
}

// ingestedOf decodes a row, which may not exist.
func ingestedOf(key, b []byte) (machine.Ingested, error) {
	switch len(b) {
	case 0:
		return machine.Ingested{Last: machine.NoOffset, Before: machine.NoOffset}, nil
	case 24:
		number := binary.BigEndian.Uint64
		return machine.Ingested{Generation: number(b), Last: int64(number(b[8:])), Before: int64(number(b[16:]))}, nil
	}
	return machine.Ingested{}, fmt.Errorf("%w: row %x has %d bytes", ErrDamaged, key, len(b))
}

// PutIngested implements machine.State.
func (t *Txn) PutIngested(s machine.Stream, row machine.Ingested) {
	b := make([]byte, 0, 24)
	for _, n := range []uint64{row.Generation, uint64(row.Last), uint64(row.Before)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	t.small.put(t.space.ingested(nil, &s), b)
}

// FirstIncarnation implements machine.State.
func (t *Txn) FirstIncarnation(subscription string) (uint64, error) {
	key := t.space.subscription(nil, tableForgotten, subscription)
	b, err := t.smallRow(key)
	if err != nil {
		return 0, err
	}
	return firstIncarnationOf(key, b)
}

// firstIncarnationOf decodes a row, which may not exist.
func firstIncarnationOf(key, b []byte) (uint64, error) {
	switch len(b) {
	case 0:
		return 0, nil
	case 8:
		return binary.BigEndian.Uint64(b), nil
	}
	return 0, fmt.Errorf("%w: row %x has %d bytes", ErrDamaged, key, len(b))
}

// Position implements machine.State.
func (t *Txn) Position(s machine.Stream) (*machine.StreamPosition, error) {
	key := t.space.position(nil, &s)
	b, err := t.smallRow(key)
	if err != nil || b == nil {
		return nil, err
	}
	return positionOf(key, b)
}

func positionOf(key, b []byte) (*machine.StreamPosition, error) {
	p, err := codec.DecodePosition(b)
	if err != nil {
		return nil, fmt.Errorf("row %x: %w: %w", key, ErrDamaged, err)
	}
	return &p, nil
}

// PutPosition implements machine.State.
func (t *Txn) PutPosition(p *machine.StreamPosition) {
	t.small.put(t.space.position(nil, &p.Stream), codec.AppendPosition(nil, p))
}

// DeleteStreams implements machine.State.
func (t *Txn) DeleteStreams(subscription string, before uint64, positions bool) {
	deleteRange(t, &t.small, t.space.subscription(nil, tableIngested, subscription), t.space.incarnation(nil, subscription, before))
	if positions {
		prefix := t.space.subscription(nil, tablePositions, subscription)
		deleteRange(t, &t.small, prefix, after(prefix))
		prefix = t.space.subscription(nil, tableDeadLetters, subscription)
		deleteRange(t, &t.small, prefix, after(prefix))
		t.small.remove(t.space.subscription(nil, tableDeadLetterTotals, subscription))
	}
	t.small.put(t.space.subscription(nil, tableForgotten, subscription), binary.BigEndian.AppendUint64(nil, before))
}
