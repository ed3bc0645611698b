package store

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConcurrentFlushesAreCoalesced(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	p, err := db.Partition(0)
	require.NoError(t, err)

	db.flusher.running.Lock() // a flush is under way while all of them ask
	txn := p.Begin()
	txn.Meta().Epoch = 7
	require.NoError(t, txn.Commit(1, 1))
	var waits []func(context.Context) error
	for range 8 {
		wait, err := db.Flush()
		require.NoError(t, err)
		waits = append(waits, wait)
	}
	before := db.stats().Flushes
	db.flusher.running.Unlock()

	var wg sync.WaitGroup
	for _, wait := range waits {
		wg.Go(func() { require.NoError(t, wait(t.Context())) })
	}
	wg.Wait()
	require.Equal(t, before+1, db.stats().Flushes)
	index, _, err := p.durable()
	require.NoError(t, err)
	require.EqualValues(t, 1, index)
}
