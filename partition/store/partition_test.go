package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"platform/internal/limits"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

func commit(t require.TestingT, p *Partition, index uint64, write func(machine.State)) {
	txn := p.Begin()
	write(txn)
	require.NoError(t, txn.Commit(index, 1))
}

// durable returns the last log entry whose effects survive a crash.
func (p *Partition) durable() (index, term uint64, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	key := p.space.table(nil, tableMeta)
	it, err := p.db.pebble.NewIter(&pebble.IterOptions{LowerBound: key, UpperBound: after(key), OnlyReadGuaranteedDurable: true})
	if err != nil {
		return 0, 0, fmt.Errorf("read flushed state: %w", err)
	}
	var m codec.Meta
	if it.First() {
		m, err = codec.DecodeMeta(it.Value())
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return 0, 0, fmt.Errorf("read flushed state: %w", err)
	}
	return m.Index, m.Term, nil
}

func TestAppliedAndMetaReflectTheLastCommit(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	p := partition(t, db, 9)
	require.Same(t, p, partition(t, db, 9))
	txn := p.Begin()
	*txn.Meta() = machine.Meta{Epoch: 3, Clock: 4, Attempt: 5}
	index, term := p.Applied()
	require.Zero(t, index+term, "not before the commit")
	require.NoError(t, txn.Commit(17, 2))
	index, term = p.Applied()
	require.Equal(t, [2]uint64{17, 2}, [2]uint64{index, term})

	index, _, err := p.durable()
	require.NoError(t, err)
	require.Zero(t, index, "not before a flush")
	wait, err := db.Flush()
	require.NoError(t, err)
	require.NoError(t, wait(t.Context()))
	index, term, err = p.durable()
	require.NoError(t, err)
	require.Equal(t, [2]uint64{17, 2}, [2]uint64{index, term})

	commit(t, p, 18, func(machine.State) {})
	require.NoError(t, db.Close())
	db = openAt(t, dir)
	defer db.Close()
	p = partition(t, db, 9)
	index, term = p.Applied()
	require.Equal(t, [2]uint64{17, 2}, [2]uint64{index, term}, "what was not flushed is gone")
	require.Equal(t, machine.Meta{Epoch: 3, Clock: 4, Attempt: 5}, *p.Begin().Meta())
}

func TestPartitionsAreIsolated(t *testing.T) {
	db := open(t)
	for id := range uint32(3) {
		commit(t, partition(t, db, id), 1, func(s machine.State) {
			s.PutInvocation(&machine.Invocation{ID: testID(1), Status: machine.Invoked, Attempt: uint64(id)})
		})
	}
	for id := range uint32(3) {
		v := partition(t, db, id).View()
		n := 0
		for inv, err := range v.Live() {
			require.NoError(t, err)
			require.EqualValues(t, id, inv.Attempt)
			n++
		}
		require.Equal(t, 1, n)
		require.NoError(t, v.Close())
	}
	_, err := db.Partition(maxPartition + 1)
	require.Error(t, err)
}

func TestDiscardDropsWrites(t *testing.T) {
	p := partition(t, open(t), 1)
	txn := p.Begin()
	txn.PutInvocation(&machine.Invocation{ID: testID(1), Status: machine.Invoked})
	txn.PutOutgoing(1, 1, &machine.Complete{})
	txn.Meta().Epoch = 5
	txn.Discard()
	txn = p.Begin()
	require.Zero(t, *txn.Meta())
	inv, err := txn.Invocation(testID(1))
	require.NoError(t, err)
	require.Nil(t, inv)
	n, err := txn.LastSent(1)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestFailedPartitionRejectsCommits(t *testing.T) {
	p := partition(t, open(t), 1)
	commit(t, p, 5, func(machine.State) {})
	require.Error(t, p.Begin().Commit(5, 1), "an entry is applied once")
	require.Error(t, p.Begin().Commit(6, 1))
	index, _ := p.Applied()
	require.EqualValues(t, 5, index)
}

func TestViewIsASnapshotOfOneCommit(t *testing.T) {
	p := partition(t, open(t), 1)
	commit(t, p, 1, func(s machine.State) {
		s.PutInvocation(&machine.Invocation{ID: testID(1), Status: machine.Invoked, Length: 1})
		s.AppendEntry(testID(1), 0, journal.Entry{Type: journal.Input})
	})
	v := p.View()
	commit(t, p, 2, func(s machine.State) {
		s.DeleteInvocation(testID(1))
		s.DeleteJournal(testID(1), 1)
	})
	meta, err := v.Meta()
	require.NoError(t, err)
	require.EqualValues(t, 1, meta.Index)
	for inv, err := range v.Live() { // reading others while a scan is open
		require.NoError(t, err)
		_, _, err = v.Journal(inv.ID, inv.Length, math.MaxInt)
		require.NoError(t, err)
		_, _, err = v.Journal(inv.ID, inv.Length+1, math.MaxInt)
		require.ErrorIs(t, err, ErrDamaged, "a journal that is shorter than its record says")
		_, _, err = v.Journal(inv.ID, math.MaxUint32, math.MaxInt)
		require.ErrorIs(t, err, ErrDamaged, "by far")
	}
	require.NoError(t, v.Close())
	require.NoError(t, v.Close(), "twice is no harm")

	v = p.View()
	defer v.Close()
	inv, err := v.Invocation(testID(1))
	require.NoError(t, err)
	require.Nil(t, inv)
}

func TestValuesAreBoundedInBytes(t *testing.T) {
	p, o := partition(t, open(t), 1), machine.Object{Service: "S", Key: "k"}
	commit(t, p, 1, func(s machine.State) {
		for _, key := range []string{"a", "b", "c"} {
			s.PutValue(o, []byte(key), []byte("12345"))
		}
	})
	v := p.View()
	defer v.Close()
	for limit, want := range map[int]int{0: 0, 5: 0, 6: 1, 12: 2, 17: 2, 18: 3} {
		entries, complete, err := v.Values(o, limit)
		require.NoError(t, err)
		require.Len(t, entries, want)
		require.Equal(t, want == 3, complete)
	}
	entries, complete, err := v.Values(machine.Object{Service: "S"}, 0)
	require.NoError(t, err)
	require.True(t, complete)
	require.Empty(t, entries)
}

func TestTimersAreReadInParts(t *testing.T) {
	p := partition(t, open(t), 1)
	var all []machine.Timer
	for i := range byte(12) {
		all = append(all, machine.Timer{At: 10 + int64(i)/6, Kind: machine.TimerKind(i / 3 % 2), ID: testID(i), Completion: uint32(9 - i/2), Name: strings.Repeat("n", int(i))})
	}
	slices.SortFunc(all, machine.Timer.Compare)
	commit(t, p, 1, func(s machine.State) {
		for _, timer := range all {
			s.PutTimer(timer)
		}
	})
	v := p.View()
	defer v.Close()
	for count := range 14 {
		due, more, err := v.Timers(all[1], machine.Timer{At: 100}, count+1, 1000)
		require.NoError(t, err)
		require.Equal(t, all[1:min(count+2, 12)], due)
		require.Equal(t, count < 10, more)
	}
	due, more, err := v.Timers(all[0], all[3], 100, 1000)
	require.NoError(t, err)
	require.Equal(t, all[:3], due, "the end is not included")
	require.False(t, more)
	due, more, err = v.Timers(machine.Timer{At: 11}, machine.Timer{At: 12}, 100, 7)
	require.NoError(t, err)
	require.Less(t, len(due), 4, "the names have too many bytes")
	require.True(t, more)
}

func TestCloseWaitsForViewsAndRejectsNewOnes(t *testing.T) {
	db := openAt(t, t.TempDir())
	p := partition(t, db, 1)
	v := p.View()
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	require.Eventually(t, func() bool {
		late := p.View()
		defer late.Close()
		_, err := late.Invocation(testID(1))
		return err != nil
	}, testWait, testTick)
	select {
	case <-closed:
		require.Fail(t, "closed under an open view")
	default:
	}
	_, err := v.Invocation(testID(1))
	require.NoError(t, err)
	require.NoError(t, v.Close())
	require.NoError(t, <-closed)
	_, err = p.View().Meta()
	require.ErrorIs(t, err, ErrClosed)
}

func TestFlushReturnsWhenItsContextEnds(t *testing.T) {
	db := open(t)
	commit(t, partition(t, db, 1), 1, func(machine.State) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db.flusher.running.Lock() // so that it cannot be done before
	wait, err := db.Flush()
	require.NoError(t, err)
	require.ErrorIs(t, wait(ctx), context.Canceled)
	db.flusher.running.Unlock()
	require.NoError(t, wait(t.Context()))
}

func TestMessagesAreReadInParts(t *testing.T) {
	p := partition(t, open(t), 1)
	commit(t, p, 1, func(s machine.State) {
		for seq := range uint64(4) {
			s.PutOutgoing(7, seq+1, &machine.Complete{Result: journal.Result{Value: make([]byte, 1000)}})
		}
	})
	v := p.View()
	defer v.Close()
	for _, c := range []struct{ count, bytes, want int }{{10, 0, 1}, {10, 2000, 1}, {10, 2500, 2}, {10, 3500, 3}, {10, 5000, 4}, {2, 5000, 2}} {
		first, messages, more, err := v.Outgoing(7, 0, c.count, c.bytes)
		require.NoError(t, err)
		require.EqualValues(t, 1, first)
		require.Len(t, messages, c.want, "%d messages of %d bytes", c.count, c.bytes)
		require.Equal(t, c.want < 4, more)
	}
}

func TestAcknowledgingUnsentMessagesKeepsLaterOnes(t *testing.T) {
	p := partition(t, open(t), 1)
	outgoing := func() (n int) {
		v := p.View()
		defer v.Close()
		_, messages, _, err := v.Outgoing(7, 0, 10, 1<<20)
		require.NoError(t, err)
		return len(messages)
	}
	commit(t, p, 1, func(s machine.State) {
		s.PutOutgoing(7, 1, &machine.Complete{})
		s.DeleteOutgoing(7, 1000)
	})
	require.Zero(t, outgoing())
	commit(t, p, 2, func(s machine.State) { s.PutOutgoing(7, 2, &machine.Complete{}) })
	require.Equal(t, 1, outgoing())
	commit(t, p, 3, func(s machine.State) { s.DeleteOutgoing(7, 2) })
	require.Zero(t, outgoing())
}

// A recovery skips sequence numbers; other gaps are damage.
func TestMessagesAroundSkippedNumbersAreReadSeparately(t *testing.T) {
	const skipped = 5 + machine.LostNumbers
	p := partition(t, open(t), 1)
	commit(t, p, 1, func(s machine.State) {
		s.PutOutgoing(7, 5, &machine.Complete{})
		s.PutLastSent(7, skipped)
		s.PutOutgoing(7, skipped+1, &machine.Complete{})
		s.PutOutgoing(7, skipped+2, &machine.Complete{})
	})
	v := p.View()
	defer v.Close()
	first, messages, more, err := v.Outgoing(7, 0, 10, 1<<20)
	require.NoError(t, err)
	require.EqualValues(t, 5, first)
	require.Len(t, messages, 1)
	require.True(t, more)
	first, messages, more, err = v.Outgoing(7, 6, 10, 1<<20)
	require.NoError(t, err)
	require.EqualValues(t, skipped+1, first)
	require.Len(t, messages, 2)
	require.False(t, more)

	commit(t, p, 2, func(s machine.State) { s.PutOutgoing(7, skipped+4, &machine.Complete{}) })
	damaged := p.View()
	defer damaged.Close()
	_, _, _, err = damaged.Outgoing(7, 6, 10, 1<<20)
	require.Error(t, err)
}

// Clearing an object writes few rows, whatever its size, and is visible in the same batch.
func TestClearingAnObjectWritesFewRows(t *testing.T) {
	o, other := machine.Object{Service: "S", Key: "k"}, machine.Object{Service: "S", Key: "l"}
	p := partition(t, open(t), 1)
	commit(t, p, 1, func(s machine.State) {
		for i := range 20_000 {
			s.PutValue(o, fmt.Append(nil, i), []byte("old"))
		}
		s.PutValue(other, []byte("x"), []byte("kept"))
	})
	txn := p.Begin()
	for range 100 {
		txn.DeleteValues(o)
		txn.PutValue(o, []byte("new"), []byte("new"))
	}
	require.Less(t, txn.Rows(), 2*manyRows)
	require.Len(t, txn.ranges, 1)
	require.Equal(t, []string{`"new"="new"`}, listValues(t, txn, o))
	_, found, err := txn.Value(o, []byte("1"))
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, txn.Commit(2, 1))
	txn = p.Begin()
	defer txn.Discard()
	require.Equal(t, []string{`"new"="new"`}, listValues(t, txn, o))
	require.Equal(t, []string{`"x"="kept"`}, listValues(t, txn, other))
}

// A journal that is too large is not read, whether its entries are in chunks or not.
func TestOnlyTheSizeOfALargeJournalIsRead(t *testing.T) {
	const entries, payload = 50, 1000
	for _, large := range []int{0, 100} {
		cutAt(t, large)
		p, id := partition(t, open(t), 1), testID(1)
		commit(t, p, 1, func(s machine.State) {
			for i := range uint32(entries) {
				s.AppendEntry(id, i, journal.Entry{Type: journal.Input, Payload: make([]byte, payload)})
			}
		})
		v := p.View()
		all := entries * limits.JournalEntry(payload)
		for most, complete := range map[int]bool{0: false, payload: false, all - 1: false, all: true} {
			found, size, err := v.Journal(id, entries, most)
			require.NoError(t, err)
			if complete {
				require.Len(t, found, entries)
				require.Equal(t, all, size)
				continue
			}
			require.Nil(t, found)
			require.GreaterOrEqual(t, size, all)
			require.Less(t, size, all+entries*50)
		}
		require.NoError(t, v.Close())
	}
}
