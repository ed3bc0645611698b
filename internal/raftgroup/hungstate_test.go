package raftgroup

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// hangingMachine applies nothing and begins no flush while hung is locked.
type hangingMachine struct {
	StateMachine
	begun atomic.Int64 // calls of Apply
	hung  sync.RWMutex
}

func (m *hangingMachine) Apply(entries []Entry) ([]any, error) {
	m.begun.Add(1)
	m.hung.RLock()
	defer m.hung.RUnlock()
	return m.StateMachine.Apply(entries)
}

func (m *hangingMachine) Flush() (func(context.Context) error, error) {
	m.hung.RLock()
	defer m.hung.RUnlock()
	return m.StateMachine.Flush()
}

// A leader whose state machine hangs completes nothing, but its Raft instance and its
// log are well: without the watchdog it would keep the leadership.
func TestLeaderWithAHungStateIsReplaced(t *testing.T) {
	for name, hang := range map[string]func(t *testing.T, g *Group){
		"apply": func(t *testing.T, g *Group) {
			data, err := sealJournal([][]byte{[]byte("command 1")})
			require.NoError(t, err)
			_, _ = g.Propose(data).Wait(t.Context()) // either is right
		},
		"flush": func(t *testing.T, g *Group) { _ = g.Snapshot(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) { testHungLeader(t, hang) })
	}
}

func testHungLeader(t *testing.T, hang func(t *testing.T, g *Group)) {
	dog := slowDiskWatchdog(t)
	machines := map[raft.ServerID]*hangingMachine{}
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		machines[cfg.LocalID] = &hangingMachine{StateMachine: cfg.StateMachine}
		cfg.StateMachine, cfg.Watchdog = machines[cfg.LocalID], dog
		patient(cfg)
	})
	c.groups[0].port.timeoutNow(time.Minute)
	old := c.leader()
	propose(t, c.groups[old], "command 0")
	machine := machines[c.groups[old].cfg.LocalID]
	machine.hung.Lock()
	var hanging sync.WaitGroup
	hanging.Go(func() { hang(t, c.groups[old]) })
	c.awaitOther(old)
	machine.hung.Unlock()
	hanging.Wait()
}

// openHung opens a group whose leader hangs while it applies an entry, until hung is unlocked.
func openHung(t *testing.T, n *testNode) (*Group, *hangingMachine) {
	machine := &hangingMachine{StateMachine: memJournal(t)}
	g, err := Open(n.config(1, machine, n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	machine.hung.Lock()
	before := machine.begun.Load()
	data, err := sealJournal([][]byte{[]byte("command 1")})
	require.NoError(t, err)
	g.Propose(data)
	require.Eventually(t, func() bool { return machine.begun.Load() > before }, time.Minute, time.Millisecond)
	return g, machine
}

// Whoever stops a replica opens or destroys its state next.
func TestStopReportsAnApplyThatStillRuns(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	g, machine := openHung(t, n)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, g.Stop(ctx), context.DeadlineExceeded)
	select {
	case <-g.Done():
		t.Fatal("stopped while an entry is being applied")
	default:
	}
	machine.hung.Unlock()
	require.NoError(t, g.Stop(t.Context()))
	<-g.Done()
}

// unflushedMachine never becomes durable, as on a full disk.
type unflushedMachine struct {
	StateMachine
	flushing chan struct{}
}

func (m *unflushedMachine) Flush() (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		close(m.flushing)
		<-ctx.Done()
		return context.Cause(ctx)
	}, nil
}

func TestStopDoesNotWaitForAFlush(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	machine := &unflushedMachine{StateMachine: memJournal(t), flushing: make(chan struct{})}
	g, err := Open(n.config(1, machine, n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	propose(t, g, "command 1")
	snapshot := make(chan error, 1)
	go func() { snapshot <- g.Snapshot(t.Context()) }()
	<-machine.flushing
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, g.Stop(ctx))
	require.Error(t, <-snapshot)
	require.NoError(t, g.Err())
}

// Leader, Stats and further calls of Stop must return while a replica waits for its state machine.
func TestAStoppingReplicaCanBeRead(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	g, machine := openHung(t, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, g.Stop(ctx), context.Canceled)
	require.Eventually(t, func() bool { return g.Stats().State == raft.Shutdown.String() }, time.Minute, time.Millisecond)
	g.Leader()
	require.ErrorIs(t, g.Barrier(t.Context()), ErrStopped)
	require.ErrorIs(t, g.Stop(ctx), context.Canceled)
	machine.hung.Unlock()
	require.NoError(t, g.Stop(t.Context()))
}
