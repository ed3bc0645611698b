package raftgroup

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// ordered notes in which order commands are sealed; an entry that others join is sealed again.
type ordered struct {
	mu    sync.Mutex
	order []byte // first byte of each command
}

func (o *ordered) seal(batch [][]byte) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range batch {
		if !bytes.Contains(o.order, c[:1]) {
			o.order = append(o.order, c[0])
		}
	}
	return sealJournal(batch)
}

func (o *ordered) get() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.order)
}

func bulkOf(command []byte) Bulk {
	return Bulk{Size: len(command), Encode: func() ([]byte, error) { return command, nil }}
}

// Bulk commands are proposed one at a time, in order, and others overtake those that wait.
func TestCommandsOvertakeBulkCommands(t *testing.T) {
	g, _ := aloneGroup(t)
	seal, gate := &ordered{}, NewBulkGate(1)
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, Bulk: gate})
	require.NoError(t, err)
	stop := run(t, p)
	require.True(t, gate.enter(1, make(chan struct{}, 1)), "an entry of another proposer is in flight")
	var large, small outcomes
	for i := range 4 {
		large.wg.Add(1)
		require.NoError(t, p.SubmitBulk(bulkOf(append([]byte{byte('A' + i)}, bytes.Repeat([]byte{'x'}, 1<<20)...)), &large))
	}
	for i := range 5 {
		small.expect(t, p, []byte{byte('1' + i)})
	}
	small.wg.Wait()
	gate.leave(1)
	large.wg.Wait()
	stop()
	require.Empty(t, append(small.errs, large.errs...))
	require.Equal(t, "12345ABCD", seal.get())
}

// A proposer has one bulk command in flight, even if the gate admits more, so that other
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
	require.NoError(t, p.SubmitBulk(bulkOf([]byte("A")), &o))
	require.Eventually(t, func() bool { return seal.get() == "A" }, time.Minute, time.Millisecond)
	require.NoError(t, p.SubmitBulk(bulkOf([]byte("B")), &o))
	require.NoError(t, p.Submit([]byte("1"), 0, &o))
	require.Eventually(t, func() bool { return len(seal.get()) > 1 }, time.Minute, time.Millisecond)
	order := seal.get()
	commands, bulk := p.Backlog()
	machine.hung.Unlock()
	o.wg.Wait()
	stop()
	require.Equal(t, "A1", order)
	require.Equal(t, 1, commands)
	require.True(t, bulk)
	commands, bulk = p.Backlog()
	require.Zero(t, commands)
	require.False(t, bulk)
}

// What is submitted after an ordered bulk command was proposed does not join the entry before it.
func TestCommandsDoNotOvertakeAProposedBulkCommand(t *testing.T) {
	g, storage := heldGroup(t)
	seal := &ordered{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal})
	require.NoError(t, err)
	defer run(t, p)()
	var o outcomes
	write := storage.Hold()
	o.expect(t, p, []byte("1"))
	<-write.Arrived
	p.stored() // so that the next one is proposed while this one is held
	o.expect(t, p, []byte("2"))
	var waiting *sentEntry[uint64]
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		waiting = p.open
		return waiting != nil
	}, time.Minute, time.Millisecond)
	o.wg.Add(1)
	bulk := bulkOf([]byte("A"))
	bulk.Ordered = true
	require.NoError(t, p.SubmitBulk(bulk, &o))
	require.Eventually(t, func() bool { return strings.Contains(seal.get(), "A") }, time.Minute, time.Millisecond)
	o.expect(t, p, []byte("3"))
	p.mu.Lock()
	p.joinLocked(&raft.Log{Data: waiting.data}) // Raft is about to store it
	p.mu.Unlock()
	order := seal.get()
	close(write.Released)
	o.wg.Wait()
	require.Equal(t, "12A", order)
	require.Empty(t, o.errs)
}

// Proposers that share a gate have no more bulk entries in flight than it admits, and all of
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
			require.NoError(t, p.SubmitBulk(bulkOf(bytes.Repeat([]byte{'x'}, 64<<10)), &o))
		}
	}
	o.wg.Wait()
	for _, stop := range stops {
		stop()
	}
	require.Len(t, o.results, 15)
	require.Zero(t, gate.entries)
}

// A proposer that waits for the gate still refuses its commands when it stops, and holds no
// place then.
func TestAProposerThatStopsLeavesTheGate(t *testing.T) {
	g, _ := aloneGroup(t)
	gate := NewBulkGate(1)
	require.True(t, gate.enter(1, make(chan struct{}, 1)))
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, Bulk: gate, maxQueueBytes: 1 << 20})
	require.NoError(t, err)
	stop := run(t, p)
	var o outcomes
	o.wg.Add(1)
	require.NoError(t, p.SubmitBulk(bulkOf(make([]byte, 1<<20)), &o))
	require.ErrorIs(t, p.SubmitBulk(bulkOf(make([]byte, 1)), &o), ErrOverloaded)
	stop()
	o.wg.Wait()
	require.Len(t, o.errs, 1)
	require.ErrorIs(t, o.errs[0], ErrStopped)
	gate.leave(1)
	require.Zero(t, gate.entries)
}

// Commands in the queue of bulk are encoded one by one as they are proposed, and one that cannot
// be encoded gets the error.
func TestBulkCommandsAreEncodedWhenTheyAreProposed(t *testing.T) {
	g, _ := aloneGroup(t)
	gate := NewBulkGate(1)
	require.True(t, gate.enter(1, make(chan struct{}, 1)))
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, Bulk: gate})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	var o outcomes
	var encoded atomic.Int32
	o.wg.Add(3)
	for i := range 3 {
		require.NoError(t, p.SubmitBulk(Bulk{Size: 1, Encode: func() ([]byte, error) {
			if encoded.Add(1); i == 1 {
				return nil, errInvalid
			}
			return []byte("x"), nil
		}}, &o))
	}
	o.expect(t, p, []byte("1"))
	require.Eventually(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.results) == 1 }, time.Minute, time.Millisecond)
	require.Zero(t, encoded.Load())
	gate.leave(1)
	o.wg.Wait()
	require.Len(t, o.results, 3)
	require.Equal(t, []error{errInvalid}, o.errs)
}

var errInvalid = errors.New("cannot be encoded")

// An ordered bulk command follows the commands that were submitted before it, although bulk
// commands are proposed first otherwise, and precedes other bulk commands.
func TestAnOrderedBulkCommandDoesNotOvertake(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	machine := &hangingMachine{StateMachine: memJournal(t)}
	g, err := Open(n.config(1, machine, n.voter()))
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Shutdown(t.Context())) }()
	waitLeader(t, g)
	seal := &ordered{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal, maxInFlight: 1})
	require.NoError(t, err)
	stop := run(t, p)
	defer stop()
	var o outcomes
	o.wg.Add(6)
	machine.hung.Lock()
	require.NoError(t, p.SubmitBulk(bulkOf([]byte("0")), &o))
	require.Eventually(t, func() bool { return seal.get() == "0" }, time.Minute, time.Millisecond)
	require.NoError(t, p.Submit([]byte("1"), 0, &o))
	require.Eventually(t, func() bool { return seal.get() == "01" }, time.Minute, time.Millisecond)
	require.NoError(t, p.SubmitBulk(bulkOf([]byte("X")), &o))
	require.NoError(t, p.Submit([]byte("2"), 0, &o))
	for _, c := range []string{"A", "B"} {
		ordered := bulkOf([]byte(c))
		ordered.Ordered = true
		require.NoError(t, p.SubmitBulk(ordered, &o))
	}
	machine.hung.Unlock()
	o.wg.Wait()
	order := seal.get()
	require.Equal(t, "01", order[:2])
	require.Less(t, strings.Index(order, "2"), strings.Index(order, "A"))
	require.Less(t, strings.Index(order, "A"), strings.Index(order, "B"))
	require.Less(t, strings.Index(order, "B"), strings.Index(order, "X"))
}

// However many ordered commands are submitted, another one is proposed after a few of them.
func TestOrderedBulkCommandsDoNotStarveOthers(t *testing.T) {
	g, _ := aloneGroup(t)
	seal := &ordered{}
	p, err := NewProposer[uint64](g, ProposerConfig{Seal: seal.seal})
	require.NoError(t, err)
	var o outcomes
	submit := func(c string, ordered bool) {
		b := bulkOf([]byte(c))
		b.Ordered = ordered
		o.wg.Add(1)
		require.NoError(t, p.SubmitBulk(b, &o))
	}
	submit("X", false)
	for c := 'a'; c <= 'l'; c++ { // before Run: all of them wait
		submit(string(c), true)
	}
	submit("Y", false)
	stop := run(t, p)
	o.wg.Wait()
	stop()
	require.Empty(t, o.errs)
	require.Equal(t, "abcdXefghYijkl", seal.get())
}

// The gate bounds bytes, admits a larger entry alone, and keeps the order of waiting ones.
func TestTheGateBoundsBytes(t *testing.T) {
	g := NewBulkGate(10)
	wakes := make([]chan struct{}, 4)
	for i := range wakes {
		wakes[i] = make(chan struct{}, 1)
	}
	require.True(t, g.enter(4, wakes[0]))
	require.True(t, g.enter(6, wakes[0]))
	require.False(t, g.enter(30, wakes[1]))
	g.leave(4)
	require.False(t, g.enter(4, wakes[2]), "not before the larger one")
	<-wakes[1]
	require.False(t, g.enter(30, wakes[1]))
	g.leave(6)
	<-wakes[1]
	require.True(t, g.enter(30, wakes[1]), "alone")
	<-wakes[2]
	require.False(t, g.enter(4, wakes[2]))
	require.False(t, g.enter(6, wakes[3]))
	g.leave(30)
	<-wakes[2]
	require.True(t, g.enter(4, wakes[2]))
	<-wakes[3]
	require.True(t, g.enter(6, wakes[3]))
	require.False(t, g.enter(1, wakes[0]))
	require.False(t, g.enter(1, wakes[1]))
	g.forget(wakes[0])
	<-wakes[1]
	g.leave(4)
	<-wakes[1]
	require.True(t, g.enter(1, wakes[1]))
	require.Empty(t, g.waiting)
}
