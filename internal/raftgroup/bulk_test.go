package raftgroup

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ordered notes in which order commands are sealed.
type ordered struct {
	mu    sync.Mutex
	order []byte // first byte of each command
}

func (o *ordered) seal(batch [][]byte) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range batch {
		o.order = append(o.order, c[0])
	}
	return sealJournal(batch)
}

func (o *ordered) get() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.order)
}

// Bulk commands are proposed one at a time, in order, and others overtake those that wait.
func TestCommandsOvertakeBulkCommands(t *testing.T) {
	g, _ := aloneGroup(t)
	seal, gate := &ordered{}, NewBulkGate(1)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, Bulk: gate})
	require.NoError(t, err)
	stop := run(t, p)
	require.True(t, gate.enter(make(chan struct{}, 1)), "an entry of another proposer is in flight")
	var large, small outcomes
	for i := range 4 {
		large.wg.Add(1)
		require.NoError(t, p.SubmitBulk(append([]byte{byte('A' + i)}, bytes.Repeat([]byte{'x'}, 1<<20)...), &large))
	}
	for i := range 5 {
		small.expect(t, p, []byte{byte('1' + i)})
	}
	small.wg.Wait()
	gate.leave()
	large.wg.Wait()
	stop()
	require.Empty(t, append(small.errs, large.errs...))
	require.Equal(t, "12345ABCD", seal.get())
}

// A proposer has one bulk command in flight, also if the gate lets in more, so that other
// commands wait for one entry at most.
func TestAProposerHasOneBulkCommandInFlight(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	machine := &hangingMachine{StateMachine: memJournal(t)}
	g, err := Open(n.config(1, machine, n.voter()))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Shutdown(t.Context())) }()
	waitLeader(t, g)
	seal := &ordered{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, Bulk: NewBulkGate(2)})
	require.NoError(t, err)
	stop := run(t, p)
	var o outcomes
	o.wg.Add(3)
	machine.hung.Lock()
	require.NoError(t, p.SubmitBulk([]byte("A"), &o))
	require.Eventually(t, func() bool { return seal.get() == "A" }, 20*time.Second, time.Millisecond)
	require.NoError(t, p.SubmitBulk([]byte("B"), &o))
	require.NoError(t, p.Submit([]byte("1"), &o))
	require.Eventually(t, func() bool { return len(seal.get()) > 1 }, 20*time.Second, time.Millisecond)
	order := seal.get()
	machine.hung.Unlock()
	o.wg.Wait()
	stop()
	require.Equal(t, "A1", order)
}

// Proposers that share a gate have no more bulk entries in flight than it lets in, and all of
// them get their turn.
func TestBulkCommandsOfAllProposersShareAGate(t *testing.T) {
	gate := NewBulkGate(1)
	var o outcomes
	var stops []func()
	for range 3 {
		g, _ := aloneGroup(t)
		p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, Bulk: gate})
		require.NoError(t, err)
		stops = append(stops, run(t, p))
		for range 5 {
			o.wg.Add(1)
			require.NoError(t, p.SubmitBulk(bytes.Repeat([]byte{'x'}, 64<<10), &o))
		}
	}
	o.wg.Wait()
	for _, stop := range stops {
		stop()
	}
	require.Len(t, o.results, 15)
	require.Equal(t, 1, gate.free)
}

// A proposer that waits for the gate still refuses its commands when it stops, and holds no
// place then.
func TestAProposerThatStopsLeavesTheGate(t *testing.T) {
	g, _ := aloneGroup(t)
	gate := NewBulkGate(1)
	require.True(t, gate.enter(make(chan struct{}, 1)))
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, Bulk: gate, MaxQueueBytes: 1 << 20})
	require.NoError(t, err)
	stop := run(t, p)
	var o outcomes
	o.wg.Add(1)
	require.NoError(t, p.SubmitBulk(make([]byte, 1<<20), &o))
	require.ErrorIs(t, p.SubmitBulk(make([]byte, 1), &o), ErrOverloaded)
	stop()
	o.wg.Wait()
	require.Len(t, o.errs, 1)
	require.ErrorIs(t, o.errs[0], ErrStopped)
	gate.leave()
	require.Equal(t, 1, gate.free)
}
