package raftgroup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/logsample"
	"platform/internal/nodelink"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore/logstoretest"
	"platform/internal/raftgroup/peers"
	"platform/internal/raftgroup/statestream"
	"platform/proto/node"
)

// barePort attaches a group that has no Raft instance; the test responds for it.
func barePort(t *testing.T, n *testNode, id uint32) *port {
	t.Helper()
	cfg, err := n.config(id, memJournal(t)).withDefaults()
	require.NoError(t, err)
	g := &Group{cfg: cfg, log: cfg.Logger, done: make(chan struct{})}
	g.storage = newGroupStorage(cfg.Storage, 1<<20, cfg.Logger, nil, nil)
	g.fsm = newFSM(cfg.StateMachine, func(error) {})
	g.snaps = &snapshotStore{storage: g.storage, fsm: g.fsm}
	g.fsm.install = &installer{storage: g.storage, snaps: g.snaps, rebuild: func(string) {}}
	p, err := n.transport.attach(g)
	require.NoError(t, err)
	g.port = p
	t.Cleanup(func() { n.transport.detach(p) })
	return p
}

// twoPorts returns the ends of group 1 on two nodes.
func twoPorts(t *testing.T) (from, to *port) {
	a, b := startNode(t, t.TempDir(), ""), startNode(t, t.TempDir(), "")
	t.Cleanup(func() { a.stop(); b.stop() })
	from, to = barePort(t, a, 1), barePort(t, b, 1)
	from.group.cfg.LocalID, to.group.cfg.LocalID = "a", "b"
	return from, to
}

// answer takes the next request and responds.
func answer(t *testing.T, p *port, respond func(command any) (any, error)) <-chan any {
	got := make(chan any, 1)
	go func() {
		rpc := <-p.Consumer()
		resp, err := respond(rpc.Command)
		rpc.Respond(resp, err)
		got <- rpc.Command
	}()
	return got
}

var testHeader = raft.RPCHeader{ProtocolVersion: 3, ID: []byte("a"), Addr: []byte("a:1")}

func TestRequestsAndResponsesArriveUnchanged(t *testing.T) {
	from, to := twoPorts(t)
	target := to.LocalAddr()

	oneVoter := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}}})
	entries := []*raft.Log{
		{Index: 8, Term: 2, Type: raft.LogCommand, Data: []byte("data"), AppendedAt: time.Unix(5, 6)},
		{Index: 9, Term: 3, Type: raft.LogConfiguration, Data: oneVoter, Extensions: []byte("x")},
	}
	appendReq := &raft.AppendEntriesRequest{
		RPCHeader: testHeader, Term: 3, Leader: testHeader.Addr, //nolint:staticcheck // carried for older members
		PrevLogEntry: 7, PrevLogTerm: 2, Entries: entries, LeaderCommitIndex: 6,
	}
	appendResp := &raft.AppendEntriesResponse{RPCHeader: testHeader, Term: 4, LastLog: 11, Success: true, NoRetryBackoff: true}
	got := answer(t, to, func(any) (any, error) { return appendResp, nil })
	var ar raft.AppendEntriesResponse
	require.NoError(t, from.AppendEntries("b", target, appendReq, &ar))
	require.Equal(t, appendReq, <-got)
	require.Equal(t, appendResp, &ar)

	voteReq := &raft.RequestVoteRequest{
		RPCHeader: testHeader, Term: 9, Candidate: testHeader.Addr, //nolint:staticcheck // as above
		LastLogIndex: 8, LastLogTerm: 7, LeadershipTransfer: true,
	}
	got = answer(t, to, func(any) (any, error) {
		return &raft.RequestVoteResponse{RPCHeader: testHeader, Term: 9, Granted: true}, nil
	})
	var vr raft.RequestVoteResponse
	require.NoError(t, from.RequestVote("b", target, voteReq, &vr))
	require.Equal(t, voteReq, <-got)
	require.Equal(t, raft.RequestVoteResponse{RPCHeader: testHeader, Term: 9, Granted: true}, vr)

	preReq := &raft.RequestPreVoteRequest{RPCHeader: testHeader, Term: 9, LastLogIndex: 8, LastLogTerm: 7}
	got = answer(t, to, func(any) (any, error) {
		return &raft.RequestPreVoteResponse{RPCHeader: testHeader, Term: 10}, nil
	})
	var pr raft.RequestPreVoteResponse
	require.NoError(t, from.RequestPreVote("b", target, preReq, &pr))
	require.Equal(t, preReq, <-got)
	require.Equal(t, raft.RequestPreVoteResponse{RPCHeader: testHeader, Term: 10}, pr)

	got = answer(t, to, func(any) (any, error) { return &raft.TimeoutNowResponse{RPCHeader: testHeader}, nil })
	var tr raft.TimeoutNowResponse
	require.NoError(t, from.TimeoutNow("b", target, &raft.TimeoutNowRequest{RPCHeader: testHeader}, &tr))
	require.Equal(t, &raft.TimeoutNowRequest{RPCHeader: testHeader}, <-got)
	require.Equal(t, testHeader, tr.RPCHeader)

	answer(t, to, func(any) (any, error) { return nil, errors.New("no such luck") })
	require.ErrorContains(t, from.RequestVote("b", target, voteReq, &vr), "no such luck")
}

func TestTransportHasNoPipelineAndKnowsPreVote(t *testing.T) {
	from, _ := twoPorts(t)
	_, err := from.AppendEntriesPipeline("b", "b:1")
	require.ErrorIs(t, err, raft.ErrPipelineReplicationNotSupported)
	var _ raft.WithPreVote = from
	require.Equal(t, raft.ServerAddress("x:1"), from.DecodePeer(from.EncodePeer("x", "x:1")))
}

// TestLargeAppendsAreSentInBatches sends far more than one message may hold.
func TestLargeAppendsAreSentInBatches(t *testing.T) {
	from, to := twoPorts(t)
	req := &raft.AppendEntriesRequest{RPCHeader: testHeader, Term: 1, PrevLogEntry: 10, PrevLogTerm: 1, LeaderCommitIndex: 5}
	for i := range uint64(300) {
		req.Entries = append(req.Entries, &raft.Log{Index: 11 + i, Term: 1, Data: make([]byte, 256<<10)})
	}
	last := uint64(10)
	batches := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for last < 310 {
			rpc := <-to.Consumer()
			a := rpc.Command.(*raft.AppendEntriesRequest)
			if a.PrevLogEntry != last {
				t.Errorf("batch follows %d, want %d", a.PrevLogEntry, last)
			}
			last = a.Entries[len(a.Entries)-1].Index
			batches++
			rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: testHeader, Term: 1, Success: true, LastLog: last}, nil)
		}
	}()
	var resp raft.AppendEntriesResponse
	require.NoError(t, from.AppendEntries("b", to.LocalAddr(), req, &resp))
	<-done
	require.Equal(t, uint64(310), resp.LastLog)
	require.Greater(t, batches, 50)

	// A refused batch ends it.
	answer(t, to, func(any) (any, error) { return &raft.AppendEntriesResponse{Term: 1, LastLog: 3}, nil })
	require.NoError(t, from.AppendEntries("b", to.LocalAddr(), req, &resp))
	require.False(t, resp.Success)
	require.Equal(t, uint64(3), resp.LastLog)
}

func TestRequestOfASenderThatGaveUpIsDropped(t *testing.T) {
	_, to := twoPorts(t)
	in := &inbound{t: to.t}
	vote := func(term uint64, timeout time.Duration) *node.RaftFrame {
		f := &node.RaftFrame{GroupId: 1, VoteRequest: &node.VoteRequest{Term: term}}
		return in.handle(t.Context(), arrived{frame: f, deadline: time.Now().Add(timeout)})
	}
	require.Nil(t, vote(1, 20*time.Millisecond), "Raft is busy until the sender gives up")
	got := answer(t, to, func(any) (any, error) { return &raft.RequestVoteResponse{Granted: true}, nil })
	require.Nil(t, vote(2, -time.Millisecond), "the sender has given up before Raft is asked")
	require.True(t, vote(3, 10*time.Second).VoteResponse.Granted)
	require.Equal(t, uint64(3), (<-got).(*raft.RequestVoteRequest).Term)
}

func TestRequestWithoutAResponseTimesOut(t *testing.T) {
	from, to := twoPorts(t)
	from.election = 50 * time.Millisecond
	var resp raft.RequestVoteResponse
	err := from.RequestVote("b", to.LocalAddr(), &raft.RequestVoteRequest{RPCHeader: testHeader, Term: 1}, &resp)
	require.ErrorIs(t, err, peers.ErrTimeout)
}

func TestGroupThatIsNotOpenRespondsImmediately(t *testing.T) {
	from, to := twoPorts(t)
	from.election = time.Minute
	to.t.detach(to)
	var resp raft.RequestVoteResponse
	err := from.RequestVote("b", to.LocalAddr(), &raft.RequestVoteRequest{RPCHeader: testHeader}, &resp)
	require.ErrorContains(t, err, errGroupStopped.Error())
}

// TestRequestsForUnknownGroupsLeaveNothingBehind sends requests with many group numbers on one stream.
func TestRequestsForUnknownGroupsLeaveNothingBehind(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	stream := &framesStream{}
	for group := range uint32(100) {
		stream.frames = append(stream.frames, &node.RaftFrame{Sequence: uint64(group), GroupId: group, VoteRequest: &node.VoteRequest{}})
	}
	in := &inbound{
		t: n.transport, stream: stream, from: &sender{t: n.transport, Peer: &nodelink.Peer{}},
		out: make(chan *node.RaftFrame, 100), queues: make(map[uint32]*backlog),
	}
	require.ErrorIs(t, in.receive(t.Context()), io.EOF)
	require.Empty(t, in.queues)
	for range 100 {
		require.Equal(t, errGroupStopped.Error(), (<-in.out).Error)
	}
}

// The storage of a group hangs, and its leader sends entries again whenever it has given up.
func TestFewEntriesWaitForAGroupThatHangs(t *testing.T) {
	_, to := twoPorts(t)
	stream := &framesStream{}
	for i := range 2 * groupBacklog {
		f := &node.RaftFrame{Sequence: uint64(i), GroupId: 1, TimeoutMs: 60_000, AppendRequest: &node.AppendEntriesRequest{Term: 1}}
		if i%2 == 0 {
			f.AppendRequest.Entries = []*node.LogEntry{{Index: 1, Term: 1, Data: make([]byte, 100)}}
		}
		stream.frames = append(stream.frames, f)
	}
	in := &inbound{
		t: to.t, stream: stream, from: &sender{t: to.t, Peer: &nodelink.Peer{}},
		out: make(chan *node.RaftFrame, 100), queues: make(map[uint32]*backlog),
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer in.tasks.End()
	defer cancel()
	require.ErrorIs(t, in.receive(ctx), io.EOF)
	entries := 0
	for range groupBacklog {
		select {
		case req := <-in.queues[1].requests:
			if hasEntries(req.frame) {
				entries++
			}
		default: // the first one is with Raft
		}
	}
	require.LessOrEqual(t, entries, waitingAppends)
}

// TestResponsesThatAreNotReadAreBounded floods a node with requests and reads no response.
func TestResponsesThatAreNotReadAreBounded(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	stream := &framesStream{frames: make([]*node.RaftFrame, 2*maxLateResponses)}
	for i := range stream.frames {
		stream.frames[i] = &node.RaftFrame{Sequence: uint64(i), VoteRequest: &node.VoteRequest{}}
	}
	in := &inbound{
		t: n.transport, stream: stream, from: &sender{t: n.transport, Peer: &nodelink.Peer{}},
		out: make(chan *node.RaftFrame), queues: make(map[uint32]*backlog),
	}
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, in.receive(ctx), io.EOF)
	require.EqualValues(t, maxLateResponses, in.late.Load())
	cancel()
	in.tasks.End()
	require.Zero(t, in.late.Load())
}

// framesStream is a stream on which frames have arrived.
type framesStream struct {
	node.RaftTransport_ExchangeServer
	frames []*node.RaftFrame
}

func (s *framesStream) Recv() (f *node.RaftFrame, err error) {
	if len(s.frames) == 0 {
		return nil, io.EOF
	}
	f, s.frames = s.frames[0], s.frames[1:]
	return f, nil
}

func TestVoteReachesAPeerThatComesBack(t *testing.T) {
	a, b := startNode(t, t.TempDir(), ""), startNode(t, t.TempDir(), "")
	t.Cleanup(func() { a.stop() })
	from := barePort(t, a, 1)
	from.election = 20 * time.Second
	address := b.address()
	b.stop()
	var resp raft.AppendEntriesResponse
	require.Error(t, from.AppendEntries(raft.ServerID(address), address, &raft.AppendEntriesRequest{RPCHeader: testHeader}, &resp))

	voted := make(chan error, 1)
	go func() {
		for {
			var resp raft.RequestVoteResponse
			err := from.RequestVote(raft.ServerID(address), address, &raft.RequestVoteRequest{RPCHeader: testHeader, Term: 1}, &resp)
			if err != nil && strings.Contains(err.Error(), errGroupStopped.Error()) {
				continue // the peer listens and has not opened the group yet
			}
			voted <- err
			return
		}
	}()
	b = startNode(t, t.TempDir(), string(address))
	t.Cleanup(func() { b.stop() })
	answer(t, barePort(t, b, 1), func(any) (any, error) { return &raft.RequestVoteResponse{Granted: true}, nil })
	require.NoError(t, <-voted)
}

func TestPeerOfAnotherClusterIsRefused(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	conn, err := nodelink.Dial(string(n.address()), nil)
	require.NoError(t, err)
	defer conn.Close()
	for name, hello := range map[string]*node.Hello{"other cluster": {ClusterId: "other"}, "no hello": nil} {
		t.Run(name, func(t *testing.T) {
			stream, err := node.NewRaftTransportClient(conn).Exchange(t.Context())
			require.NoError(t, err)
			require.NoError(t, stream.Send(&node.RaftFrame{Hello: hello}))
			_, err = stream.Recv()
			require.ErrorContains(t, err, "PermissionDenied")
		})
	}
}

// snapshotRequest is one that a leader would send for the state of j.
func snapshotRequest(at Position) *raft.InstallSnapshotRequest {
	return &raft.InstallSnapshotRequest{
		RPCHeader: testHeader, SnapshotVersion: 1, Term: at.Term, LastLogIndex: at.Index, LastLogTerm: at.Term,
		Configuration:      raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "a:1"}}}),
		ConfigurationIndex: 1,
	}
}

// filledJournal returns a journal at index 10 with five commands.
func filledJournal(t *testing.T) *journal {
	j := memJournal(t)
	for i := range uint64(5) {
		data, err := sealJournal([][]byte{[]byte("command " + string('1'+byte(i)))})
		require.NoError(t, err)
		_, err = j.Apply([]Entry{{Index: 6 + i, Term: 2, Data: data}})
		require.NoError(t, err)
	}
	return j
}

func exported(t *testing.T, j *journal) string {
	view, err := j.Export()
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, statestream.Write(t.Context(), &b, view))
	require.NoError(t, view.Close())
	return b.String()
}

// restore does what Raft does with an InstallSnapshot request.
func restore(in *installer, req *raft.InstallSnapshotRequest) error {
	sink, err := in.snaps.Create(1, req.LastLogIndex, req.LastLogTerm, raft.DecodeConfiguration(req.Configuration), req.ConfigurationIndex, nil)
	if err == nil {
		err = sink.Close()
	}
	if err != nil {
		return err
	}
	_, source, err := in.snaps.Open(sink.ID())
	if err != nil {
		return err
	}
	return in.snaps.fsm.Restore(source)
}

// restoring responds to InstallSnapshot like Raft.
func restoring(p *port) func(any) (any, error) {
	return func(command any) (any, error) {
		err := restore(p.group.fsm.install, command.(*raft.InstallSnapshotRequest))
		return &raft.InstallSnapshotResponse{Term: 2, Success: err == nil}, err
	}
}

func TestSnapshotIsInstalledOverTheWire(t *testing.T) {
	from, to := twoPorts(t)
	source := filledJournal(t)
	req := snapshotRequest(Position{Index: 12, Term: 2})
	got := answer(t, to, restoring(to))
	var resp raft.InstallSnapshotResponse
	require.NoError(t, from.InstallSnapshot("b", to.LocalAddr(), req, &resp, strings.NewReader(exported(t, source))))
	require.True(t, resp.Success)
	<-got
	requireCommands(t, to.group.cfg.StateMachine.(*journal), 5)
	rec, ok, err := hardstate.CurrentSnapshot.Load(to.group.storage)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Position{Index: 10, Term: 2}, rec.State)
	require.Equal(t, uint64(12), rec.Index)

	// The same snapshot is acknowledged without Raft: the state covers it.
	require.NoError(t, from.InstallSnapshot("b", to.LocalAddr(), req, &resp, strings.NewReader("")))
	require.True(t, resp.Success)
	// An older one is refused.
	old := snapshotRequest(Position{Index: 9, Term: 1})
	require.ErrorContains(t, from.InstallSnapshot("b", to.LocalAddr(), old, &resp, strings.NewReader("")), errNotNewer.Error())
}

func TestBrokenSnapshotLeavesTheOldState(t *testing.T) {
	from, to := twoPorts(t)
	var log bytes.Buffer
	to.group.log = slog.New(slog.NewTextHandler(&log, nil))
	to.t.refusals = logsample.New[string](1, time.Hour, maxSampled) // a busy machine takes longer than samplePause
	whole := exported(t, filledJournal(t))
	req := snapshotRequest(Position{Index: 10, Term: 2})
	var resp raft.InstallSnapshotResponse
	flipped := []byte(whole)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string]io.Reader{
		"cut":     strings.NewReader(whole[:len(whole)-3]),
		"flipped": strings.NewReader(string(flipped)),
		"sender fails": io.MultiReader(strings.NewReader(whole[:30]), readerFunc(func([]byte) (int, error) {
			return 0, errPlanted
		})),
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, from.InstallSnapshot("b", to.LocalAddr(), req, &resp, data))
			require.Equal(t, Position{}, to.group.cfg.StateMachine.Applied())
		})
	}
	// And it can still be installed, once the receiver has seen the last sender's end.
	answer(t, to, restoring(to))
	require.Eventually(t, func() bool {
		err := from.InstallSnapshot("b", to.LocalAddr(), req, &resp, strings.NewReader(whole))
		if err != nil && strings.Contains(err.Error(), errInstallBusy.Error()) {
			return false
		}
		require.NoError(t, err)
		return true
	}, time.Minute, time.Millisecond)
	require.True(t, resp.Success)
	require.Equal(t, 1, strings.Count(log.String(), "snapshot not installed"), log.String())
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestLogThatHasTheSnapshotIsKept(t *testing.T) {
	from, to := twoPorts(t)
	require.NoError(t, to.group.storage.StoreLogs(logstoretest.Logs(1, 20)))
	var resp raft.InstallSnapshotResponse
	req := snapshotRequest(Position{Index: 15, Term: 3})
	require.NoError(t, from.InstallSnapshot("b", to.LocalAddr(), req, &resp, strings.NewReader("")))
	require.True(t, resp.Success)
	logstoretest.RequireBounds(t, to.group.storage, 1, 20)
}

func TestInstallationThatDoesNotFitTheLogRebuildsRaft(t *testing.T) {
	for _, c := range []struct {
		name string
		last uint64
		want string
	}{
		{"log goes beyond", 20, "did not end before"},
		{"log ends with another entry", 10, "did not end before"},
		{"log ends before", 5, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, to := twoPorts(t)
			var why string
			in := to.group.fsm.install
			in.rebuild = func(reason string) { why = reason }
			require.NoError(t, to.group.storage.StoreLogs(logstoretest.Logs(1, c.last))) // of term 3
			install := func() error {
				req := snapshotRequest(Position{Index: 10, Term: 4})
				st, err := in.stage(req, strings.NewReader(exported(t, filledJournal(t))))
				require.NoError(t, err)
				in.setStaged(st)
				return restore(in, req)
			}
			require.NoError(t, install())
			if c.want == "" {
				require.Empty(t, why)
				// Raft installs it again: its log and its memory disagree.
				in.guard(hardstate.SnapshotRecord{Index: 10, Term: 4})
				require.Contains(t, why, "twice")
				return
			}
			require.Contains(t, why, c.want)
			require.ErrorIs(t, install(), errNotNewer)
		})
	}
}

func TestRestoreWithoutAReceivedSnapshotFails(t *testing.T) {
	_, to := twoPorts(t)
	require.ErrorIs(t, restore(to.group.fsm.install, snapshotRequest(Position{Index: 10, Term: 4})), errNoSnapshot)
}

func TestRefusedDialMeansDead(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	other := startNode(t, t.TempDir(), "")
	defer other.stop()
	require.False(t, other.transport.dialRefused(n.address()), "the node listens")
	n.stop()
	require.True(t, other.transport.dialRefused(n.address()))
}

// TestAPeerThatConnectsIsDialed requires that a follower, which sends nothing until it needs
// votes, is connected to its peers when they are connected to it.
func TestAPeerThatConnectsIsDialed(t *testing.T) {
	from, to := twoPorts(t)
	_, err := to.t.peers.Peer(from.LocalAddr()) // a member of one of its groups
	require.NoError(t, err)
	require.False(t, to.t.peers.Connected(from.LocalAddr()))
	from.t.connect(to.LocalAddr())
	require.Eventually(t, func() bool { return to.t.peers.Connected(from.LocalAddr()) }, time.Minute, time.Millisecond)
}

// TestALockedGroupDelaysNoOthers holds the lock of a group, as while it is opened or stopped,
// which may take as long as its disk. Other groups receive requests over the same stream.
func TestALockedGroupDelaysNoOthers(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	defer n.stop()
	g, err := Open(n.config(1, memJournal(t), n.voter()))
	require.NoError(t, err)
	waitLeader(t, g)
	s := &sender{t: n.transport, Peer: &nodelink.Peer{Node: "n2", Incarnation: "1", Authenticated: true}}
	done := make(chan struct{})
	g.mu.Lock()
	go func() {
		defer close(done)
		_ = s.check(g.port, nil)
		n.transport.peerLost("127.0.0.1:1")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the group's lock was awaited")
	}
	g.mu.Unlock()
	<-done
	require.NoError(t, g.Shutdown(t.Context()))
}

// TestSendersHaveAReplica includes that of a replica which is catching up: the configuration in its
// log may be older than the membership of the leader that added it, and a leader that is to leave is not
// in the partition table either.
func TestSendersHaveAReplica(t *testing.T) {
	n := startNodeWith(t, t.TempDir(), "", TransportConfig{MayServe: func(uint32, string, bool) bool { return false }})
	defer n.stop()
	former := raft.Server{ID: "n1/1", Address: "127.0.0.1:1"}
	for i, test := range []struct {
		name   string
		voters []raft.Server
		node   string
		want   string
	}{
		{"a member", []raft.Server{n.voter(), former}, "n1", ""},
		{"no member", []raft.Server{n.voter(), former}, "n2", "node n2 has no replica of group 2"},
		{"a replica that catches up", []raft.Server{former}, "n2", ""},
		{"a replica without members", nil, "n2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := Open(n.config(uint32(i+1), memJournal(t), test.voters...))
			require.NoError(t, err)
			s := &sender{t: n.transport, Peer: &nodelink.Peer{Node: test.node, Incarnation: "1", Authenticated: true}}
			if err := s.check(g.port, nil); test.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.want)
			}
			require.NoError(t, g.Shutdown(t.Context()))
		})
	}
}
