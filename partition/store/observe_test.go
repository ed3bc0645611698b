package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/machine"
)

// recorder is an Observer that checks that views include what it is told.
type recorder struct {
	t        *testing.T
	p        *Partition
	changes  map[ids.Invocation]*machine.Invocation
	replaced int
}

func (r *recorder) Changed(id ids.Invocation, inv *machine.Invocation) {
	r.changes[id] = inv
}

// requireStored checks that a view includes the changes.
func (r *recorder) requireStored() {
	view := r.p.View()
	defer view.Close()
	for id, inv := range r.changes {
		stored, err := view.Invocation(id)
		require.NoError(r.t, err)
		require.Equal(r.t, inv, stored)
	}
}

func (r *recorder) Replaced() { r.replaced++ }

func TestObserverSeesCommittedInvocations(t *testing.T) {
	db := open(t)
	p := partition(t, db, target)
	id := func(n byte) ids.Invocation { return ids.NewInvocation(1, [16]byte{n}) }
	put := func(index uint64, change func(txn *Txn)) {
		txn := p.Begin()
		change(txn)
		require.NoError(t, txn.Commit(index, 1))
	}
	put(1, func(txn *Txn) { txn.PutInvocation(&machine.Invocation{ID: id(1), Status: machine.Scheduled}) })

	r := &recorder{t: t, p: p, changes: map[ids.Invocation]*machine.Invocation{}}
	p.Observe(r)
	put(2, func(txn *Txn) {
		_, err := txn.Invocation(id(1)) // read only
		require.NoError(t, err)
		txn.PutInvocation(&machine.Invocation{ID: id(2), Status: machine.Scheduled})
		txn.PutInvocation(&machine.Invocation{ID: id(2), Status: machine.Suspended})
	})
	require.Len(t, r.changes, 1)
	require.Equal(t, machine.Suspended, r.changes[id(2)].Status)
	r.requireStored()
	put(3, func(txn *Txn) { txn.DeleteInvocation(id(1)) })
	require.Len(t, r.changes, 2)
	require.Nil(t, r.changes[id(1)])
	r.requireStored()

	discarded := p.Begin()
	discarded.DeleteInvocation(id(2))
	discarded.Discard()
	require.NotNil(t, r.changes[id(2)])

	p.Observe(nil)
	put(4, func(txn *Txn) { txn.DeleteInvocation(id(2)) })
	require.NotNil(t, r.changes[id(2)])

	p.Observe(r)
	require.NoError(t, copyPartition(t.Context(), filled(t, db, source, 9), p))
	require.Equal(t, 1, r.replaced)
}
