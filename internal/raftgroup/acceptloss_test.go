package raftgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

// TestALossIsAccepted takes from a replica that is alone some of what it had, and lets it
// continue with the rest.
func TestALossIsAccepted(t *testing.T) {
	const commands = 20
	for name, c := range map[string]struct {
		damage  func(t *testing.T, n *testNode, s *logstore.PebbleStorage, last uint64)
		applied bool // the tables have everything
		left    int  // commands
	}{
		"nothing but a vote": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, _ uint64) {
			require.NoError(t, s.SetUint64(keyCurrentTerm, 1))
		}, true, commands},
		"the end of the log": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
			require.NoError(t, s.DeleteRange(last-4, last))
		}, false, commands - 5},
		"the end of the log, which the tables have": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
			require.NoError(t, s.DeleteRange(last-4, last))
		}, true, commands},
		"the whole log, which the tables have": {func(t *testing.T, n *testNode, _ *logstore.PebbleStorage, _ uint64) {
			require.NoError(t, n.db.Destroy(1))
		}, true, commands},
		"an entry": {func(t *testing.T, n *testNode, _ *logstore.PebbleStorage, last uint64) {
			n.whileClosed(func(dir string) { logstoretest.DamageEntry(t, dir, 1, last-9) })
		}, false, commands - 10},
		"an entry that the tables have": {func(t *testing.T, n *testNode, _ *logstore.PebbleStorage, last uint64) {
			n.whileClosed(func(dir string) { logstoretest.DamageEntry(t, dir, 1, last-9) })
		}, true, commands},
		"a damaged term":             {damageValue(keyCurrentTerm), true, commands},
		"the damaged term of a vote": {damageValue(keyVoteTerm), true, commands},
		"a damaged vote":             {damageValue(keyVote), true, commands},
		"a damaged vote and the end of the log": {func(t *testing.T, n *testNode, s *logstore.PebbleStorage, last uint64) {
			require.NoError(t, s.DeleteRange(last-4, last))
			damageValue(keyVote)(t, n, s, last)
		}, false, commands - 5},
		"another vote": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, _ uint64) {
			require.NoError(t, s.Set(keyVote, []byte("another candidate")))
		}, true, commands},
		"an entry of another term": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
			var log raft.Log
			require.NoError(t, s.GetLog(last, &log))
			log.Term++
			require.NoError(t, s.StoreLog(&log))
			require.NoError(t, s.StoreLog(&raft.Log{Index: last + 1, Term: log.Term, Type: raft.LogNoop}))
		}, false, commands},
		"the beginning of the log, which the tables have": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
			require.NoError(t, s.DeleteRange(1, last-4))
		}, true, commands},
		"a damaged snapshot record":           {damageValue([]byte(hardstate.CurrentSnapshot)), true, commands},
		"a damaged record of an installation": {damageValue([]byte(hardstate.PendingSnapshot)), true, commands},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, t.TempDir(), "")
			defer n.stop()
			hards, err := hardstate.Open(t.TempDir()+"/HARDSTATE", "inc-1", nil, testLogger(t))
			require.NoError(t, err)
			defer func() { require.NoError(t, hards.Close()) }()
			hard, err := hards.Group(1)
			require.NoError(t, err)
			j := memJournal(t)
			open := func(j *journal) (*Group, error) {
				cfg := n.config(1, j, n.voter())
				cfg.HardState = hard
				return Open(cfg)
			}
			g, err := open(j)
			require.NoError(t, err)
			waitLeader(t, g)
			require.NoError(t, g.Barrier(t.Context()))
			proposeMany(t, g, 1, commands)
			last := g.Stats().LastIndex
			require.NoError(t, g.Shutdown(t.Context()))
			if !c.applied {
				j = memJournal(t)
			}
			s, err := n.db.Storage(1)
			require.NoError(t, err)
			c.damage(t, n, s, last)
			_, err = open(j)
			if err == nil {
				t.Fatal("the loss was not noticed")
			}

			s, err = n.db.Storage(1)
			require.NoError(t, err)
			loss, err := hardstate.AssessLoss(s, hard.Record(), j.Applied(), []raft.Server{n.voter()})
			require.NoError(t, err)
			require.True(t, loss.Sole(n.voter().ID))
			require.False(t, loss.Sole("another"))
			require.EqualValues(t, commands-c.left, loss.Last+1-loss.First)
			for range 2 { // it may be repeated
				require.NoError(t, loss.Accept(n.db, 1, hards))
			}

			g, err = open(j)
			require.NoError(t, err)
			waitLeader(t, g)
			require.NoError(t, g.Barrier(t.Context()))
			requireCommands(t, j, c.left)
			propose(t, g, fmt.Sprint("command ", c.left+1))
			requireCommands(t, j, c.left+1)
			require.NoError(t, g.Shutdown(t.Context()))
			s, err = n.db.Storage(1)
			require.NoError(t, err)
			_, err = hardstate.AssessLoss(s, hard.Record(), j.Applied(), nil)
			require.ErrorIs(t, err, hardstate.ErrNoLoss)
		})
	}
}

// damageValue damages a value of the group.
func damageValue(key []byte) func(*testing.T, *testNode, *logstore.PebbleStorage, uint64) {
	return func(t *testing.T, n *testNode, _ *logstore.PebbleStorage, _ uint64) {
		n.whileClosed(func(dir string) { logstoretest.DamageValue(t, dir, 1, key) })
	}
}

func TestALossIsNotAcceptedIfOthersMayHaveTheEntries(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	s, err := n.db.Storage(1)
	require.NoError(t, err)
	rec := hardstate.Record{Term: 3, Last: Position{Index: 9, Term: 3}}
	_, err = hardstate.AssessLoss(s, rec, Position{Index: 5, Term: 3}, nil)
	require.ErrorContains(t, err, "there may be others")
	require.NoError(t, s.StoreLogs([]*raft.Log{{Index: 7, Term: 3, Type: raft.LogNoop}}))
	_, err = hardstate.AssessLoss(s, rec, Position{Index: 5, Term: 3}, []raft.Server{n.voter()})
	require.ErrorContains(t, err, "the entries in between are lost")
}

// TestALossIsAcceptedByANewMember replaces the members of a group that has lost nothing,
// and of one that has lost everything.
func TestALossIsAcceptedByANewMember(t *testing.T) {
	for name, all := range map[string]bool{"nothing is lost": false, "everything is lost": true} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, t.TempDir(), "")
			defer n.stop()
			hards, err := hardstate.Open(t.TempDir()+"/HARDSTATE", "inc-1", nil, testLogger(t))
			require.NoError(t, err)
			defer func() { require.NoError(t, hards.Close()) }()
			hard, err := hards.Group(1)
			require.NoError(t, err)
			s, err := n.db.Storage(1)
			require.NoError(t, err)
			w, commands := hardstate.WrapStorage(s, hard), 2
			former := []raft.Server{{ID: "n1/a", Address: "127.0.0.1:1"}, {ID: "n2/b", Address: "127.0.0.1:2"}, {ID: "n3/c", Address: "127.0.0.1:3"}}
			logs := []*raft.Log{{Index: 1, Term: 4, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: former})}}
			for i := range uint64(2) {
				data, err := sealJournal([][]byte{fmt.Append(nil, "command ", i+1)})
				require.NoError(t, err)
				logs = append(logs, &raft.Log{Index: 2 + i, Term: 4, Type: raft.LogCommand, Data: data})
			}
			require.NoError(t, w.SetUint64(keyCurrentTerm, 4))
			require.NoError(t, w.StoreLogs(logs))
			require.NoError(t, n.db.Quarantine(1, "for a test"))
			if all {
				commands = 0
				require.NoError(t, n.db.Destroy(1))
			}
			j := memJournal(t)
			self := []raft.Server{n.voter()}
			loss, err := hardstate.AssessLoss(s, hard.Record(), j.Applied(), self)
			if all {
				require.NoError(t, err)
				require.True(t, loss.Sole(n.voter().ID))
			} else {
				require.ErrorIs(t, err, hardstate.ErrNoLoss)
				require.False(t, loss.Has(n.voter().ID))
				loss.Force(self)
				require.Equal(t, former, loss.Replaced)
			}
			for range 2 { // it may be repeated
				require.NoError(t, loss.Accept(n.db, 1, hards))
			}
			cfg := n.config(1, j)
			cfg.HardState = hard
			g, err := Open(cfg)
			require.NoError(t, err)
			waitLeader(t, g)
			require.Equal(t, self, g.Servers())
			require.NoError(t, g.Barrier(t.Context()))
			requireCommands(t, j, commands)
			propose(t, g, fmt.Sprint("command ", commands+1))
			requireCommands(t, j, commands+1)
			require.Greater(t, g.Stats().Term, uint64(4))
			require.NoError(t, g.Shutdown(t.Context()))
		})
	}
}

// TestTheLossOfTheRecordIsAccepted damages the record of a replica whose log is complete.
func TestTheLossOfTheRecordIsAccepted(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	path := filepath.Join(t.TempDir(), "HARDSTATE")
	hards, err := hardstate.Open(path, "inc-1", nil, testLogger(t))
	require.NoError(t, err)
	hard, err := hards.Group(7)
	require.NoError(t, err)
	cfg := n.config(7, memJournal(t), n.voter())
	cfg.HardState = hard
	g, err := Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 1, 3)
	require.NoError(t, g.Shutdown(t.Context()))
	require.NoError(t, hards.Close())
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	for page := range int64(2) { // both copies
		_, err = file.WriteAt([]byte("damaged"), 4096*(1+page)+7*128)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	hards, err = hardstate.Open(path, "inc-1", nil, testLogger(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, hards.Close()) }()

	s, err := n.db.Storage(7)
	require.NoError(t, err)
	require.True(t, hardstate.WasRecorded(s))
	loss, err := hardstate.AssessLoss(s, hardstate.Record{Missing: true, Replica: 5}, cfg.StateMachine.Applied(), nil)
	require.NoError(t, err)
	require.True(t, loss.Sole(n.voter().ID))
	require.NoError(t, loss.Accept(n.db, 7, hards))
	cfg.HardState, err = hards.Group(7)
	require.NoError(t, err)
	require.EqualValues(t, 5, cfg.HardState.Record().Replica)
	g, err = Open(cfg)
	require.NoError(t, err)
	waitLeader(t, g)
	proposeMany(t, g, 4, 4)
	require.NoError(t, g.Shutdown(t.Context()))
}
