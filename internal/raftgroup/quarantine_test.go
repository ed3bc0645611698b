package raftgroup

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

// damagedStorage fails to read one entry, as if its bytes had changed on disk.
type damagedStorage struct {
	logstore.Storage
	at atomic.Uint64
}

func (s *damagedStorage) GetLog(index uint64, log *raft.Log) error {
	if index == s.at.Load() {
		return logstore.ErrCorrupt
	}
	return s.Storage.GetLog(index, log)
}

func (s *damagedStorage) GetLogHead(index uint64, most int, log *raft.Log) error {
	if index == s.at.Load() {
		return logstore.ErrCorrupt
	}
	return s.Storage.GetLogHead(index, most, log)
}

// TestDamagedEntryStopsItsGroupOnly damages an entry that a running follower is about
// to apply. Raft panics there, which would end the process.
func TestDamagedEntryStopsItsGroupOnly(t *testing.T) {
	a, b := startNode(t, t.TempDir(), ""), startNode(t, t.TempDir(), "")
	defer a.stop()
	defer b.stop()
	voters := []raft.Server{a.voter(), b.voter()}
	ca := a.config(1, memJournal(t), voters...)
	cb := b.config(1, memJournal(t), voters...)
	stores := map[raft.ServerID]*damagedStorage{ca.LocalID: {Storage: ca.Storage}, cb.LocalID: {Storage: cb.Storage}}
	failed := map[raft.ServerID]chan error{ca.LocalID: make(chan error, 1), cb.LocalID: make(chan error, 1)}
	groups := map[raft.ServerID]*Group{}
	for _, cfg := range []Config{ca, cb} {
		cfg.Storage, cfg.Profile.LogCacheBytes = stores[cfg.LocalID], 1
		cfg.OnFailed = func(err error) { failed[cfg.LocalID] <- err }
		g, err := Open(cfg)
		require.NoError(t, err)
		groups[cfg.LocalID] = g
	}
	leader := waitLeader(t, groups[ca.LocalID], groups[cb.LocalID])
	other := ca.LocalID
	if leader.cfg.LocalID == other {
		other = cb.LocalID
	}
	propose(t, leader, "command 1")
	stores[other].at.Store(leader.Stats().LastIndex + 1)

	data, err := sealJournal([][]byte{[]byte("command 2")})
	require.NoError(t, err)
	leader.Propose(data)
	select {
	case err := <-failed[other]:
		require.ErrorIs(t, err, ErrQuarantined)
		require.ErrorIs(t, err, logstore.ErrCorrupt)
	case <-time.After(time.Minute):
		require.FailNow(t, "the damage was not noticed")
	}
	<-groups[other].Done()
	require.ErrorIs(t, groups[other].Err(), ErrQuarantined)
	require.NoError(t, leader.Stop(t.Context()))

	cfg := ca
	if other == cb.LocalID {
		cfg = cb
	}
	cfg.StateMachine = memJournal(t)
	_, err = Open(cfg)
	require.ErrorIs(t, err, ErrQuarantined, "the mark is durable")
}

// TestQuarantineStopsAReplicaUntilItIsReleased quarantines a running replica, as its
// owner does when the digests of the replicas differ.
func TestQuarantineStopsAReplicaUntilItIsReleased(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	j := memJournal(t)
	cfg := n.config(1, j, n.voter())
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	propose(t, g, "command 1")

	g.Quarantine(errors.New("digest differs at entry 3"))
	<-g.Done()
	reason, err := n.db.Quarantined(1)
	require.NoError(t, err)
	require.Contains(t, reason, "digest differs at entry 3")
	_, err = Open(cfg)
	require.ErrorIs(t, err, ErrQuarantined)
	require.ErrorContains(t, err, "digest differs at entry 3")

	require.NoError(t, n.db.Release(1))
	reason, err = n.db.Quarantined(1)
	require.NoError(t, err)
	require.Empty(t, reason)
	g, err = Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	requireCommands(t, j, 1)
	require.NoError(t, g.Shutdown(context.Background()))
}

func TestDamagedLogQuarantinesItsGroupOnly(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, "")
	j, other := memJournal(t), memJournal(t)
	open := func(id uint32, j *journal) (*Group, error) { return Open(n.config(id, j, n.voter())) }
	g, err := open(1, j)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 5)
	require.NoError(t, g.Shutdown(t.Context()))
	n.whileClosed(func(dir string) { logstoretest.DamageEntry(t, dir, 1, 4) })
	for range 2 { // found, then remembered
		_, err = open(1, j)
		require.ErrorIs(t, err, ErrQuarantined)
		require.ErrorContains(t, err, "group-1")
	}
	g, err = open(2, other)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 5)
	require.NoError(t, g.Shutdown(t.Context()))
	n.stop()
}
