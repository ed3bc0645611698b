package metadata

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// provisioned is a cluster of n1 with three partitions.
func provisioned(t *testing.T) *memStore {
	m := newMemStore()
	_, err := m.Provision(t.Context(), Cluster{Name: "local", Partitions: 3})
	require.NoError(t, err)
	_, err = m.RegisterNode(t.Context(), Node{Name: "n1", Incarnation: "a"})
	require.NoError(t, err)
	return m
}

func (m *memStore) add(t *testing.T, name, incarnation string) Node {
	n, err := m.AddNode(t.Context(), Node{Name: name, Incarnation: incarnation}, true)
	require.NoError(t, err)
	return n
}

func TestTheTableIsStoredWhenASecondNodeJoins(t *testing.T) {
	m := provisioned(t)
	l, moved := m.Layout()
	require.Equal(t, []Partition{{0, 0, []uint32{1}}, {1, 0, []uint32{1}}, {2, 0, []uint32{1}}}, l.Partitions)
	require.Empty(t, m.view.partitions)

	_, err := m.AddNode(t.Context(), Node{Name: "a", Incarnation: "a", ID: 7}, true)
	require.NoError(t, err)
	<-moved
	l, _ = m.Layout()
	require.Equal(t, []Partition{{0, 1, []uint32{1}}, {1, 1, []uint32{1}}, {2, 1, []uint32{1}}}, l.Partitions)
	require.Equal(t, l.Partitions, m.view.partitions)
	n, known := l.Node(7)
	require.True(t, known)
	require.Equal(t, "a", n.Name)

	early := newMemStore() // nodes that registered before the cluster was provisioned
	early.add(t, "n1", "a")
	early.add(t, "n2", "a")
	_, err = early.Provision(t.Context(), Cluster{Name: "local", Partitions: 1})
	require.NoError(t, err)
	require.Equal(t, []Partition{{0, 1, []uint32{1}}}, early.view.partitions)
}

func TestNodesAreRemovedPermanently(t *testing.T) {
	m := provisioned(t)
	_, err := m.RemoveNode(t.Context(), 1, true)
	require.ErrorIs(t, err, ErrLastNode)
	_, err = m.RemoveNode(t.Context(), 5, true)
	require.Equal(t, &NotFoundError{Node: 5}, err)
	require.ErrorContains(t, err, "node N5 does not exist")
	m.add(t, "n2", "a")
	_, err = m.RemoveNode(t.Context(), 1, false)
	require.ErrorIs(t, err, ErrNodeHoldsData)
	require.EqualError(t, err, "node has replicas of partitions: node n1 has 3; drain it first")

	drained, err := m.DrainNode(t.Context(), 2, true)
	require.NoError(t, err)
	require.True(t, drained.Draining)
	require.True(t, m.add(t, "n2", "a").Draining, "a restart does not end draining")
	removed, err := m.RemoveNode(t.Context(), 2, false)
	require.NoError(t, err)
	require.True(t, removed.Removed)
	require.Len(t, m.Nodes(), 1)
	_, err = m.DrainNode(t.Context(), 2, false)
	require.ErrorAs(t, err, new(*NotFoundError))

	_, err = m.RegisterNode(t.Context(), Node{Name: "n2", Incarnation: "a"})
	require.ErrorIs(t, err, ErrNodeRemoved)
	back := m.add(t, "n2", "b")
	require.EqualValues(t, 3, back.ID, "IDs are not reused")
	require.False(t, back.Draining || back.Removed)

	_, err = m.RemoveNode(t.Context(), 1, true)
	require.NoError(t, err, "force")
	l, _ := m.Layout()
	require.Equal(t, []uint32{1}, l.Partitions[0].Replicas, "until it is replaced")
}

func TestOnlyTheRunningIncarnationMayUseTheName(t *testing.T) {
	m := provisioned(t)
	_, err := m.AddNode(t.Context(), Node{Name: "n1", Incarnation: "b"}, true)
	require.ErrorIs(t, err, ErrNodeInUse)
	same, err := m.AddNode(t.Context(), Node{Name: "n1", Incarnation: "a", AdminAddress: "new"}, true)
	require.NoError(t, err)
	require.Equal(t, "new", same.AdminAddress)
	other, err := m.AddNode(t.Context(), Node{Name: "n1", Incarnation: "b"}, false)
	require.NoError(t, err)
	require.Equal(t, Node{Name: "n1", ID: 1, Incarnation: "b", RegisteredAt: same.RegisteredAt}, other)
}

func TestPartitionsChangeOnlyFromTheExpectedVersion(t *testing.T) {
	m := provisioned(t)
	m.add(t, "n2", "a")
	set := func(id uint32, version uint64, replicas ...uint32) (Partition, error) {
		return m.SetPartition(t.Context(), Partition{ID: id, Version: version, Replicas: replicas})
	}
	got, err := set(1, 1, 2, 1)
	require.NoError(t, err)
	require.Equal(t, Partition{1, 2, []uint32{2, 1}}, got)
	l, _ := m.Layout()
	require.Equal(t, got, l.Partitions[1])
	_, err = set(1, 1, 1)
	require.ErrorIs(t, err, ErrVersionConflict)
	for _, bad := range [][]uint32{{}, {1, 1}, {1, 9}} {
		_, err = set(1, 2, bad...)
		require.Error(t, err, bad)
		require.NotErrorIs(t, err, ErrVersionConflict)
	}
	_, err = set(3, 1, 1)
	require.ErrorContains(t, err, "there is no partition 3")

	_, err = m.RemoveNode(t.Context(), 2, true)
	require.NoError(t, err)
	_, err = set(1, 2, 1, 2)
	require.NoError(t, err, "a removed node's replica may stay temporarily")
	_, err = set(0, 1, 1, 2)
	require.ErrorAs(t, err, new(*NotFoundError), "but it gets no new replica")

	lonely := provisioned(t) // entries that are not stored have version 0
	got, err = lonely.SetPartition(t.Context(), Partition{ID: 2, Replicas: []uint32{1}})
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Version)
	_, err = newMemStore().SetPartition(t.Context(), Partition{Replicas: []uint32{1}})
	require.ErrorAs(t, err, new(*InvalidError))
}

func TestReplicationCanBeChanged(t *testing.T) {
	m := provisioned(t)
	c, _ := m.Cluster()
	require.Equal(t, 1, c.Replicas(), "as in legacy clusters")
	changed, err := m.SetReplication(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, 3, changed.Replicas())
	c, _ = m.Cluster()
	require.Equal(t, changed, c)
	for _, bad := range []int{0, MaxReplication + 1} {
		_, err = m.SetReplication(t.Context(), bad)
		require.ErrorAs(t, err, new(*InvalidError))
	}
	_, err = newMemStore().SetReplication(t.Context(), 3)
	require.ErrorContains(t, err, "not provisioned")
}

func TestFlowControlStaysEnabled(t *testing.T) {
	m := provisioned(t)
	c, _ := m.Cluster()
	require.False(t, c.FlowControl)
	for range 2 {
		require.NoError(t, m.EnableFlowControl(t.Context()))
		c, _ = m.Cluster()
		require.True(t, c.FlowControl)
	}
	c, err := m.SetReplication(t.Context(), 3)
	require.NoError(t, err)
	require.True(t, c.FlowControl)
	require.ErrorContains(t, newMemStore().EnableFlowControl(t.Context()), "not provisioned")
}

func TestOnlyLayoutChangesWakeLayoutWaiters(t *testing.T) {
	m := provisioned(t)
	_, moved := m.Layout()
	_, changed := m.Watch()
	_, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{URI: "http://a/"}})
	require.NoError(t, err)
	<-changed
	select {
	case <-moved:
		t.Fatal("the registry is not part of the layout")
	default:
	}
	_, changed = m.Watch()
	_, err = m.DrainNode(t.Context(), 1, true)
	require.NoError(t, err)
	<-moved
	<-changed
}

func TestStateFilesOfOldFormatsAreUpgraded(t *testing.T) {
	for version, lacking := range map[uint32][]string{
		1: {tablePartitions, tableRequests, tableRuleBook, tableRules},
		2: {tableRuleBook, tableRules},
	} {
		t.Run(fmt.Sprint("format ", version), func(t *testing.T) { requireUpgraded(t, version, lacking) })
	}
}

func requireUpgraded(t *testing.T, version uint32, lacking []string) {
	path := filepath.Join(t.TempDir(), "state.db")
	f := openFSM(t, path)
	require.NoError(t, f.db.bolt.Update(func(tx *bbolt.Tx) error {
		for _, table := range lacking {
			if err := tx.DeleteBucket([]byte(table)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(tableMeta)).Put([]byte(versionKey), sealed(binary.BigEndian.AppendUint32(nil, version)))
	}))
	require.NoError(t, f.db.close())
	f = openFSM(t, path)
	defer f.db.close()
	require.NoError(t, f.db.bolt.View(func(tx *bbolt.Tx) error {
		for _, table := range tables {
			require.NotNil(t, tx.Bucket([]byte(table)), table)
		}
		version, err := readFormat(tx.Bucket([]byte(tableMeta)).Get([]byte(versionKey)))
		require.EqualValues(t, formatVersion, version)
		return err
	}))
}
