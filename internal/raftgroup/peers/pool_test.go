package peers

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"platform/internal/nodelink"
	"platform/proto/node"
	"platform/test/harness/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testPeer is a node that responds to each request with respond, and to no request for which
// that returns nil.
type testPeer struct {
	node.UnimplementedRaftTransportServer
	respond func(*node.RaftFrame) *node.RaftFrame
}

func (p *testPeer) Exchange(stream node.RaftTransport_ExchangeServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&node.RaftFrame{Hello: &node.Hello{ClusterId: "c"}}); err != nil {
		return err
	}
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		if out := p.respond(f); out != nil {
			out.Sequence = f.Sequence
			if err := stream.Send(out); err != nil {
				return err
			}
		}
	}
}

func (p *testPeer) InstallSnapshot(stream node.RaftTransport_InstallSnapshotServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	received := uint64(0)
	for {
		c, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&node.InstallSnapshotResponse{Term: received, Success: first.Request.GetGroupId() == 1})
		}
		if err != nil {
			return err
		}
		received += uint64(len(c.Data))
	}
}

// start serves the peer at address, any free one if it is empty, until the test ends or stop is
// called.
func (p *testPeer) start(t *testing.T, address string) (_ raft.ServerAddress, stop func()) {
	if address == "" {
		address = ports.Address(t) // it may be started again
	}
	lis, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := grpc.NewServer(nodelink.ServerOptions()...)
	node.RegisterRaftTransportServer(server, p)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(lis)
	}()
	stop = func() {
		server.Stop()
		<-served
	}
	t.Cleanup(stop)
	return raft.ServerAddress(lis.Addr().String()), stop
}

// testPool returns a pool that accepts the peers of cluster c.
func testPool(t *testing.T) *Pool {
	p := NewPool(Config{
		Dial:  func(address string) (nodelink.Conn, error) { return nodelink.Dial(address, nil) },
		Hello: func() *node.Hello { return &node.Hello{ClusterId: "c"} },
		Verify: func(_ context.Context, h *node.Hello) error {
			if h.ClusterId != "c" {
				return errors.New("another cluster")
			}
			return nil
		},
		Refused:      func(addr raft.ServerAddress, err error) { t.Errorf("%s refused: %v", addr, err) },
		SnapshotRate: 1 << 30,
	})
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// echo responds with the term of a vote request.
func echo(f *node.RaftFrame) *node.RaftFrame {
	return &node.RaftFrame{VoteResponse: &node.VoteResponse{Term: f.VoteRequest.Term}}
}

func voteRequest(term uint64) *node.RaftFrame {
	return &node.RaftFrame{VoteRequest: &node.VoteRequest{Term: term}}
}

func TestEachRequestGetsItsResponse(t *testing.T) {
	addr, _ := (&testPeer{respond: echo}).start(t, "")
	pool := testPool(t)
	peer, err := pool.Peer(addr)
	require.NoError(t, err)
	again, err := pool.Peer(addr)
	require.NoError(t, err)
	require.Same(t, peer, again)
	require.False(t, pool.Connected(addr))
	for term := range uint64(20) {
		kind := Kind(term % 2)
		f, err := peer.Call(t.Context(), kind, time.Minute, voteRequest(term))
		require.NoError(t, err)
		require.Equal(t, term, f.VoteResponse.Term)
	}
	require.True(t, pool.Connected(addr))
	require.Nil(t, peer.Reconnected())
}

func TestRefusalsOfAPeerAreErrors(t *testing.T) {
	addr, _ := (&testPeer{respond: func(*node.RaftFrame) *node.RaftFrame { return &node.RaftFrame{Error: "no such group"} }}).start(t, "")
	peer, err := testPool(t).Peer(addr)
	require.NoError(t, err)
	_, err = peer.Call(t.Context(), Control, time.Minute, voteRequest(1))
	require.EqualError(t, err, string(addr)+": no such group")
}

func TestCallsEndWithTheirTimeoutAndContext(t *testing.T) {
	addr, _ := (&testPeer{respond: func(*node.RaftFrame) *node.RaftFrame { return nil }}).start(t, "")
	peer, err := testPool(t).Peer(addr)
	require.NoError(t, err)
	_, err = peer.Call(t.Context(), Control, 10*time.Millisecond, voteRequest(1))
	require.ErrorIs(t, err, ErrTimeout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = peer.Call(ctx, Control, time.Minute, voteRequest(1))
	require.ErrorIs(t, err, errHungUp)
}

// TestCallUntilReachesAPeerThatReturns starts the peer after the first dial was refused.
func TestCallUntilReachesAPeerThatReturns(t *testing.T) {
	p := &testPeer{respond: echo}
	addr, stop := p.start(t, "")
	stop()
	peer, err := testPool(t).Peer(addr)
	require.NoError(t, err)
	_, err = peer.Call(t.Context(), Control, time.Minute, voteRequest(1))
	require.ErrorIs(t, err, errNotSent)
	reconnected := peer.Reconnected()
	require.NotNil(t, reconnected)
	p.start(t, string(addr))
	f, err := peer.CallUntil(t.Context(), time.Minute, voteRequest(2))
	require.NoError(t, err)
	require.EqualValues(t, 2, f.VoteResponse.Term)
	<-reconnected
}

func TestPeersOfOtherClustersAreRefused(t *testing.T) {
	addr, _ := (&testPeer{respond: echo}).start(t, "")
	pool := testPool(t)
	var refused atomic.Int32
	pool.cfg.Verify = func(context.Context, *node.Hello) error { return errors.New("another cluster") }
	pool.cfg.Refused = func(raft.ServerAddress, error) { refused.Add(1) }
	peer, err := pool.Peer(addr)
	require.NoError(t, err)
	_, err = peer.Call(t.Context(), Control, time.Minute, voteRequest(1))
	require.ErrorContains(t, err, "another cluster")
	require.Positive(t, refused.Load())
	require.False(t, pool.Connected(addr))
}

func TestSnapshotsAreSentInChunks(t *testing.T) {
	addr, _ := (&testPeer{}).start(t, "")
	peer, err := testPool(t).Peer(addr)
	require.NoError(t, err)
	const size = 3*snapshotChunkBytes + 1
	out, err := peer.SendSnapshot(t.Context(), &node.InstallSnapshotRequest{GroupId: 1}, strings.NewReader(strings.Repeat("x", size)), func() {})
	require.NoError(t, err)
	require.True(t, out.Success)
	require.EqualValues(t, size, out.Term, "the bytes that arrived")
}

// TestAnAbortedSnapshotEndsItsReads ends a transfer whose data does not come.
func TestAnAbortedSnapshotEndsItsReads(t *testing.T) {
	addr, _ := (&testPeer{}).start(t, "")
	peer, err := testPool(t).Peer(addr)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	data, w := io.Pipe()
	defer w.Close()
	aborted := errors.New("aborted")
	go func() {
		_, _ = w.Write(make([]byte, snapshotChunkBytes))
		cancel()
	}()
	_, err = peer.SendSnapshot(ctx, &node.InstallSnapshotRequest{}, data, func() { _ = data.CloseWithError(aborted); w.CloseWithError(aborted) })
	require.Error(t, err)
}

// TestNoStreamIsOpenedWhileThePoolCloses requires that Close waits for all streams: a group may
// still use a peer when Close has begun.
func TestNoStreamIsOpenedWhileThePoolCloses(t *testing.T) {
	addr, _ := (&testPeer{respond: echo}).start(t, "")
	pool := testPool(t)
	peer, err := pool.Peer(addr)
	require.NoError(t, err)
	s, err := peer.stream(Control)
	require.NoError(t, err)
	require.NoError(t, pool.Close())
	require.True(t, s.calls.Broken())
	for kind := range kinds {
		_, err = peer.stream(kind)
		require.ErrorIs(t, err, errClosed)
	}
	_, err = pool.Peer("127.0.0.1:1")
	require.ErrorIs(t, err, errClosed)
}

// deadConn is a connection to an address where nothing listens.
type deadConn struct {
	nodelink.Conn
	closed atomic.Bool
}

func (c *deadConn) GetState() connectivity.State { return connectivity.TransientFailure }
func (c *deadConn) Close() error                 { c.closed.Store(true); return nil }
func (c *deadConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("connection refused")
}

// Nodes that are restarted elsewhere get other addresses, without end.
func TestConnectionsToFormerAddressesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*deadConn
		pool := testPool(t)
		pool.cfg.Dial = func(string) (nodelink.Conn, error) {
			conns = append(conns, new(deadConn))
			return conns[len(conns)-1], nil
		}
		use := func(addr raft.ServerAddress) *Peer {
			peer, err := pool.Peer(addr)
			require.NoError(t, err)
			return peer
		}
		pool.Connect("a:1")
		use("b:1")
		connected := use("d:1")
		working := newCallStream(connected)
		working.greeted.Store(true)
		connected.streams[Control] = working
		time.Sleep(unusedAfter)
		use("b:1")
		time.Sleep(time.Second)
		use("c:1")
		require.Len(t, pool.peers, 3)
		require.NotContains(t, pool.peers, raft.ServerAddress("a:1"))
		require.Contains(t, pool.peers, raft.ServerAddress("d:1"), "a follower keeps the connections that it needs for an election")
		require.True(t, conns[0].closed.Load() && conns[1].closed.Load(), "both connections to a")
		require.False(t, conns[2].closed.Load())
	})
}
