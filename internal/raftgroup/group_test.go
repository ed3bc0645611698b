package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

func TestEightSingleMemberGroupsLeadImmediately(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	var configs []Config
	leading := make(chan uint32, 8)
	for id := range uint32(8) {
		cfg := n.config(id, memJournal(t), n.voter())
		cfg.Profile = Safe()
		patient(&cfg)
		cfg.Lead = func(ctx context.Context, _ uint64) error {
			leading <- id
			<-ctx.Done()
			return nil
		}
		configs = append(configs, cfg)
	}
	start := time.Now()
	groups := make([]*Group, len(configs))
	var wg sync.WaitGroup
	for i, cfg := range configs {
		wg.Go(func() {
			g, err := Open(cfg)
			if err != nil {
				t.Error(err)
				return
			}
			groups[i] = g
		})
	}
	for range configs {
		<-leading
	}
	took := time.Since(start)
	t.Logf("8 groups lead after %v", took)
	wg.Wait()
	require.Less(t, took, configs[0].Profile.HeartbeatTimeout, "waited for an election time-out")
	for _, g := range groups {
		require.NoError(t, g.Shutdown(t.Context()))
	}
}

// propose proposes one command and waits.
func propose(t *testing.T, g *Group, command string) {
	t.Helper()
	data, err := sealJournal([][]byte{[]byte(command)})
	require.NoError(t, err)
	_, err = g.Propose(data).Wait(t.Context())
	require.NoError(t, err)
}

func proposeMany(t *testing.T, g *Group, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		propose(t, g, fmt.Sprint("command ", i))
	}
}

func requireCommands(t *testing.T, j *journal, n int) {
	t.Helper()
	got, err := j.commands()
	require.NoError(t, err)
	require.Len(t, got, n)
	for i, c := range got {
		require.Equal(t, fmt.Sprint("command ", i+1), c)
	}
}

// TestRestartReplaysFromTheAppliedIndex loses what the state database did not
// flush, like a crash, and requires the log to bring back exactly that.
func TestRestartReplaysFromTheAppliedIndex(t *testing.T) {
	dir := t.TempDir()
	state := vfs.NewCrashableMem()
	n := startNode(t, dir, "")
	j, err := openJournal("state", state)
	require.NoError(t, err)
	g, err := Open(n.config(1, j, n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 30)
	require.NoError(t, g.Snapshot(t.Context()))
	flushed := j.Applied()
	proposeMany(t, g, 31, 50)
	all := j.Applied()
	crashed := state.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, g.Shutdown(t.Context()))
	require.NoError(t, j.db.Close())
	address := string(n.address())
	n.stop()

	n = startNode(t, dir, address)
	defer n.stop()
	j, err = openJournal("state", crashed)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.db.Close()) }()
	require.Equal(t, flushed, j.Applied(), "the crash should lose what was not flushed")
	g, err = Open(n.config(1, j, n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	require.NoError(t, g.Barrier(t.Context()))
	handed := j.handedIndexes()
	require.Len(t, handed, 20)
	require.Greater(t, handed[0], flushed.Index)
	require.Equal(t, all.Index, handed[len(handed)-1])
	requireCommands(t, j, 50)
	propose(t, g, "command 51")
	requireCommands(t, j, 51)
	require.NoError(t, g.Shutdown(t.Context()))
}

func TestSnapshotCutsTheLogOfASingleMember(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	j := memJournal(t)
	cfg := n.config(1, j, n.voter())
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	require.NoError(t, g.Snapshot(t.Context()), "nothing to record is no error")
	proposeMany(t, g, 1, 50)
	require.NoError(t, g.Snapshot(t.Context()))
	st := g.Stats()
	require.Equal(t, st.LastIndex, st.FirstIndex, "no other member needs the entries")
	require.Equal(t, st.LastIndex, st.SnapshotIndex)
	require.Positive(t, j.flushes)
	require.NoError(t, g.Shutdown(t.Context()))
}

func TestSnapshotLeavesTrailingEntriesForFollowers(t *testing.T) {
	const trailing = 10
	c := newTestCluster(t, trailing)
	l := c.leader()
	proposeMany(t, c.groups[l], 1, 50)
	require.NoError(t, c.groups[l].Snapshot(t.Context()))
	st := c.groups[l].Stats()
	require.Equal(t, st.LastIndex-trailing+1, st.FirstIndex)
}

// testCluster is one group on three nodes of this process.
type testCluster struct {
	t        *testing.T
	nodes    [3]*testNode
	journals [3]*journal
	groups   [3]*Group
	voters   []raft.Server
	dirs     [3]string
	trailing uint64
	change   func(*Config)
	gates    [3]*gates // on the connections that a node has dialed
}

func newTestCluster(t *testing.T, trailing uint64) *testCluster {
	return newTestClusterWith(t, trailing, nil)
}

func newTestClusterWith(t *testing.T, trailing uint64, change func(*Config)) *testCluster {
	c := &testCluster{t: t, trailing: trailing, change: change}
	for i := range c.nodes {
		c.gates[i] = newGates()
		c.dirs[i] = filepath.Join(t.TempDir(), "log")
		c.nodes[i] = startNode(t, c.dirs[i], "", c.gates[i].dialer())
		c.journals[i] = memJournal(t)
		c.voters = append(c.voters, c.nodes[i].voter())
	}
	for i := range c.nodes {
		c.open(i)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	return c
}

func (c *testCluster) open(i int) {
	cfg := c.nodes[i].config(1, c.journals[i], c.voters...)
	cfg.Profile.TrailingLogs = c.trailing
	if c.change != nil {
		c.change(&cfg)
	}
	g, err := Open(cfg)
	require.NoError(c.t, err)
	c.groups[i] = g
}

func (c *testCluster) stop(i int) {
	if c.groups[i] == nil {
		return
	}
	require.NoError(c.t, c.groups[i].Shutdown(context.Background()))
	c.nodes[i].stop()
	c.groups[i] = nil
}

func (c *testCluster) restart(i int) {
	c.nodes[i] = startNode(c.t, c.dirs[i], string(c.voters[i].Address), c.gates[i].dialer())
	c.open(i)
}

// connect waits until a node has a working stream to another one: a vote that is requested
// before may be lost, and is not repeated until the election timeout.
func (c *testCluster) connect(from, to int) {
	c.t.Helper()
	peers := c.nodes[from].transport.peers
	require.Eventually(c.t, func() bool {
		peers.Connect(c.voters[to].Address)
		return peers.Connected(c.voters[to].Address)
	}, time.Minute, time.Millisecond)
}

// awaitOther waits until another replica than old leads, and says how long that took.
func (c *testCluster) awaitOther(old int) {
	c.t.Helper()
	begin := time.Now()
	require.Eventually(c.t, func() bool {
		return slices.ContainsFunc(c.groups[:], func(g *Group) bool { return g != c.groups[old] && g.IsLeader() })
	}, time.Minute, time.Millisecond)
	c.t.Logf("another replica leads after %v", time.Since(begin))
}

func (c *testCluster) leader() int {
	leader := -1
	require.Eventually(c.t, func() bool {
		for i, g := range c.groups {
			if g != nil && g.IsLeader() && g.Barrier(c.t.Context()) == nil {
				leader = i
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	return leader
}

func (c *testCluster) awaitSame() {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		at := c.journals[0].Applied()
		return c.journals[1].Applied() == at && c.journals[2].Applied() == at
	}, time.Minute, time.Millisecond)
}

func TestFollowerCatchesUpFromTheLog(t *testing.T) {
	c := newTestCluster(t, 1000)
	l := c.leader()
	f := (l + 1) % 3
	proposeMany(t, c.groups[l], 1, 10)
	c.awaitSame() // the other one would take a dead follower for the leader that it does not know yet
	c.stop(f)
	proposeMany(t, c.groups[l], 11, 60)
	require.NoError(t, c.groups[l].Snapshot(t.Context()))
	c.restart(f)
	c.awaitSame()
	require.Zero(t, c.journals[f].imports)
	requireCommands(t, c.journals[f], 60)
}

func TestFollowerCatchesUpByASnapshot(t *testing.T) {
	c := newTestCluster(t, 5)
	l := c.leader()
	f := (l + 1) % 3
	proposeMany(t, c.groups[l], 1, 10)
	c.awaitSame() // the other one would take a dead follower for the leader that it does not know yet
	c.stop(f)
	proposeMany(t, c.groups[l], 11, 60)
	require.NoError(t, c.groups[l].Snapshot(t.Context()))
	proposeMany(t, c.groups[l], 61, 70) // the state goes beyond the record
	c.restart(f)
	c.awaitSame()
	require.Equal(t, 1, c.journals[f].imports)
	requireCommands(t, c.journals[f], 70)

	// What was installed survives a restart and votes.
	c.stop(f)
	c.restart(f)
	proposeMany(t, c.groups[c.leader()], 71, 75)
	c.awaitSame()
	require.NoError(t, c.groups[c.leader()].TransferLeadership(t.Context(), c.voters[f].ID))
	require.Eventually(t, func() bool { return c.leader() == f }, time.Minute, time.Millisecond)
	proposeMany(t, c.groups[f], 76, 80)
	c.awaitSame()
	for _, j := range c.journals {
		requireCommands(t, j, 80)
	}
}

func TestNewReplicaJoinsBySnapshotAndIsPromoted(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	cfg := n.config(1, memJournal(t), n.voter())
	cfg.Profile.TrailingLogs = 5
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 40)
	require.NoError(t, g.Snapshot(t.Context()))

	n2 := startNode(t, t.TempDir(), "")
	defer n2.stop()
	j2 := memJournal(t)
	g2, err := Open(n2.config(1, j2))
	require.NoError(t, err)
	require.NoError(t, g.AddNonvoter(t.Context(), n2.voter().ID, n2.address()))
	require.Eventually(t, func() bool { return j2.Applied() == cfg.StateMachine.Applied() }, time.Minute, time.Millisecond)
	require.Equal(t, 1, j2.imports)
	require.NoError(t, g.AddVoter(t.Context(), n2.voter().ID, n2.address()))
	require.NoError(t, g.ConfirmLeadership(t.Context(), g.Stats().Term))
	require.Len(t, g.Servers(), 2)
	require.NoError(t, g.TransferLeadership(t.Context(), ""))
	waitLeader(t, g2)
	require.NoError(t, g2.RemoveServer(t.Context(), n.voter().ID))
	propose(t, g2, "command 41")
	requireCommands(t, j2, 41)
	require.NoError(t, g2.Shutdown(t.Context()))
	require.NoError(t, g.Shutdown(t.Context()))
}

// The transfer of a large state must not take the bandwidth that calls need.
func TestSnapshotsAreSentAtABoundedRate(t *testing.T) {
	const bytes, perSecond = 4 << 20, 4 << 20
	const burst = 256 << 10 // sent without waiting
	n := startNodeWith(t, t.TempDir(), "", TransportConfig{SnapshotRate: perSecond})
	defer n.stop()
	cfg := n.config(1, memJournal(t), n.voter())
	cfg.Profile.TrailingLogs = 1
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	for range bytes / (64 << 10) {
		propose(t, g, strings.Repeat("x", 64<<10))
	}
	require.NoError(t, g.Snapshot(t.Context()))

	n2 := startNode(t, t.TempDir(), "")
	defer n2.stop()
	j2 := memJournal(t)
	g2, err := Open(n2.config(1, j2))
	require.NoError(t, err)
	begin := time.Now()
	require.NoError(t, g.AddNonvoter(t.Context(), n2.voter().ID, n2.address()))
	require.Eventually(t, func() bool { return j2.Applied() == cfg.StateMachine.Applied() }, time.Minute, time.Millisecond)
	require.Equal(t, 1, j2.imports)
	took := time.Since(begin)
	require.NoError(t, g2.Shutdown(t.Context()))
	require.NoError(t, g.Shutdown(t.Context()))
	require.Greater(t, took, (bytes-2*burst)*time.Second/perSecond)
}

func TestFailedStateMachineStopsTheGroup(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	j := memJournal(t)
	cfg := n.config(1, j, n.voter())
	failed := make(chan error, 1)
	cfg.OnFailed = func(err error) { failed <- err }
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 3)
	j.mu.Lock()
	j.failAt = j.at.Index + 1
	j.mu.Unlock()
	_, err = g.Propose([]byte{1, 'x'}).Wait(t.Context())
	require.ErrorIs(t, err, ErrUnknownOutcome)
	require.ErrorIs(t, <-failed, errPlanted)
	<-g.Done()
	require.ErrorIs(t, g.Err(), errFailed)
	_, err = g.Propose([]byte{1, 'y'}).Wait(t.Context())
	require.True(t, Definite(err), err)
	require.Error(t, g.Snapshot(t.Context()))
	requireCommands(t, j, 3)
}

func TestLeadRunsWhileLeadingAndEndsBeforeShutdown(t *testing.T) {
	c := newTestCluster(t, 100)
	l := c.leader()
	id := c.voters[l].ID
	c.stop(l)

	events := make(chan string, 10)
	n := startNode(t, c.dirs[l], string(c.voters[l].Address))
	cfg := n.config(1, c.journals[l], c.voters...)
	cfg.Lead = func(ctx context.Context, term uint64) error {
		events <- "leads"
		<-ctx.Done()
		events <- "ends"
		return ctx.Err()
	}
	g, err := Open(cfg)
	require.NoError(t, err)
	c.nodes[l], c.groups[l] = n, g
	for !g.IsLeader() {
		err := c.groups[c.leader()].TransferLeadership(t.Context(), id)
		if err == nil {
			waitLeader(t, g)
		}
	}
	require.Equal(t, "leads", <-events)
	require.NoError(t, g.TransferLeadership(t.Context(), ""))
	require.Equal(t, "ends", <-events)
	require.ErrorIs(t, g.TransferLeadership(t.Context(), ""), ErrNotLeader)
	require.ErrorIs(t, g.ConfirmLeadership(t.Context(), g.Stats().Term), ErrNotLeader)
}

func TestLeaderThatCannotDoItsDutiesResigns(t *testing.T) {
	c := newTestCluster(t, 100)
	l := c.leader()
	c.stop(l)
	n := startNode(t, c.dirs[l], string(c.voters[l].Address))
	cfg := n.config(1, c.journals[l], c.voters...)
	called := make(chan struct{}, 10)
	cfg.Lead = func(context.Context, uint64) error {
		called <- struct{}{}
		return errors.New("cannot")
	}
	g, err := Open(cfg)
	require.NoError(t, err)
	c.nodes[l], c.groups[l] = n, g
	require.Eventually(t, func() bool {
		_ = c.groups[c.leader()].TransferLeadership(t.Context(), c.voters[l].ID)
		return len(called) > 0
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return c.leader() != l }, time.Minute, time.Millisecond)
}

func TestShutdownTransfersLeadership(t *testing.T) {
	c := newTestClusterWith(t, 100, patient)
	c.groups[0].port.timeoutNow(time.Minute)
	l := c.leader()
	start := time.Now()
	c.stop(l)
	next := c.leader()
	took := time.Since(start)
	t.Logf("next leader after %v", took)
	require.NotEqual(t, l, next)
	require.Less(t, took, 30*time.Second, "the election time-out is a minute")
}

func TestKnownLeaderIsReported(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	cfg := n.config(1, memJournal(t), n.voter())
	seen := make(chan Leader, 10)
	cfg.OnLeaderChange = func(l Leader) { seen <- l }
	g, err := Open(cfg)
	require.NoError(t, err)
	want := Leader{ID: cfg.LocalID, Address: n.address()}
	require.Equal(t, want, <-seen)
	require.Equal(t, want, g.Leader())
	require.NoError(t, g.Shutdown(t.Context()))
}

func TestRebuiltInstanceContinues(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	j := memJournal(t)
	g, err := Open(n.config(1, j, n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 20)
	old := g.current()
	g.requestRebuild("test")
	require.Eventually(t, func() bool { return g.current() != old && g.IsLeader() }, time.Minute, time.Millisecond)
	proposeMany(t, g, 21, 30)
	requireCommands(t, j, 30)
	require.NoError(t, g.Shutdown(t.Context()))
}

// TestAFailedRebuildStopsItsGroupOnly rebuilds the Raft instance on a log in which an entry was
// damaged meanwhile.
func TestAFailedRebuildStopsItsGroupOnly(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	cfg := n.config(1, memJournal(t), n.voter())
	storage := &damagedStorage{Storage: cfg.Storage}
	cfg.Storage, cfg.Profile.LogCacheBytes = storage, 1
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 20)
	storage.at.Store(g.Stats().LastIndex - 1)
	g.requestRebuild("test")
	<-g.Done()
	require.ErrorIs(t, g.Err(), ErrQuarantined)
	require.NoError(t, g.Stop(t.Context()))
	require.False(t, g.IsLeader())
}

func TestEndlessTransferRebuildsTheInstance(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	g, err := Open(n.config(1, memJournal(t), n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	old := g.current()
	g.noteTransfer(raft.ErrLeadershipTransferInProgress)
	g.noteTransfer(nil)
	require.Nil(t, g.stuckSince.Load())
	g.noteTransfer(raft.ErrLeadershipTransferInProgress)
	begun := g.stuckSince.Load().Add(-3*Test().ElectionTimeout - time.Millisecond)
	g.stuckSince.Store(&begun)
	g.noteTransfer(raft.ErrLeadershipTransferInProgress)
	require.Eventually(t, func() bool { return g.current() != old }, time.Minute, time.Millisecond)
	require.NoError(t, g.Shutdown(t.Context()))
}

func TestMetadataStorageRunsAGroup(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	path := filepath.Join(t.TempDir(), "meta", "raft.db")
	j := memJournal(t)
	for round := range 3 {
		bolt, err := logstore.OpenBolt(path, logstore.BoltOptions{Logger: testLogger(t)})
		require.NoError(t, err)
		cfg := n.config(9, j, n.voter())
		cfg.Storage = bolt
		cfg.Profile.TrailingLogs = 3
		g, err := Open(cfg)
		require.NoError(t, err)
		waitLeader(t, g)
		require.NoError(t, g.Barrier(t.Context()))
		proposeMany(t, g, 10*round+1, 10*round+10)
		require.NoError(t, g.Snapshot(t.Context()))
		require.NoError(t, g.Shutdown(t.Context()))
		require.NoError(t, bolt.Close())
	}
	requireCommands(t, j, 30)
}

// TestAFormerLeaderSendsNothing: the others would take it for alive.
func TestAFormerLeaderSendsNothing(t *testing.T) {
	c := newTestCluster(t, 100)
	l := c.leader()
	f := (l + 1) % 3
	term := c.groups[l].Stats().Term
	send := func(from, to int, term uint64) error {
		var resp raft.AppendEntriesResponse
		return c.groups[from].port.AppendEntries(c.voters[to].ID, c.voters[to].Address, &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(c.voters[from].ID), Addr: []byte(c.voters[from].Address)}, Term: term,
		}, &resp)
	}
	require.NoError(t, send(l, f, term))
	require.ErrorIs(t, send(l, f, term-1), errDeposed)
	require.ErrorIs(t, send(f, l, term), errDeposed)
}

// TestInterruptedBootstrapIsCompleted ends the process between the two writes of the first
// configuration, term and entry: the group would otherwise have no members for good.
func TestInterruptedBootstrapIsCompleted(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	cfg := n.config(1, memJournal(t), n.voter())
	require.NoError(t, cfg.Storage.SetUint64(keyCurrentTerm, 1))
	g, err := Open(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Stop(context.Background())) }()
	require.Equal(t, []raft.Server{n.voter()}, g.Servers())
	waitLeader(t, g)
	propose(t, g, "command 1")
}
