package replicas

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster"
	"platform/internal/cluster/datadir"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/internal/diskspace"
	"platform/internal/feature"
	"platform/internal/pebbledb"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
	"platform/metadata"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/store"
	nodepb "platform/proto/node"
)

// noAttempts is an Invoker for partitions without invocations.
type noAttempts struct{ partition.Invoker }

type noSession struct{ attempts.Session }

func (noAttempts) Open(attempts.Partition) attempts.Session { return noSession{} }
func (noSession) Close()                                    {}

// testReconciler returns the Reconciler of a node that is alone and has no open replica.
func testReconciler(t *testing.T) (m *Reconciler) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	id := datadir.Identity{Cluster: "c", Node: "n1", Incarnation: "x", Founder: true}
	self := raft.Server{ID: raft.ServerID(id.ReplicaID()), Address: "127.0.0.1:1"} // never dialed
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{ClusterID: "c", NodeID: "n1", Address: self.Address, Logger: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, transport.Close()) })
	logs, err := logstore.Open(filepath.Join(dir, "log"), logstore.Options{Logger: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.cfg.Logs.Close()) })
	tables, err := store.Open(filepath.Join(dir, "state"), store.Options{Logger: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })
	hard, err := hardstate.Open(filepath.Join(dir, "HARDSTATE"), id.Incarnation, nil, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hard.Close()) })
	meta, err := metadata.Open(metadata.Config{
		Dir: filepath.Join(dir, "metadata"), LocalID: self.ID, Transport: transport, Voters: []raft.Server{self}, Profile: raftgroup.Test(), Logger: log,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, meta.Close()) })
	_, err = meta.Provision(t.Context(), metadata.Cluster{Name: "c", Partitions: 1, FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	_, err = meta.RegisterNode(t.Context(), metadata.Node{Name: id.Node, Incarnation: id.Incarnation, FabricAddress: "http://" + string(self.Address), FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	return New(Config{
		Self: id, Node: self, DataDir: dir, Store: meta, Router: routing.New(1, fabric.DirectoryConfig{}),
		Logs: logs, Tables: tables, Hard: hard, ShutdownTimeout: time.Minute, Log: log,
		Partition: partition.Config{Group: raftgroup.Config{Transport: transport, Profile: raftgroup.Test()}, Invoker: noAttempts{}, Log: log},
	})
}

// TestAnInterruptedRemovalIsFinished interrupts the removal of a replica, whose partition
// has returned to the node before the next start: it begins with an empty replica, which
// the leader adds.
func TestAnInterruptedRemovalIsFinished(t *testing.T) {
	m := testReconciler(t)
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	require.NoError(t, m.cfg.Logs.BeginDestroy(partition.GroupID(0)))

	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p = m.Replica(0)
	defer func() { require.NoError(t, p.Stop(context.Background())) }()
	require.NotEqual(t, m.cfg.Node.ID, p.LocalID())
	st := p.Status()
	require.Zero(t, st.Last, "the new replica is empty")
	require.Empty(t, st.Members.Servers)
}

// knownReplicas is what the other nodes know about replicas.
type knownReplicas struct {
	Nodes
	newest []string
}

func (k knownReplicas) Statuses(context.Context, bool) cluster.Statuses {
	return cluster.Statuses{2: &nodepb.StatusResponse{Replicas: []*nodepb.ReplicaStatus{{Newest: k.newest}}}}
}

// TestAReplicaWithoutAReadableRecordIsRebuilt damages both copies of a replica's record. Its
// number is unknown, but the replica must not stay in quarantine, nor use a number again.
func TestAReplicaWithoutAReadableRecordIsRebuilt(t *testing.T) {
	m := testReconciler(t)
	m.cfg.Nodes = knownReplicas{newest: []string{"n1/x#4", "n2/y#9"}}
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	path := filepath.Join(m.cfg.DataDir, "HARDSTATE")
	damageRecords(t, path)
	var err error
	m.cfg.Hard, err = hardstate.Open(path, m.cfg.Self.Incarnation, nil, m.cfg.Log)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.cfg.Hard.Close()) }()

	require.True(t, m.quarantined(0, m.openReplica(t.Context(), 0, layout)))
	require.NoError(t, m.rebuild(t.Context(), 0))
	require.Empty(t, m.Quarantine(0))
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p = m.Replica(0)
	defer func() { require.NoError(t, p.Stop(context.Background())) }()
	node, number := metadata.ReplicaNode(p.LocalID())
	require.Equal(t, m.cfg.Node.ID, node)
	require.Greater(t, number, uint32(4))
	require.Zero(t, p.Status().Last)
}

// damageRecords flips a bit in each record of a hard-state file.
func damageRecords(t *testing.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	const head, slot = 4096, 128
	for at := head; at+slot <= len(data); at += slot {
		if data[at] != 0 {
			data[at+16] ^= 1
		}
	}
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// TestAReplicaWhoseLogCannotBeOpenedIsRebuilt damages the block with the first entry of a log. Removing the log must not
// depend on it. The block also contains the first entry of another log, which has to be removed as well.
func TestAReplicaWhoseLogCannotBeOpenedIsRebuilt(t *testing.T) {
	m := testReconciler(t)
	m.cfg.Nodes = knownReplicas{}
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	other := partition.GroupID(1)
	logs, err := m.cfg.Logs.Storage(other)
	require.NoError(t, err)
	for i := range uint64(100) { // more than a block, so that the marks are in another one
		require.NoError(t, logs.StoreLog(&raft.Log{Index: i + 1, Term: 1, Data: make([]byte, 200)}))
	}
	m.reopenLogs(t) // writes the entries to a table
	m.reopenLogs(t, logstoretest.DamageTables)

	require.True(t, m.quarantined(0, m.openReplica(t.Context(), 0, layout)))
	require.Contains(t, m.Quarantine(0), "restore the whole data directory")
	require.ErrorIs(t, m.rebuild(t.Context(), 0), pebbledb.ErrSharedBlock)
	require.NoError(t, m.cfg.Logs.Destroy(other))
	require.NoError(t, m.rebuild(t.Context(), 0))
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p = m.Replica(0)
	require.NotEqual(t, m.cfg.Node.ID, p.LocalID())
	require.Zero(t, p.Status().Last)
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	m.reopenLogs(t)
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p = m.Replica(0)
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
}

// TestDamageThatACompactionFinds does not quarantine the only replica of a partition, whether or not there are other nodes:
// none of them has a copy, and until the damaged data is needed the partition can be used.
func TestDamageThatACompactionFinds(t *testing.T) {
	m := testReconciler(t)
	m.cfg.OnFailed = func(err error) { t.Error(err) }
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	file := pebbledb.DamagedFile{Path: "state/000007.sst", Reason: errors.New("checksum mismatch")}
	report := func() {
		damaged := map[uint32]*damagedReplica{}
		m.damaged(damaged, file, []uint32{0}, nil)
		m.quarantineDispensable(t.Context(), damaged)
		require.Empty(t, damaged)
	}
	report()
	require.Empty(t, m.Quarantine(0))
	_, err := m.cfg.Store.RegisterNode(t.Context(), metadata.Node{Name: "n2", Incarnation: "y", FabricAddress: "http://127.0.0.1:2", FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	report()
	require.Never(t, func() bool { return m.Quarantine(0) != "" }, 100*time.Millisecond, time.Millisecond)
	require.True(t, p.Leading())
	p.Quarantine(file)
	require.Eventually(t, func() bool { return m.Quarantine(0) != "" }, time.Minute, time.Millisecond)
	require.Contains(t, m.Quarantine(0), "state/000007.sst is damaged")
	require.Contains(t, m.Quarantine(0), "no other node has a replica")
	require.Contains(t, m.Quarantine(0), "repair accept-loss")
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
}

// reopenLogs closes the log database, changes its directory, and opens it again.
func (rc *Reconciler) reopenLogs(t *testing.T, changes ...func(t testing.TB, dir string)) {
	dir := filepath.Join(rc.cfg.DataDir, "log")
	require.NoError(t, rc.cfg.Logs.Close())
	for _, change := range changes {
		change(t, dir)
	}
	var err error
	rc.cfg.Logs, err = logstore.Open(dir, logstore.Options{Logger: rc.cfg.Log})
	require.NoError(t, err)
}

// TestAClosedReplicaThatIsToLeaveIsOpenedAgain checks that a replica that could not be opened
// after an unconfirmed removal does not stay closed: the others may need its vote.
func TestAClosedReplicaThatIsToLeaveIsOpenedAgain(t *testing.T) {
	m := testReconciler(t)
	m.cfg.Disk = diskspace.New(m.cfg.DataDir, func(bool) {}, m.cfg.Log)
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	elsewhere := *layout
	elsewhere.Partitions = []metadata.Partition{{Version: 2, Replicas: []uint32{99}}}

	require.NoError(t, m.reconcileOnce(t.Context(), 0, &elsewhere, new(transfers)))
	p = m.Replica(0)
	require.NotNil(t, p)
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	require.NoError(t, m.destroy(t.Context(), 0))
	require.NoError(t, m.reconcileOnce(t.Context(), 0, &elsewhere, new(transfers)))
	require.Nil(t, m.Replica(0), "its data was removed")
}

// TestAReplicaWithAnEmptyLogIsOpenedAgain restarts a replica that is to leave and whose log is
// empty, as after the installation of a snapshot: the others may need its vote.
func TestAReplicaWithAnEmptyLogIsOpenedAgain(t *testing.T) {
	m := testReconciler(t)
	m.cfg.Disk = diskspace.New(m.cfg.DataDir, func(bool) {}, m.cfg.Log)
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	require.NoError(t, p.Checkpoint(t.Context()))
	require.NoError(t, m.closeReplica(t.Context(), p, p.Stop))
	logs, err := m.cfg.Logs.Storage(partition.GroupID(0))
	require.NoError(t, err)
	last, err := logs.LastIndex()
	require.NoError(t, err)
	require.NoError(t, logs.DeleteRange(1, last))
	elsewhere := *layout
	elsewhere.Partitions = []metadata.Partition{{Version: 2, Replicas: []uint32{99}}}

	require.NoError(t, m.reconcileOnce(t.Context(), 0, &elsewhere, new(transfers)))
	p = m.Replica(0)
	require.NotNil(t, p)
	require.NoError(t, p.Stop(t.Context()))
}

// TestAReplicaThatIsClosedLateIsOpenedAgain closes a replica, which takes longer than the timeout,
// for instance because the disk was full. It must not stay closed.
func TestAReplicaThatIsClosedLateIsOpenedAgain(t *testing.T) {
	m := testReconciler(t)
	m.cfg.Disk = diskspace.New(m.cfg.DataDir, func(bool) {}, m.cfg.Log)
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	late := func(context.Context) error {
		require.NoError(t, p.Stop(context.Background()))
		return context.DeadlineExceeded
	}
	require.Error(t, m.closeReplica(t.Context(), p, late))
	for range 2 {
		require.NoError(t, m.reconcileOnce(t.Context(), 0, layout, new(transfers)))
	}
	p = m.Replica(0)
	defer func() { require.NoError(t, p.Stop(context.Background())) }()
	leading, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, p.WaitLeading(leading))
}

// leaderStatuses are what a leader on another node reports, one status after the other.
type leaderStatuses struct {
	Nodes
	reported []*nodepb.ReplicaStatus
}

func (l *leaderStatuses) Statuses(context.Context, bool) cluster.Statuses {
	next := l.reported[0]
	l.reported = l.reported[1:]
	return cluster.Statuses{2: &nodepb.StatusResponse{Replicas: []*nodepb.ReplicaStatus{next}}}
}

// TestAReplicaLeavesOnceItsRemovalIsConfirmedTwice has a leader that adds a replica again while that is being stopped,
// since it responded until then: the leader may count on what the replica has stored.
func TestAReplicaLeavesOnceItsRemovalIsConfirmedTwice(t *testing.T) {
	m := testReconciler(t)
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	require.NoError(t, p.WaitLeading(t.Context()))
	known := p.Status()
	removed := &nodepb.ReplicaStatus{
		Leading: true, Term: known.Term + 100, MembersIndex: known.Members.Index + 1, Members: []*nodepb.ReplicaMember{{Id: "n2/y"}},
	}
	back := &nodepb.ReplicaStatus{
		Leading: true, Term: removed.Term, MembersIndex: removed.MembersIndex + 1, Members: []*nodepb.ReplicaMember{{Id: "n2/y"}, {Id: string(p.LocalID())}},
	}
	leave := func(reported ...*nodepb.ReplicaStatus) {
		l := &leaderStatuses{reported: reported}
		m.cfg.Nodes = l
		require.NoError(t, m.leave(t.Context(), m.Replica(0), layout))
		require.Empty(t, l.reported)
	}
	held := func() bool {
		logs, err := m.cfg.Logs.Storage(partition.GroupID(0))
		require.NoError(t, err)
		return hardstate.HoldsReplica(logs)
	}
	leave(back)
	require.Same(t, p, m.Replica(0), "it is a member")
	leave(removed, back)
	require.NotNil(t, m.Replica(0), "it is a member again")
	require.True(t, held())
	leave(removed, removed)
	require.Nil(t, m.Replica(0))
	require.False(t, held())
}
