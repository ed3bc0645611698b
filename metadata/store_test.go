package metadata

import (
	"context"
	"encoding/binary"
	"time"

	"platform/flowcontrol"
)

// memStore is a Store without a log: each change is encoded, decoded and applied
// immediately, as in a group of one replica.
type memStore struct {
	Store
	view  *view
	index uint64
	clock time.Time
	ids   uint64
	// entries are the entries that went through the log.
	entries [][]byte
}

func newMemStore() *memStore {
	m := &memStore{view: newView(emptyState()), clock: time.UnixMilli(1_700_000_000_000)}
	m.source, m.log = m, m
	m.now = func() time.Time {
		m.clock = m.clock.Add(time.Second)
		return m.clock
	}
	m.newID = func() (id [16]byte) {
		m.ids++
		binary.BigEndian.PutUint64(id[8:], m.ids)
		return id
	}
	return m
}

func (m *memStore) current() *view { return m.view }

func (m *memStore) Propose(_ context.Context, data []byte) (outcome, error) {
	m.index++
	m.entries = append(m.entries, data)
	d := newDraft(m.view.state)
	result, err := applyEntry(d, m.index, data)
	if err != nil {
		return outcome{}, err
	}
	next, wake := m.view.next(d)
	m.view = next
	wake()
	return result, nil
}

// emptyState is the state of a replica that has applied nothing.
func emptyState() *state {
	return &state{schemas: newSchemas(0, nil, nil), book: &flowcontrol.Book{}, audit: newAuditLog()}
}
