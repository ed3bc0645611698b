package raftgroup

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestEntriesAreStoredInTheOrderOfTheirProposals(t *testing.T) {
	var o proposalOrder
	first, second, third, other := []byte("1"), []byte("2"), []byte("3"), []byte("other")
	logs := func(data ...[]byte) (out []*raft.Log) {
		for _, d := range data {
			out = append(out, &raft.Log{Data: d})
		}
		return out
	}
	o.add(first)
	o.add(second)
	require.NoError(t, o.store(logs(other, first, nil, second)))
	require.Empty(t, o.proposed)

	o.add(first)
	o.add(second)
	o.add(third)
	o.undo()
	require.ErrorIs(t, o.store(logs(second)), errGap)
	require.ErrorIs(t, o.store(logs(other, second)), errGap)
	o.reset()
	o.add(second)
	require.NoError(t, o.store(logs(second)))
}

// Raft refuses an entry because of a leadership transfer, and accepts the next one because the transfer has failed. If that
// one were stored, the journal of an invocation could lack a step.
func TestWhatFollowsARefusedEntryIsNotStored(t *testing.T) {
	g, storage := heldGroup(t)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, MaxBatchCommands: 1})
	require.NoError(t, err)
	defer run(t, p)()
	var before, after outcomes

	write := storage.Hold()
	before.expect(t, p, []byte("before"))
	<-write.Arrived
	p.mu.Lock()
	p.order.add([]byte("refused"))
	p.mu.Unlock()
	after.expect(t, p, []byte("after"))
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.order.proposed) == 2
	}, time.Minute, time.Millisecond)
	close(write.Released)
	before.wg.Wait() // the entry was stored; whether it is committed depends on the next leader
	after.wg.Wait()
	require.Len(t, after.errs, 1)
	require.ErrorIs(t, after.errs[0], ErrUnknownOutcome)
	require.ErrorIs(t, after.errs[0], errGap)

	// The replica leads again, and the proposer has no entry in flight.
	for {
		var o outcomes
		o.expect(t, p, []byte("later"))
		o.wg.Wait()
		if len(o.errs) == 0 {
			break
		}
		require.ErrorIs(t, o.errs[0], ErrNotLeader)
	}
}

// What was stored, or not passed to Raft, does not stay in memory.
func TestOrderForgetsStoredEntries(t *testing.T) {
	var o proposalOrder
	var large [3]weak.Pointer[byte]
	func() {
		for i := range large {
			data := make([]byte, 1<<20)
			large[i] = weak.Make(&data[0])
			o.add(data)
		}
		logs := []*raft.Log{{Data: unsafe.Slice(o.proposed[0], 1<<20)}, {Data: unsafe.Slice(o.proposed[1], 1<<20)}}
		require.NoError(t, o.store(logs))
	}()
	o.undo()
	runtime.GC()
	for i := range large {
		require.Nil(t, large[i].Value(), "entry %d", i)
	}
	runtime.KeepAlive(&o)
}
