package raftgroup

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"
)

// asRaftSees is what Raft sees of a storage.
func asRaftSees(t *testing.T, s logstore.Storage) raftStorage {
	return raftStorage{newGroupStorage(s, 1, testLogger(t), nil, func(err error) { t.Error(err) })}
}

func TestTheDataOfLargeEntriesIsReadLater(t *testing.T) {
	s, closeIt := logstoretest.OpenPebble(t, t.TempDir())
	defer closeIt()
	var logs []*raft.Log
	for i, size := range []int{10, deferAbove - 100, deferAbove + 2, 576 << 10, 2560<<10 + 1, 20} { // the larger ones are stored in chunks
		log := &raft.Log{Index: uint64(i + 1), Term: 3, Type: raft.LogCommand, Data: bytes.Repeat([]byte{byte(i)}, size)}
		if size%2 == 1 {
			log.Extensions = bytes.Repeat([]byte{1}, 70<<10)
		}
		logs = append(logs, log)
	}
	logs = append(logs, &raft.Log{Index: 7, Term: 3, Type: raft.LogConfiguration, Data: make([]byte, 2*deferAbove)})
	require.NoError(t, s.StoreLogs(logs))
	seen := asRaftSees(t, s)
	for _, want := range logs {
		head := new(raft.Log)
		require.NoError(t, seen.GetLog(want.Index, head))
		require.Equal(t, []any{want.Index, want.Term, want.Type}, []any{head.Index, head.Term, head.Type})
		large := want.Type == raft.LogCommand && len(want.Data) > deferAbove
		require.Equal(t, large, logstore.Deferred(head), "entry %d", want.Index)
		require.Equal(t, logstore.EntryBytes(want), logstore.EntryBytes(head))
		whole, err := seen.complete(head)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want.Data, whole.Data))
		require.True(t, bytes.Equal(want.Extensions, whole.Extensions))
	}
	require.ErrorIs(t, seen.GetLog(8, new(raft.Log)), raft.ErrLogNotFound)

	head := new(raft.Log)
	require.NoError(t, seen.GetLog(3, head))
	head.Term++
	_, err := seen.complete(head)
	require.ErrorIs(t, err, logstore.ErrCorrupt, "another entry is there")
}

// TestAppendsOfLargeEntriesNeedLittleMemory reads what Raft reads before it sends or
// applies the first of many large entries.
func TestAppendsOfLargeEntriesNeedLittleMemory(t *testing.T) {
	s, closeIt := logstoretest.OpenPebble(t, t.TempDir())
	defer closeIt()
	const count, size = 128, 1 << 20
	data := make([]byte, size)
	for i := range uint64(count) {
		require.NoError(t, s.StoreLog(&raft.Log{Index: i + 1, Term: 1, Type: raft.LogCommand, Data: data}))
	}
	seen := asRaftSees(t, s)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	logs := make([]*raft.Log, count)
	for i := range logs {
		logs[i] = new(raft.Log)
		require.NoError(t, seen.GetLog(uint64(i)+1, logs[i]))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d entries of 1 MiB: %.1f MiB", count, float64(used)/(1<<20))
	require.Less(t, used, int64(8<<20))
	n, bytes := batchLen(logs)
	require.Equal(t, 1, n, "each is sent by itself")
	require.Greater(t, bytes, size)
}

// heapMachine notes how many bytes it is handed at a time, and what the heap holds then.
type heapMachine struct {
	nullMachine
	most  int
	calls int
}

func (m *heapMachine) Apply(entries []Entry) ([]any, error) {
	size := 0
	for _, e := range entries {
		size += len(e.Data)
	}
	m.most, m.calls = max(m.most, size), m.calls+1
	return make([]any, len(entries)), nil
}

func TestLargeEntriesAreReadAsTheyAreApplied(t *testing.T) {
	m := new(heapMachine)
	f := newFSM(m, func(err error) { t.Error(err) })
	read := 0
	f.complete = func(log *raft.Log) (*raft.Log, error) {
		read++
		require.LessOrEqual(t, read, (m.calls+1)*4, "no more is read than one call takes")
		return &raft.Log{Index: log.Index, Term: log.Term, Data: make([]byte, 4<<20)}, nil
	}
	var logs []*raft.Log
	for i := range uint64(40) {
		log := &raft.Log{Index: i + 1, Term: 1, Type: raft.LogCommand}
		logstore.Defer(log, 4<<20)
		logs = append(logs, log)
	}
	require.Len(t, f.ApplyBatch(logs), 40)
	require.Equal(t, 40, read)
	require.LessOrEqual(t, m.most, applyBytes)
	require.Len(t, f.ApplyBatch(logs[:5]), 5)
	require.Equal(t, 40, read, "what is applied already is not read")
}

// TestAFollowerCatchesUpWithLargeEntries restarts a follower that misses large entries
// which the leader reads from its disk.
func TestAFollowerCatchesUpWithLargeEntries(t *testing.T) {
	c := newTestCluster(t, 1000)
	l := c.leader()
	f := (l + 1) % 3
	c.stop(f)
	for i := range 12 {
		entry, err := sealJournal([][]byte{bytes.Repeat([]byte{byte(i)}, []int{100, deferAbove + 1, 300 << 10, 2 << 20}[i%4])})
		require.NoError(t, err)
		require.Eventually(t, func() bool { _, err := c.groups[c.leader()].Propose(entry).Wait(t.Context()); return err == nil }, time.Minute, time.Millisecond)
	}
	c.restart(f)
	c.awaitSame()
	want, err := c.journals[c.leader()].commands()
	require.NoError(t, err)
	got, err := c.journals[f].commands()
	require.NoError(t, err)
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.True(t, want[i] == got[i], "command %d", i)
	}
}

// TestEntriesOfADeposedLeaderMayBeReplaced completes entries that are no longer there as
// they were, as an append that is under way does.
func TestEntriesOfADeposedLeaderMayBeReplaced(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	g, err := Open(n.config(1, memJournal(t), n.voter()))
	require.NoError(t, err)
	defer func() { _ = g.Shutdown(t.Context()) }()
	waitLeader(t, g)
	proposeMany(t, g, 1, 3)
	term := g.Stats().Term
	log := &raft.Log{Index: g.Stats().LastIndex, Term: term + 7, Type: raft.LogCommand}
	logstore.Defer(log, 100)
	_, err = g.port.completed([]*raft.Log{log}, term+7)
	require.ErrorIs(t, err, errDeposed)
	require.NoError(t, g.Err(), "it is not damaged")
	_, err = g.port.completed([]*raft.Log{log}, term)
	require.ErrorIs(t, err, logstore.ErrCorrupt)
	<-g.Done()
	require.ErrorIs(t, g.Err(), ErrQuarantined)
}
