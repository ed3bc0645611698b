package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

// changingGroup is one group over nodes that come and go.
type changingGroup struct {
	t        *testing.T
	trailing uint64
	where    sync.Map // raft.ServerID → raft.ServerAddress, what AddressOf says
	nodes    map[raft.ServerID]*changingNode
}

type changingNode struct {
	*testNode
	id      raft.ServerID
	journal *journal
	group   *Group
}

func newChangingGroup(t *testing.T, trailing uint64) *changingGroup {
	return &changingGroup{t: t, trailing: trailing, nodes: map[raft.ServerID]*changingNode{}}
}

// start opens a replica; the first one makes the group, the others wait to be
// added. A node that was stopped keeps its log and state.
func (f *changingGroup) start(id raft.ServerID, dir, address string) *changingNode {
	f.t.Helper()
	n := f.nodes[id]
	first := len(f.nodes) == 0
	if n == nil {
		n = &changingNode{id: id, journal: memJournal(f.t)}
		f.nodes[id] = n
		f.t.Cleanup(func() { f.stop(id) }) // before its state is closed
	}
	n.testNode = startNode(f.t, dir, address)
	n.transport.cfg.AddressOf = func(id raft.ServerID) raft.ServerAddress {
		if at, ok := f.where.Load(id); ok {
			return at.(raft.ServerAddress)
		}
		return ""
	}
	var voters []raft.Server
	if first {
		voters = []raft.Server{{ID: id, Address: n.address()}}
	}
	cfg := n.config(1, n.journal, voters...)
	cfg.LocalID = id
	cfg.Profile.TrailingLogs = f.trailing
	g, err := Open(cfg)
	require.NoError(f.t, err)
	n.group = g
	return n
}

func (f *changingGroup) stop(id raft.ServerID) {
	n := f.nodes[id]
	if n.group == nil {
		return
	}
	require.NoError(f.t, n.group.Shutdown(context.Background()))
	n.testNode.stop()
	n.group = nil
}

func (f *changingGroup) leader() *changingNode {
	f.t.Helper()
	var leader *changingNode
	require.Eventually(f.t, func() bool {
		for _, n := range f.nodes {
			if n.group != nil && n.group.IsLeader() && n.group.Barrier(f.t.Context()) == nil {
				leader = n
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	return leader
}

func (f *changingGroup) servers(ids ...raft.ServerID) (out []raft.Server) {
	for _, id := range ids {
		out = append(out, raft.Server{ID: id, Address: f.nodes[id].address()})
	}
	return out
}

// reconcile runs Reconcile on the current leader until the members are the desired ones.
func (f *changingGroup) reconcile(desired []raft.Server) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer cancel()
	for {
		l := f.leader()
		err := l.group.Reconcile(ctx, desired)
		if err == nil {
			require.ElementsMatch(f.t, desired, l.group.Configuration().Servers)
			require.ElementsMatch(f.t, desired, l.group.Servers())
			return
		}
		require.ErrorIs(f.t, err, ErrNotLeader)
	}
}

func (f *changingGroup) awaitCommands(id raft.ServerID, n int) {
	f.t.Helper()
	j := f.nodes[id].journal
	require.Eventually(f.t, func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.count >= uint64(n) }, time.Minute, time.Millisecond)
	requireCommands(f.t, j, n)
}

func TestGroupGrowsMovesAndShrinks(t *testing.T) {
	f := newChangingGroup(t, 10)
	for _, id := range []raft.ServerID{"a", "b", "c", "d"} {
		f.start(id, t.TempDir(), "")
	}
	require.Zero(t, f.nodes["b"].group.Configuration(), "a replica that waits to be added knows no group")
	require.Zero(t, f.nodes["b"].group.Leader())
	a := f.leader()
	require.Equal(t, raft.ServerID("a"), a.id)
	proposeMany(t, a.group, 1, 300)
	require.NoError(t, a.group.Snapshot(t.Context())) // what joins needs the state

	f.reconcile(f.servers("a", "b", "c"))
	proposeMany(t, a.group, 301, 310)
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		f.awaitCommands(id, 310)
	}
	require.Eventually(t, func() bool {
		known := a.group.Followers()
		return len(known) == 2 && known[0].CaughtUp && known[1].CaughtUp && known[0].Lag+known[1].Lag == 0
	}, time.Minute, time.Millisecond)
	require.Nil(t, f.nodes["b"].group.Followers(), "only the leader knows")

	f.reconcile(f.servers("b", "c", "d")) // the leader itself goes
	require.NotEqual(t, raft.ServerID("a"), f.leader().id)
	proposeMany(t, f.leader().group, 311, 320)
	for _, id := range []raft.ServerID{"b", "c", "d"} {
		f.awaitCommands(id, 320)
	}
	f.stop("a")
	require.NoError(t, destroyGroup(f, "a"))

	f.reconcile(f.servers("d"))
	require.Equal(t, raft.ServerID("d"), f.leader().id)
	proposeMany(t, f.leader().group, 321, 330)
	f.awaitCommands("d", 330)
}

// destroyGroup removes what a stopped node's log has of the group.
func destroyGroup(f *changingGroup, id raft.ServerID) error {
	db, err := logstore.Open(f.nodes[id].dir, logstore.Options{Logger: testLogger(f.t)})
	if err != nil {
		return err
	}
	if err := db.Destroy(1); err != nil {
		return err
	}
	s, err := db.Storage(1)
	if err != nil {
		return err
	}
	if last, err := s.LastIndex(); err != nil || last != 0 {
		return fmt.Errorf("log up to %d is left: %w", last, err)
	}
	return db.Close()
}

func TestReconcileWaitsForAReplicaUntilTheTimeout(t *testing.T) {
	f := newChangingGroup(t, 1000)
	a := f.start("a", t.TempDir(), "")
	f.start("b", t.TempDir(), "")
	proposeMany(t, f.leader().group, 1, 10)
	desired := f.servers("a", "b")
	f.stop("b")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := a.group.Reconcile(ctx, desired)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "b does not respond")
	require.Equal(t, raft.Nonvoter, a.group.Configuration().Servers[1].Suffrage, "it has no vote before it answers")
	propose(t, a.group, "command 11") // the group works on
	f.reconcile(f.servers("a"))
	require.Len(t, a.group.Servers(), 1)
}

func TestReconcileIsForTheLeader(t *testing.T) {
	f := newChangingGroup(t, 1000)
	f.start("a", t.TempDir(), "")
	b := f.start("b", t.TempDir(), "")
	require.ErrorIs(t, b.group.Reconcile(t.Context(), f.servers("a", "b")), ErrNotLeader)
	f.reconcile(f.servers("a", "b"))
	require.ErrorIs(t, b.group.Reconcile(t.Context(), f.servers("a", "b")), ErrNotLeader)
	require.Error(t, f.leader().group.Reconcile(t.Context(), nil))
}

// TestMembersReturnAtOtherAddresses restarts all members elsewhere, so that
// the addresses in their configurations lead nowhere.
func TestMembersReturnAtOtherAddresses(t *testing.T) {
	f := newChangingGroup(t, 1000)
	ids := []raft.ServerID{"a", "b", "c"}
	dirs := map[raft.ServerID]string{}
	for _, id := range ids {
		dirs[id] = t.TempDir()
		f.start(id, dirs[id], "")
	}
	f.reconcile(f.servers(ids...))
	proposeMany(t, f.leader().group, 1, 20)
	old := map[raft.ServerID]raft.ServerAddress{}
	for _, id := range ids {
		old[id] = f.nodes[id].address()
		f.stop(id)
	}
	for _, id := range ids {
		n := f.start(id, dirs[id], "")
		require.NotEqual(t, old[id], n.address())
		f.where.Store(id, n.address())
	}
	f.reconcile(f.servers(ids...))
	f.where.Clear() // the configuration is enough now
	proposeMany(t, f.leader().group, 21, 40)
	for _, id := range ids {
		f.awaitCommands(id, 40)
	}
}

// TestAWipedNodeIsAnotherReplica loses one node's disk. What returns at its
// address must not be mistaken for the replica that voted and acknowledged.
func TestAWipedNodeIsAnotherReplica(t *testing.T) {
	f := newChangingGroup(t, 1000)
	for _, id := range []raft.ServerID{"a", "b", "c1"} {
		f.start(id, t.TempDir(), "")
	}
	f.reconcile(f.servers("a", "b", "c1"))
	proposeMany(t, f.leader().group, 1, 50)
	if l := f.leader(); l.id == "c1" {
		require.NoError(t, l.group.TransferLeadership(t.Context(), "a"))
	}
	l := f.leader()
	address := string(f.nodes["c1"].address())
	f.stop("c1")
	c2 := f.start("c2", t.TempDir(), address)

	var resp raft.RequestVoteResponse
	err := l.group.port.RequestVote("c1", raft.ServerAddress(address), &raft.RequestVoteRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a"), Addr: []byte(l.address())}, Term: 1000,
	}, &resp)
	require.ErrorContains(t, err, errOtherReplica.Error(), "it has forgotten what the old one promised")
	require.False(t, resp.Granted)
	proposeMany(t, l.group, 51, 60)
	require.Zero(t, c2.journal.Applied(), "it got entries that were for the old one")

	f.reconcile(f.servers("a", "b", "c2"))
	proposeMany(t, f.leader().group, 61, 70)
	f.awaitCommands("c2", 70)
}

func TestRemovalOfDataIsFinishedAfterACrash(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer func() { n.stop() }()
	j := memJournal(t)
	g, err := Open(n.config(1, j, n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 10)
	require.NoError(t, g.Shutdown(t.Context()))
	require.NoError(t, n.db.BeginDestroy(1))
	n.stop()

	n = startNode(t, n.dir, "")
	_, err = Open(n.config(1, j, n.voter()))
	require.ErrorIs(t, err, ErrLeaving)
	require.NoError(t, n.db.Destroy(1))
	require.NoError(t, n.db.Destroy(1), "again after it is done")
	g, err = Open(n.config(1, memJournal(t)))
	require.NoError(t, err, "a fresh replica may take the place")
	require.Zero(t, g.Stats().LastIndex)
	require.NoError(t, g.Shutdown(t.Context()))
}

// TestAClosedReplicaIsNotLive stops a replica whose node continues: the leader must not count
// on it until the heartbeat timeout, since its data may be removed.
func TestAClosedReplicaIsNotLive(t *testing.T) {
	f := newChangingGroup(t, 1000)
	for _, id := range []raft.ServerID{"a", "b"} {
		f.start(id, t.TempDir(), "")
	}
	f.reconcile(f.servers("a", "b"))
	a := f.leader()
	other := raft.ServerID("b")
	if a.id == other {
		other = "a"
	}
	term := a.group.Stats().Term
	require.Eventually(t, func() bool { return !a.group.port.followers.of(other, term).contact.IsZero() }, time.Minute, time.Millisecond)
	require.NoError(t, f.nodes[other].group.Stop(t.Context()))
	require.Eventually(t, func() bool { return a.group.port.followers.of(other, term).contact.IsZero() }, time.Minute, time.Millisecond)
}

// TestAppendsWaitForAPeerThatIsDown checks that Raft's delay after failed appends does not grow
// while a peer is down: it would have to wait that long when it returns.
func TestAppendsWaitForAPeerThatIsDown(t *testing.T) {
	f := newChangingGroup(t, 1000)
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		f.start(id, t.TempDir(), "")
	}
	f.reconcile(f.servers("a", "b", "c"))
	dir, address := f.nodes["c"].dir, string(f.nodes["c"].address())
	f.stop("c")
	l := f.leader()
	proposeMany(t, l.group, 1, 10)
	waiting := func(n int32) {
		t.Helper()
		require.Eventually(t, func() bool { return f.leader().group.port.awaiting.Load() == n }, time.Minute, time.Millisecond)
	}
	waiting(1)
	f.start("c", dir, address)
	f.awaitCommands("c", 10)
	waiting(0)

	f.stop("c")
	l = f.leader()
	proposeMany(t, l.group, 11, 20)
	waiting(1)
	f.reconcile(f.servers("a", "b"))
	waiting(0) // the peer was removed
}

// TestAppendsWaitForAReplicaThatIsClosed does the same for a replica whose node is up, as while
// it starts.
func TestAppendsWaitForAReplicaThatIsClosed(t *testing.T) {
	f := newChangingGroup(t, 1000)
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		f.start(id, t.TempDir(), "")
	}
	f.reconcile(f.servers("a", "b", "c"))
	l := f.leader()
	closed := raft.ServerID("c")
	if l.id == closed {
		closed = "b"
	}
	n := f.nodes[closed]
	require.NoError(t, n.group.Stop(t.Context()))
	proposeMany(t, l.group, 1, 10)
	waiting := func(count int32) {
		t.Helper()
		require.Eventually(t, func() bool { return l.group.port.awaiting.Load() == count }, time.Minute, time.Millisecond)
	}
	waiting(1)
	cfg := n.config(1, n.journal)
	cfg.LocalID, cfg.Profile.TrailingLogs = closed, f.trailing
	var err error
	n.group, err = Open(cfg)
	require.NoError(t, err)
	f.awaitCommands(closed, 10)
	waiting(0)
}

// TestSnapshotsWaitForAPeerThatIsDown does the same for a failed snapshot, which also must not
// retain the exported state meanwhile.
func TestSnapshotsWaitForAPeerThatIsDown(t *testing.T) {
	f := newChangingGroup(t, 1000)
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		f.start(id, t.TempDir(), "")
	}
	f.reconcile(f.servers("a", "b", "c"))
	dir, address := f.nodes["c"].dir, f.nodes["c"].address()
	f.stop("c")
	l := f.leader()
	proposeMany(t, l.group, 1, 10)
	require.NoError(t, l.group.Snapshot(t.Context()))
	waiting := func(n int32) {
		t.Helper()
		require.Eventually(t, func() bool { return l.group.port.awaiting.Load() == n }, time.Minute, time.Millisecond)
	}
	waiting(1) // the append
	snaps, err := l.group.snaps.List()
	require.NoError(t, err)
	meta, data, err := l.group.snaps.Open(snaps[0].ID)
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() {
		req := &raft.InstallSnapshotRequest{Term: l.group.Stats().Term, LastLogIndex: meta.Index, LastLogTerm: meta.Term}
		sent <- l.group.port.InstallSnapshot("c", address, req, &raft.InstallSnapshotResponse{}, data)
	}()
	waiting(2)
	require.Empty(t, sent)
	require.Zero(t, l.group.storage.retention.Holds())
	f.start("c", dir, string(address))
	require.NoError(t, <-sent)
	waiting(0)
	f.awaitCommands("c", 10)
}

// busyImports is a state machine that rejects imports.
type busyImports struct {
	*journal
	accepts  *atomic.Bool
	rejected *atomic.Int32
}

func (b *busyImports) Import() (Importer, error) {
	if !b.accepts.Load() {
		b.rejected.Add(1)
		return nil, errors.New("busy")
	}
	return b.journal.Import()
}

// TestRejectedSnapshotsAreSentAgain has a follower that rejects snapshots for a while. Raft
// does not learn of this, since it would double its delay each time.
func TestRejectedSnapshotsAreSentAgain(t *testing.T) {
	var accepts atomic.Bool
	var rejected atomic.Int32
	c := newTestClusterWith(t, 10, func(cfg *Config) {
		cfg.StateMachine = &busyImports{journal: cfg.StateMachine.(*journal), accepts: &accepts, rejected: &rejected}
	})
	l := c.leader()
	f := (l + 1) % 3
	proposeMany(t, c.groups[l], 1, 10)
	c.stop(f)
	proposeMany(t, c.groups[l], 11, 60)
	require.NoError(t, c.groups[l].Snapshot(t.Context()))
	snaps, err := c.groups[l].snaps.List()
	require.NoError(t, err)
	meta, data, err := c.groups[l].snaps.Open(snaps[0].ID)
	require.NoError(t, err)
	exported := meta.Index
	proposeMany(t, c.groups[l], 61, 70)
	c.restart(f)
	require.Equal(t, l, c.leader())

	port := c.groups[l].port
	req := &raft.InstallSnapshotRequest{
		Term: c.groups[l].Stats().Term, LastLogIndex: meta.Index, LastLogTerm: meta.Term,
		Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex,
	}
	var resp raft.InstallSnapshotResponse
	sent := make(chan error, 1)
	go func() { sent <- port.InstallSnapshot(c.voters[f].ID, c.voters[f].Address, req, &resp, data) }()
	require.Eventually(t, func() bool { // this one and that of Raft
		return len(sent) > 0 || port.awaiting.Load() == 2 && rejected.Load() >= 10
	}, time.Minute, time.Millisecond)
	require.Empty(t, sent)
	accepts.Store(true)
	require.NoError(t, <-sent)
	require.NoError(t, data.Close())
	require.True(t, resp.Success)
	require.Greater(t, meta.Index, exported, "Raft gets the index of what was sent last")
	require.Equal(t, meta.Index, req.LastLogIndex)
	c.awaitSame()
}
