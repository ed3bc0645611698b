package partition

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
	"platform/partition/store"
)

// startLister returns a lister of tables, which runs until the test ends.
func startLister(t *testing.T, s *scanned, idle time.Duration) *lister {
	ctx, cancel := context.WithCancel(t.Context())
	x := newLister(s.tables, NewListingMemory(64<<20), ctx.Done())
	x.idle = idle
	var g errgroup.Group
	g.Go(func() error { return x.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		require.NoError(t, g.Wait())
		require.Zero(t, x.memory.active.Load())
		require.Nil(t, x.index)
	})
	return x
}

// statuses returns the numbers of invocations by status according to the index.
func (x *lister) statuses(t *testing.T) (out [listing.Statuses]int) {
	t.Helper()
	var tally listing.Tally
	require.NoError(t, x.read(t.Context(), func(i *listing.Index) {
		tally = listing.Tally{}
		i.Count(&listing.Filter{}, &tally, nil, nil)
	}))
	for _, c := range tally.Result() {
		for s, n := range c.ByStatus {
			out[s] += n
		}
	}
	return out
}

func TestIndexFollowsTheTables(t *testing.T) {
	s := newScanned(t)
	s.fill()
	x := startLister(t, s, time.Hour)
	require.Equal(t, [listing.Statuses]int{listing.Scheduled: scanMany * 3 / 4, listing.Completed: scanMany / 4}, x.statuses(t))
	s.change(func(txn *store.Txn) {
		for n := range 100 {
			txn.DeleteInvocation(scanID(4 * n))
			txn.PutInvocation(scanInvocation(4*n+1, machine.Paused))
		}
		txn.PutInvocation(scanInvocation(scanMany, machine.Scheduled))
	})
	require.Equal(t, [listing.Statuses]int{listing.Scheduled: scanMany*3/4 - 99, listing.Paused: 100, listing.Completed: scanMany/4 - 100}, x.statuses(t))
}

// Commands are applied while the index is built: what it has at the end is what the tables have.
func TestIndexMissesNoChangeWhileItIsBuilt(t *testing.T) {
	s := newScanned(t)
	s.fill()
	x := startLister(t, s, time.Hour)
	statuses := make(chan [listing.Statuses]int)
	go func() { statuses <- x.statuses(t) }()
	for round := 0; ; round++ {
		s.change(func(txn *store.Txn) {
			for n := round * 37 % scanMany; n < scanMany; n += 101 {
				if round%3 == 0 {
					txn.DeleteInvocation(scanID(n))
				} else {
					txn.PutInvocation(scanInvocation(n, machine.Suspended))
				}
			}
		})
		select {
		case <-statuses:
			stored := [listing.Statuses]int{}
			rows, _, _ := s.all(Scan{Table: Invocations, Detail: Whole}, nil)
			for _, r := range rows {
				stored[listing.StatusOf(r.Record.Invocation, listing.Live{})]++
			}
			require.Equal(t, stored, x.statuses(t))
			return
		default:
		}
	}
}

func TestIndexIsDroppedWithoutReaders(t *testing.T) {
	s := newScanned(t)
	s.fill()
	x := startLister(t, s, 20*time.Millisecond)
	first := x.statuses(t)
	require.Eventually(t, func() bool { return !x.try(func(*listing.Index) {}) }, time.Minute, time.Millisecond)
	s.change(func(txn *store.Txn) { txn.DeleteInvocation(scanID(0)) })
	first[listing.Completed]--
	require.Equal(t, first, x.statuses(t), "rebuilt")
}

func TestOutdatedIndexIsRebuilt(t *testing.T) {
	s := newScanned(t)
	s.fill()
	x := startLister(t, s, time.Hour)
	first := x.statuses(t)
	x.mu.RLock() // a slow reader
	for round := 0; !x.feed.outdated(); round++ {
		s.change(func(txn *store.Txn) {
			for n := range 1000 {
				txn.PutInvocation(scanInvocation(n, machine.Paused))
			}
		})
		require.Less(t, round, 2*maxPending/1000, "pending changes are bounded")
	}
	x.mu.RUnlock()
	after := x.statuses(t)
	require.Equal(t, 1000, after[listing.Paused])
	require.Equal(t, first[listing.Scheduled]-750, after[listing.Scheduled])
}

func TestIndexesShareTheMemory(t *testing.T) {
	s := newScanned(t)
	for i := range 10 {
		s.change(func(txn *store.Txn) {
			for n := range 1000 {
				txn.PutInvocation(scanInvocation(1000*i+n, machine.Completed))
			}
		})
	}
	x := startLister(t, s, time.Hour)
	x.memory.limit = 1 << 20
	x.statuses(t)
	size, from := 0, int64(0)
	measure := func(i *listing.Index) { size, from = i.Bytes(), i.CompleteFrom() }
	require.NoError(t, x.read(t.Context(), measure))
	require.Zero(t, from)
	x.memory.active.Add(1) // another partition
	defer x.memory.active.Add(-1)
	require.NoError(t, x.read(t.Context(), measure))
	require.LessOrEqual(t, size, x.memory.limit/2)
	require.Positive(t, from)
}

func TestReadersOfAnEndedLeadershipAreNotified(t *testing.T) {
	s := newScanned(t)
	ended := make(chan struct{})
	x := newLister(s.tables, NewListingMemory(1<<20), ended)
	close(ended)
	require.ErrorIs(t, x.read(t.Context(), nil), ErrNotLeader)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("gone"))
	x = newLister(s.tables, NewListingMemory(1<<20), nil)
	require.EqualError(t, x.read(ctx, nil), "gone")
}

// Up to 511 changes wait for the next reader, of invocations that may have failed with
// messages of megabytes.
func TestPendingChangesKeepLittleOfLargeFailures(t *testing.T) {
	f := &feed{x: &lister{filled: make(chan struct{}, 1)}}
	long := strings.Repeat("x", 1<<20)
	inv := machine.Invocation{
		Result:  &journal.Result{Failure: &journal.Failure{Code: 500, Message: long, Metadata: []journal.Metadata{{Key: "k", Value: long}}}},
		Failure: &machine.AttemptFailure{Code: 500, ErrorCode: "RT0007", Message: long, Stacktrace: long, RelatedName: long},
		Await:   &journal.Future{Names: []string{long}},
	}
	f.Changed(ids.Invocation{}, &inv)
	kept := f.pending[0].inv
	message := long[:listing.MessagePrefix]
	require.Equal(t, &journal.Result{Failure: &journal.Failure{Code: 500, Message: message}}, kept.Result)
	require.Equal(t, &machine.AttemptFailure{Code: 500, ErrorCode: "RT0007", Message: message}, kept.Failure)
	require.Nil(t, kept.Await)
	require.Len(t, inv.Failure.Message, len(long), "the record is shared")
}

// An invocation consists of parts of the log entries that it has come with.
func TestPendingChangesDoNotRetainLogEntries(t *testing.T) {
	f := &feed{x: &lister{filled: make(chan struct{}, 1)}}
	change := func() weak.Pointer[byte] {
		entry := make([]byte, 1<<20)
		text := unsafe.String(&entry[0], 4)
		f.Changed(ids.Invocation{}, &machine.Invocation{
			Target: machine.Target{Service: text, Key: text, Handler: text}, IdempotencyKey: &text,
			Result: &journal.Result{Value: entry[:4]}, Failure: &machine.AttemptFailure{ErrorCode: text, Message: text},
		})
		return weak.Make(&entry[0])
	}
	entry := change()
	runtime.GC()
	require.Nil(t, entry.Value())
	require.Len(t, f.pending, 1)
}

func TestPendingChangesWithLongKeysAreBounded(t *testing.T) {
	f := &feed{x: &lister{filled: make(chan struct{}, 1)}}
	f.x.mu.RLock() // a slow reader
	inv := machine.Invocation{Target: machine.Target{Key: strings.Repeat("k", 1<<20)}}
	changes := 0
	for ; !f.outdated(); changes++ {
		f.Changed(ids.Invocation{}, &inv)
		require.Equal(t, changes >= 3, len(f.x.filled) > 0, "applied soon")
	}
	require.Equal(t, 64, changes)
	require.Zero(t, f.bytes)
}
