package store

import (
	"encoding/binary"
	"fmt"

	"platform/partition/codec"
	"platform/partition/machine"
)

// Ingested implements machine.State.
func (t *Txn) Ingested(s machine.Stream) (int64, error) {
	key := t.space.ingested(nil, &s)
	b, err := t.smallRow(key)
	if err != nil {
		return 0, err
	}
	return ingestedOf(key, b)
}

// ingestedOf decodes an offset, machine.NoOffset if there is no row.
func ingestedOf(key, b []byte) (int64, error) {
	switch len(b) {
	case 0:
		return machine.NoOffset, nil
	case 8:
		return int64(binary.BigEndian.Uint64(b)), nil
	}
	return 0, fmt.Errorf("%w: row %x has %d bytes", ErrDamaged, key, len(b))
}

// PutIngested implements machine.State.
func (t *Txn) PutIngested(s machine.Stream, offset int64) {
	t.small.put(t.space.ingested(nil, &s), binary.BigEndian.AppendUint64(nil, uint64(offset)))
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
func (t *Txn) DeleteStreams(subscription string, before uint64) {
	if before > 0 {
		deleteRange(t, &t.small, t.space.subscription(nil, tableIngested, subscription), t.space.incarnation(nil, subscription, before))
		return
	}
	for _, table := range []byte{tableIngested, tablePositions} {
		prefix := t.space.subscription(nil, table, subscription)
		deleteRange(t, &t.small, prefix, after(prefix))
	}
}
