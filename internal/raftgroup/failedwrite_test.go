package raftgroup

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

var errWrite = errors.New("planted failure of a write")

// failingStorage fails writes of entries, before or after they are stored.
type failingStorage struct {
	logstore.Storage
	before, after atomic.Int32 // how many of the next writes fail
}

func (s *failingStorage) StoreLogs(logs []*raft.Log) error {
	if s.before.Add(-1) >= 0 {
		return errWrite
	}
	if err := s.Storage.StoreLogs(logs); err != nil {
		return err
	}
	if s.after.Add(-1) >= 0 {
		return errWrite
	}
	return nil
}

func ofTerm(term uint64, logs []*raft.Log) []*raft.Log {
	for _, log := range logs {
		log.Term = term
	}
	return logs
}

// TestEntriesOfAFailedWriteAreReplaced stores entries whose write is reported as failed, as
// when the hard-state file cannot be written: Raft then assumes that they are not in the
// log. Nothing of them may remain after the entries of the next leader, since the end of
// the log decides about votes.
func TestEntriesOfAFailedWriteAreReplaced(t *testing.T) {
	for name, open := range logstoretest.Kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, closeIt := open(t, dir)
			failing := &failingStorage{Storage: s}
			g := newGroupStorage(failing, 1<<20, testLogger(t), nil, nil)
			require.NoError(t, g.StoreLogs(ofTerm(3, logstoretest.Logs(1, 4))))
			failing.after.Store(1)
			require.ErrorIs(t, g.StoreLogs(ofTerm(3, logstoretest.Logs(5, 9))), errWrite)
			require.NoError(t, g.StoreLogs(ofTerm(4, logstoretest.Logs(5, 6))))
			logstoretest.RequireBounds(t, g, 1, 6)
			closeIt()

			s, closeIt = open(t, dir)
			defer closeIt()
			logstoretest.RequireBounds(t, s, 1, 6)
			for i, term := range []uint64{3, 3, 3, 3, 4, 4} {
				var log raft.Log
				require.NoError(t, s.GetLog(uint64(i+1), &log))
				require.Equal(t, term, log.Term)
			}
		})
	}
}

// TestEntriesAfterASnapshotReplaceTheLog stores the entries that follow an installed
// snapshot, after the removal of the log has failed: a log with a gap would be mistaken for a
// damaged one.
func TestEntriesAfterASnapshotReplaceTheLog(t *testing.T) {
	for name, open := range logstoretest.Kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, closeIt := open(t, dir)
			g := newGroupStorage(s, 1<<20, testLogger(t), nil, nil)
			require.NoError(t, g.StoreLogs(logstoretest.Logs(1, 4)))
			require.NoError(t, hardstate.CurrentSnapshot.Save(g, hardstate.SnapshotRecord{Index: 9, Term: 3, State: Position{Index: 9, Term: 3}, ConfigIndex: 1}))
			require.NoError(t, g.StoreLogs(logstoretest.Logs(10, 12)))
			closeIt()

			s, closeIt = open(t, dir)
			defer closeIt()
			_, _, err := hardstate.Reconcile(s, nil, Position{Index: 9, Term: 3})
			require.NoError(t, err)
			logstoretest.RequireBounds(t, s, 10, 12)
		})
	}
}

// TestFollowerRecoversFromAFailedWrite fails the first write of a follower after it has
// removed entries that conflict with the leader's.
func TestFollowerRecoversFromAFailedWrite(t *testing.T) {
	var nodes [2]*testNode
	var voters []raft.Server
	for i := range nodes {
		nodes[i] = startNode(t, t.TempDir(), "")
		defer nodes[i].stop()
		voters = append(voters, nodes[i].voter())
	}
	members := &raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: voters})}
	var groups [2]*Group
	for i, n := range nodes {
		cfg := n.config(1, memJournal(t))
		storage := &failingStorage{Storage: cfg.Storage}
		term := []uint64{2, 1}[i] // the first one wins the election
		require.NoError(t, storage.SetUint64(keyCurrentTerm, 2))
		require.NoError(t, storage.StoreLogs([]*raft.Log{members}))
		noops := ofTerm(term, logstoretest.Logs(2, []uint64{3, 9}[i]))
		for _, log := range noops {
			log.Type = raft.LogNoop
		}
		require.NoError(t, storage.StoreLogs(noops))
		if i == 1 {
			storage.before.Store(1)
		}
		cfg.Storage = storage
		var err error
		groups[i], err = Open(cfg)
		require.NoError(t, err)
		defer func() { require.NoError(t, groups[i].Stop(context.Background())) }()
	}
	require.Same(t, groups[0], waitLeader(t, groups[:]...))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, groups[0].Barrier(ctx), "the leader needs the follower")
	propose(t, groups[0], "command 1")
}
