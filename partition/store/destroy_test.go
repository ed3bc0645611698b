package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDestroyRemovesOnlyItsPartition(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	filled(t, db, source, 30)
	p := filled(t, db, target, 10)
	filled(t, db, target+1, 20)
	require.NoError(t, copyPartition(t.Context(), partition(t, db, source), p)) // uses the other generation
	require.NoError(t, db.Destroy(t.Context(), target))
	require.NoError(t, db.Destroy(t.Context(), target), "again")

	fresh := partition(t, db, target)
	require.NotSame(t, p, fresh)
	index, term := fresh.Applied()
	require.Zero(t, index+term)
	require.NoError(t, db.Close())

	db = openAt(t, dir)
	defer func() { require.NoError(t, db.Close()) }()
	index, term = partition(t, db, target).Applied()
	require.Zero(t, index+term, "it was durable at once")
	e, err := partition(t, db, target).Export()
	require.NoError(t, err)
	require.NoError(t, e.Each(t.Context(), func(key, _ []byte) error {
		t.Errorf("row %x is left", key)
		return nil
	}))
	require.NoError(t, e.Close())
	require.EqualValues(t, 20, requireReplay(t, db, target+1), "the neighbour was flushed with it")
	filled(t, db, target, 12)
	require.EqualValues(t, 12, requireReplay(t, db, target), "a new replica may take the place")
	require.Error(t, db.Destroy(t.Context(), maxPartition+1))
}
