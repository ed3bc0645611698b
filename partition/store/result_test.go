package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// TestResultInJournal stores completed invocations whose records refer to the journal for their
// result, and then deletes the journal.
func TestResultInJournal(t *testing.T) {
	for _, size := range []int{4 << 10, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			db, id, value := open(t), testID(3), bytes.Repeat([]byte("01234567"), size/8)
			p := partition(t, db, 1)
			inv := &machine.Invocation{ID: id, Status: machine.Completed, Length: 2, Output: 1, Result: &journal.Result{Value: value}, ResultInJournal: true}
			commit(t, p, 1, func(s machine.State) {
				s.AppendEntry(id, 0, journal.Entry{Type: journal.Input})
				s.AppendEntry(id, 1, journal.Entry{Type: journal.Output, Payload: machinetest.Output(*inv.Result).Payload})
				s.PutInvocation(inv)
				requireResult(t, s, value)
			})
			flush(t, db)
			requireStored(t, p, inv, 256)

			commit(t, p, 2, func(s machine.State) {
				found, err := s.Invocation(id)
				require.NoError(t, err)
				s.DeleteJournal(id, 2)
				found.Length, found.Output, found.ResultInJournal = 0, 0, false
				s.PutInvocation(found)
			})
			flush(t, db)
			inv.Length, inv.Output, inv.ResultInJournal = 0, 0, false
			requireStored(t, p, inv, math.MaxInt)
		})
	}
}

// requireStored checks what is read of an invocation, and the maximum size of its record.
func requireStored(t *testing.T, p *Partition, inv *machine.Invocation, size int) {
	t.Helper()
	v := p.View()
	read, err := v.Invocation(inv.ID)
	require.NoError(t, err)
	require.Equal(t, inv, read)
	done := 0
	for read, err := range v.Done() {
		require.NoError(t, err)
		require.Equal(t, inv, read)
		done++
	}
	require.Equal(t, 1, done)
	stored, err := v.reader.size(v.space.invocation(nil, tableDone, &inv.ID))
	require.NoError(t, err)
	require.LessOrEqual(t, stored, size)
	require.NoError(t, v.Close())
	txn := p.Begin()
	requireResult(t, txn, inv.Result.Value)
	txn.Discard()
}

func requireResult(t *testing.T, s machine.State, value []byte) {
	t.Helper()
	inv, err := s.Invocation(testID(3))
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, inv.Result.Value))
}

func TestMissingResultIsDetected(t *testing.T) {
	db, id := open(t), testID(3)
	p := partition(t, db, 1)
	commit(t, p, 1, func(s machine.State) {
		s.PutInvocation(&machine.Invocation{ID: id, Status: machine.Completed, Length: 2, Output: 1, Result: &journal.Result{Value: []byte("v")}, ResultInJournal: true})
	})
	flush(t, db)
	v := p.View()
	_, err := v.Invocation(id)
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, v.Close())
}

// A record is read without its large result, of which few are read at a time.
func TestResultsAreReadAFewAtATime(t *testing.T) {
	db, id, value := open(t), testID(3), bytes.Repeat([]byte("x"), 4<<10)
	p := partition(t, db, 1)
	result := journal.Result{Value: value}
	commit(t, p, 1, func(s machine.State) {
		s.AppendEntry(id, 0, journal.Entry{Type: journal.Input})
		s.AppendEntry(id, 1, journal.Entry{Type: journal.Output, Payload: machinetest.Output(result).Payload})
		s.PutInvocation(&machine.Invocation{ID: id, Status: machine.Completed, Length: 2, Output: 1, Result: &result, ResultInJournal: true})
	})
	v := p.View()
	defer func() { require.NoError(t, v.Close()) }()
	inv, err := v.Record(id)
	require.NoError(t, err)
	require.Empty(t, inv.Result.Value)
	for range maxResults {
		db.results <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, v.FetchResult(ctx, inv), context.Canceled)
	require.Empty(t, inv.Result.Value)
	<-db.results
	require.NoError(t, v.FetchResult(t.Context(), inv))
	require.Equal(t, value, inv.Result.Value)
	require.Len(t, db.results, maxResults-1)
	absent, err := v.Record(testID(4))
	require.NoError(t, err)
	require.Nil(t, absent)
}
