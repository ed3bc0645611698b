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

// loss is damage to a replica that is alone, after it has applied lossCommands commands.
type loss struct {
	damage  func(t *testing.T, n *testNode, s *logstore.PebbleStorage, last uint64)
	applied bool // the tables have everything
	left    int  // commands
}

const lossCommands = 20

// losses by what is lost.
var losses = map[string]loss{
	"nothing but a vote": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, _ uint64) {
		require.NoError(t, s.SetUint64(keyCurrentTerm, 1))
	}, true, lossCommands},
	"the end of the log":                        {removeEnd, false, lossCommands - 5},
	"the end of the log, which the tables have": {removeEnd, true, lossCommands},
	"the whole log, which the tables have": {func(t *testing.T, n *testNode, _ *logstore.PebbleStorage, _ uint64) {
		require.NoError(t, n.db.Destroy(1))
	}, true, lossCommands},
	"an entry":                      {damageEntry, false, lossCommands - 10},
	"an entry that the tables have": {damageEntry, true, lossCommands},
	"a damaged term":                {damageValue(keyCurrentTerm), true, lossCommands},
	"the damaged term of a vote":    {damageValue(keyVoteTerm), true, lossCommands},
	"a damaged vote":                {damageValue(keyVote), true, lossCommands},
	"a damaged vote and the end of the log": {func(t *testing.T, n *testNode, s *logstore.PebbleStorage, last uint64) {
		removeEnd(t, n, s, last)
		damageValue(keyVote)(t, n, s, last)
	}, false, lossCommands - 5},
	"another vote": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, _ uint64) {
		require.NoError(t, s.Set(keyVote, []byte("another candidate")))
	}, true, lossCommands},
	"an entry of another term": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
		var log raft.Log
		require.NoError(t, s.GetLog(last, &log))
		log.Term++
		require.NoError(t, s.StoreLog(&log))
		require.NoError(t, s.StoreLog(&raft.Log{Index: last + 1, Term: log.Term, Type: raft.LogNoop}))
	}, false, lossCommands},
	"the beginning of the log, which the tables have": {func(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
		require.NoError(t, s.DeleteRange(1, last-4))
	}, true, lossCommands},
	"a damaged snapshot record":           {damageValue([]byte(hardstate.CurrentSnapshot)), true, lossCommands},
	"a damaged record of an installation": {damageValue([]byte(hardstate.PendingSnapshot)), true, lossCommands},
}

func removeEnd(t *testing.T, _ *testNode, s *logstore.PebbleStorage, last uint64) {
	require.NoError(t, s.DeleteRange(last-4, last))
}

func damageEntry(t *testing.T, n *testNode, _ *logstore.PebbleStorage, last uint64) {
	n.whileClosed(func(dir string) { logstoretest.DamageEntry(t, dir, 1, last-9) })
}

// TestALossIsAccepted takes from a replica that is alone some of what it had, and lets it
// continue with the rest.
func TestALossIsAccepted(t *testing.T) {
	for name, lost := range losses {
		t.Run(name, func(t *testing.T) {
			r := newLoneReplica(t)
			last := r.runOnce()
			r.lose(lost, last)
			r.acceptLoss(lossCommands - lost.left)
			r.continueAfter(lost.left)
		})
	}
}

// loneReplica is the only replica of a group, with a record of its hard state.
type loneReplica struct {
	t       *testing.T
	node    *testNode
	hards   *hardstate.File
	hard    *hardstate.State
	journal *journal
}

func newLoneReplica(t *testing.T) *loneReplica {
	r := &loneReplica{t: t, node: startNode(t, t.TempDir(), ""), journal: memJournal(t)}
	t.Cleanup(r.node.stop)
	var err error
	r.hards, err = hardstate.Open(t.TempDir()+"/HARDSTATE", "inc-1", nil, testLogger(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.hards.Close()) })
	r.hard, err = r.hards.Group(1)
	require.NoError(t, err)
	return r
}

func (r *loneReplica) open() (*Group, error) {
	cfg := r.node.config(1, r.journal, r.node.voter())
	cfg.HardState = r.hard
	return Open(cfg)
}

// lead opens the replica and waits until it leads and has applied its log.
func (r *loneReplica) lead() *Group {
	g, err := r.open()
	require.NoError(r.t, err)
	waitLeader(r.t, g)
	require.NoError(r.t, g.Barrier(r.t.Context()))
	return g
}

// storage opens the log anew, since it may have been damaged or removed.
func (r *loneReplica) storage() *logstore.PebbleStorage {
	s, err := r.node.db.Storage(1)
	require.NoError(r.t, err)
	return s
}

// runOnce proposes the commands and returns the index of the last entry.
func (r *loneReplica) runOnce() (last uint64) {
	g := r.lead()
	proposeMany(r.t, g, 1, lossCommands)
	last = g.Stats().LastIndex
	require.NoError(r.t, g.Shutdown(r.t.Context()))
	return last
}

// lose damages the replica, which then refuses to start.
func (r *loneReplica) lose(lost loss, last uint64) {
	if !lost.applied {
		r.journal = memJournal(r.t)
	}
	lost.damage(r.t, r.node, r.storage(), last)
	if _, err := r.open(); err == nil {
		r.t.Fatal("the loss was not noticed")
	}
}

// acceptLoss accepts that entries are lost, as an operator does.
func (r *loneReplica) acceptLoss(entries int) {
	l, err := hardstate.AssessLoss(r.storage(), r.hard.Record(), r.journal.Applied(), []raft.Server{r.node.voter()})
	require.NoError(r.t, err)
	require.True(r.t, l.Sole(r.node.voter().ID))
	require.False(r.t, l.Sole("another"))
	require.EqualValues(r.t, entries, l.Last+1-l.First)
	for range 2 { // it may be repeated
		require.NoError(r.t, l.Accept(r.node.db, 1, r.hards))
	}
}

// continueAfter starts the replica with the commands that are left, and proposes another one.
func (r *loneReplica) continueAfter(left int) {
	g := r.lead()
	requireCommands(r.t, r.journal, left)
	propose(r.t, g, fmt.Sprint("command ", left+1))
	requireCommands(r.t, r.journal, left+1)
	require.NoError(r.t, g.Shutdown(r.t.Context()))
	_, err := hardstate.AssessLoss(r.storage(), r.hard.Record(), r.journal.Applied(), nil)
	require.ErrorIs(r.t, err, hardstate.ErrNoLoss)
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
