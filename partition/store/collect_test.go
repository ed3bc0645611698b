package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"platform/partition/journal"
	"platform/partition/machine"
)

// rowsOf counts the rows of a table in the database.
func rowsOf(t *testing.T, p *Partition, table byte) (n int) {
	lower := p.space.table(nil, table)
	it, err := p.db.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: after(lower)})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	require.NoError(t, it.Close())
	return n
}

func TestCommitsAreCollectedUntilSomethingNeedsTheRows(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	id := testID(1)
	commit(t, p, 1, func(s machine.State) {
		inv, err := s.Invocation(id)
		require.NoError(t, err)
		require.Nil(t, inv)
		s.PutInvocation(&machine.Invocation{ID: id, Status: machine.Invoked, Attempt: 1})
		s.AppendEntry(id, 0, journal.Entry{Type: journal.Input})
	})
	commit(t, p, 2, func(s machine.State) {
		inv, err := s.Invocation(id)
		require.NoError(t, err)
		inv.Status, inv.Result = machine.Completed, &journal.Result{}
		s.PutInvocation(inv)
	})
	index, _ := p.Applied()
	require.EqualValues(t, 2, index)
	require.Zero(t, rowsOf(t, p, tableMeta)+rowsOf(t, p, tableJournal), "nothing is written yet")

	v := p.View()
	inv, err := v.Invocation(id)
	require.NoError(t, err)
	require.Equal(t, machine.Completed, inv.Status)
	meta, err := v.Meta()
	require.NoError(t, err)
	require.EqualValues(t, 2, meta.Index)
	require.NoError(t, v.Close())
	require.Equal(t, 1, rowsOf(t, p, tableDone))
	require.Equal(t, 1, rowsOf(t, p, tableJournal))
	require.EqualValues(t, 0, db.pebble.Metrics().Keys.TombstoneCount, "the live record was never written, so it is not deleted")

	for n := uint64(3); rowsOf(t, p, tableLocks) == 0; n++ {
		require.Less(t, n, uint64(defaultCollected)+10, "a full set is written")
		commit(t, p, n, func(s machine.State) { s.PutLock(machine.Object{Key: string(rune(n))}, machine.Lock{Holder: id}) })
	}
}

// Otherwise small rows could keep much memory: log entries, or results that were only read.
func TestCommitsThatHoldMuchMemoryAreWritten(t *testing.T) {
	p := partition(t, open(t), 1)
	id := testID(1)
	commit(t, p, 1, func(s machine.State) {
		s.PutInvocation(&machine.Invocation{ID: id, Status: machine.Completed, Result: &journal.Result{Value: make([]byte, 600<<10)}})
	})
	require.NoError(t, p.Settle())
	for n, held := range []int{1, collectedHeld - 2, 0} {
		commit(t, p, uint64(2+n), func(s machine.State) { s.(*Txn).Hold(held) })
		require.True(t, p.collected.Load())
	}
	commit(t, p, 5, func(s machine.State) { s.(*Txn).Hold(1) })
	require.False(t, p.collected.Load())

	commit(t, p, 6, func(s machine.State) { s.(*Txn).Hold(500 << 10) })
	require.True(t, p.collected.Load())
	commit(t, p, 7, func(s machine.State) {
		_, err := s.Invocation(id)
		require.NoError(t, err)
	})
	require.False(t, p.collected.Load())
}

// The names of a call may have 3 MiB, and are in the key of each row of the object.
func TestLongKeysAndRecordsAreNotCollected(t *testing.T) {
	const long = 300 << 10
	object := func(n int) machine.Object {
		return machine.Object{Service: "S", Key: strings.Repeat(string(rune('a'+n)), long)}
	}
	for name, c := range map[string]struct{ before, change func(machine.State) }{
		"lock":    {nil, func(s machine.State) { s.PutLock(object(0), machine.Lock{Holder: testID(1)}) }},
		"waiting": {nil, func(s machine.State) { s.PutWaiting(object(0), 1, testID(1)) }},
		"promise": {nil, func(s machine.State) { s.DeletePromise(object(0), "p") }},
		"timer":   {nil, func(s machine.State) { s.PutTimer(machine.Timer{Kind: machine.TimerPromise, Name: object(0).Key}) }},
		"deleted state": {
			func(s machine.State) { s.PutValue(object(0), []byte("k"), []byte("v")) },
			func(s machine.State) { s.DeleteValues(object(0)) },
		},
		"deleted range": {
			func(s machine.State) {
				for n := range 2 * manyRows {
					s.PutValue(object(0), []byte{byte(n)}, nil)
				}
			},
			func(s machine.State) { s.DeleteValues(object(0)) },
		},
		"waiters": {nil, func(s machine.State) {
			s.PutInvocation(&machine.Invocation{ID: testID(1), Status: machine.Invoked, Sinks: make([]machine.Sink, 10_000)})
		}},
		"records that are only read": {
			func(s machine.State) {
				for n := range 4 {
					s.PutInvocation(&machine.Invocation{ID: testID(byte(n)), Status: machine.Completed, Target: machine.Target{Key: object(n).Key}, Result: &journal.Result{}})
				}
			},
			func(s machine.State) {
				for n := range 4 {
					_, err := s.Invocation(testID(byte(n)))
					require.NoError(t, err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := partition(t, open(t), 1)
			if c.before != nil {
				commit(t, p, 1, c.before)
				require.NoError(t, p.Settle())
			}
			commit(t, p, 2, c.change)
			require.False(t, p.collected.Load())
			require.Empty(t, p.cache.locks)
		})
	}
}

func TestFlushIncludesCollectedCommitsOfAllPartitions(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	for n := range uint32(3) {
		commit(t, partition(t, db, n), uint64(10+n), func(s machine.State) {})
	}
	wait, err := db.Flush()
	require.NoError(t, err)
	require.NoError(t, wait(t.Context()))
	require.NoError(t, db.Close())
	db = openAt(t, dir)
	defer func() { require.NoError(t, db.Close()) }()
	for n := range uint32(3) {
		index, _ := partition(t, db, n).Applied()
		require.EqualValues(t, 10+n, index)
	}
}

// Otherwise views would show an older state than what was acknowledged, and the partition
// would continue without the discarded entries.
func TestAPartitionThatLostCollectedCommitsFails(t *testing.T) {
	db := open(t)
	p := partition(t, db, 1)
	commit(t, p, 1, func(s machine.State) {})
	require.NoError(t, p.Settle())
	p.Begin().Discard()
	commit(t, p, 2, func(s machine.State) {})
	p.Begin().Discard()
	require.ErrorIs(t, p.Begin().Commit(3, 1), errDiscarded)
	require.ErrorIs(t, p.Settle(), errDiscarded)
	v := p.View()
	_, err := v.Meta()
	require.ErrorIs(t, err, errDiscarded)
	require.NoError(t, v.Close())

	commit(t, partition(t, db, 2), 1, func(s machine.State) {})
	wait, err := db.Flush()
	require.NoError(t, err)
	require.NoError(t, wait(t.Context()), "other partitions continue")
}

// The status of a node must not depend on one partition, which may hang.
func TestMetaDoesNotWaitForATransaction(t *testing.T) {
	p := partition(t, open(t), 1)
	commit(t, p, 1, func(s machine.State) { s.Meta().Rules = 7 })
	require.NoError(t, p.Settle())
	txn := p.Begin()
	txn.Meta().Rules = 8
	require.EqualValues(t, 7, p.Meta().Rules)
	txn.Discard()
}

// A commit can fail because of a damaged row, which concerns one partition only.
func TestAPartitionThatFailedDoesNotKeepOthersFromBeingFlushed(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir)
	failed, other := partition(t, db, 1), partition(t, db, 2)
	commit(t, failed, 1, func(s machine.State) {})
	txn := failed.Begin()
	txn.fail(ErrDamaged)
	require.ErrorIs(t, txn.Commit(2, 1), ErrDamaged)
	commit(t, other, 7, func(s machine.State) {})
	wait, err := db.Flush()
	require.NoError(t, err)
	require.NoError(t, wait(t.Context()))
	require.ErrorIs(t, failed.Settle(), ErrDamaged)
	require.NoError(t, db.Close())

	db = openAt(t, dir)
	defer func() { require.NoError(t, db.Close()) }()
	index, _ := partition(t, db, 2).Applied()
	require.EqualValues(t, 7, index)
}

// The numbers of new notifications are known to be unused, whichever way the knowledge began.
func TestNotificationsAreFoundWithAndWithoutKnowledge(t *testing.T) {
	for name, between := range map[string]func(p *Partition){
		"collected": func(*Partition) {},
		"written":   func(p *Partition) { require.NoError(t, p.Settle()) },
		"forgotten": func(p *Partition) {
			require.NoError(t, p.Settle())
			p.cache = newCache(p.db.opts.RecordCacheBytes)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := partition(t, open(t), 1)
			id, index := testID(1), uint64(0)
			notified := func(s machine.State, n journal.NotificationID) journal.Settled {
				how, err := s.Notified(id, n)
				require.NoError(t, err)
				return how
			}
			do := func(change func(s machine.State)) {
				index++
				commit(t, p, index, func(s machine.State) {
					_, err := s.Invocation(id)
					require.NoError(t, err)
					change(s)
				})
				between(p)
			}
			do(func(s machine.State) { s.PutInvocation(&machine.Invocation{ID: id, Status: machine.Invoked}) })
			for n := range uint32(2 * manyRows) {
				do(func(s machine.State) {
					require.Equal(t, journal.Pending, notified(s, journal.Completion(n)))
					s.PutNotified(id, journal.Completion(n), journal.Succeeded)
				})
			}
			do(func(s machine.State) {
				require.Equal(t, journal.Succeeded, notified(s, journal.Completion(5)))
				require.Equal(t, journal.Pending, notified(s, journal.NamedSignal("a")))
				s.PutNotified(id, journal.NamedSignal("a"), journal.Failed)
			})
			do(func(s machine.State) { require.Equal(t, journal.Failed, notified(s, journal.NamedSignal("a"))) })
			index++
			commit(t, p, index, func(s machine.State) { s.PutNotified(id, journal.Completion(900), journal.Failed) }) // without the record
			do(func(s machine.State) { require.Equal(t, journal.Failed, notified(s, journal.Completion(900))) })
		})
	}
}
