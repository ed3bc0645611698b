package fabric

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/logsample"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/proto/node"
	"platform/test/harness/ports"
)

// separated is a node that is separated from the leader of a partition, while a third node is
// connected to both.
type separated struct {
	handle        *Handle
	client        *Client
	leader        *testNode
	follower      *testNode
	followersView *fake
	log           *bytes.Buffer // of the follower
	relay         *Client       // of the follower
	reachable     atomic.Bool
}

// separate starts a leader and a follower, and returns a node that cannot connect to the leader.
func separate(t *testing.T, leading *fake) *separated {
	s := &separated{followersView: newFake(false), log: new(bytes.Buffer), relay: newClient(t, "c")}
	s.leader = startNode(t, "c", localReplica(leading))
	s.followersView.set(false, leaderOf(s.leader.address, s.leader.address))
	s.follower = serveRelay(t, s.followersView, s.relay, s.log)
	unused := ports.Address(t)
	s.client = NewClient(ClientConfig{Self: identity("c", "client"), Log: quiet, Level: newest, Dial: func(address string) (nodelink.Conn, error) {
		if address == s.leader.address && !s.reachable.Load() {
			address = unused
		}
		return nodelink.Dial(address, nil)
	}})
	t.Cleanup(func() { require.NoError(t, s.client.Close()) })
	s.handle = directory(s.client, nil, s.leader.address, s.follower.address)
	s.handle.d.cfg.Unresponsive = s.client.Unresponsive
	return s
}

func newest() feature.Level { return feature.Newest }

// serveRelay starts a node that relays requests with a client.
func serveRelay(t *testing.T, local Local, client *Client, log *bytes.Buffer) *testNode {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveNode(t, lis, "c", localReplica(local), func(_ *grpc.Server, s *Server) {
		s.relays = newRelays(client, configuredAddress)
		s.relays.logged = logsample.New[relayedPair](1, time.Hour, maxRelayedPairs) // a busy machine takes longer than relayLogInterval
		s.log = slog.New(slog.NewTextHandler(log, nil))
	})
}

func TestEveryRequestIsRelayedToALeaderOutOfReach(t *testing.T) {
	s := separate(t, respondingLeader())
	for _, c := range []*Client{s.client, s.relay} { // on a busy machine, a node that responds late is no reason for another round
		c.timeouts = timeouts{connect: time.Hour, ping: time.Hour, unresponsive: time.Hour, accepted: time.Hour}
	}
	requireResponses(t, s.handle)
	stats := s.handle.d.Stats()
	require.EqualValues(t, 9, stats.Relayed)
	require.Zero(t, stats.Rounds)
	s.follower.stop() // the log is complete
	require.Equal(t, 1, strings.Count(s.log.String(), "are relayed"), "logged once")
}

// The leader rejects a request of a newer release, and so does the node that relays it.
func TestRequestsOfUnknownMethodsAreRelayed(t *testing.T) {
	leader := startNode(t, "c", localReplica(respondingLeader()))
	view := newFake(false)
	view.set(false, leaderOf(leader.address, leader.address))
	server := NewServer(ServerConfig{Self: identity("c", "follower"), Local: localReplica(view), Relay: newClient(t, "c"), Log: quiet})
	for _, method := range []node.PartitionMethod{methods, -1} {
		id := invocationID(1)
		r := server.serveRequest(t.Context(), &nodelink.Peer{}, &node.PartitionRequest{Method: method, Relay: true, Id: id[:]})
		require.Equal(t, node.PartitionCode_PARTITION_CODE_FAILED, r.Code)
		require.Contains(t, r.Message, "unknown request method")
	}
}

// A relayed request of a newer release may propose something: it is not sent again, to another leader or for a response without room.
func TestRelayedRequestsOfUnknownMethodsAreNotRepeated(t *testing.T) {
	to := newClient(t, "c").Remote("127.0.0.1:1", 0)
	for _, method := range []node.PartitionMethod{methods, -1} {
		err := to.transportError(t.Context(), method, true, errUnresponsive)
		require.ErrorIs(t, err, raftgroup.ErrUnknownOutcome)
		require.Nil(t, repeatable(&node.PartitionRequest{Method: method}, new(node.PartitionResponse)))
		err = to.transportError(t.Context(), method, false, errUnresponsive)
		require.ErrorIs(t, err, ErrUnreachable)
	}
}

// A leader that accepts connections and does not respond is found unresponsive first; later
// requests are relayed immediately.
func TestRequestsAreRelayedToAnUnresponsiveLeader(t *testing.T) {
	unresponsive := startUnresponsiveServer(t)
	leader := startNode(t, "c", localReplica(respondingLeader()))
	view := newFake(false)
	view.set(false, leaderOf("a", unresponsive))
	toLeader := NewClient(ClientConfig{Self: identity("c", "follower"), Log: quiet, Dial: func(string) (nodelink.Conn, error) {
		return nodelink.Dial(leader.address, nil)
	}})
	t.Cleanup(func() { require.NoError(t, toLeader.Close()) })
	follower := serveRelay(t, view, toLeader, new(bytes.Buffer))
	c := newClient(t, "c")
	c.timeouts.connect = 10 * time.Millisecond
	toFollower, err := c.nodeConn(follower.address)
	require.NoError(t, err)
	l, err := toFollower.open()
	require.NoError(t, err)
	<-l.connected // which may take longer than the timeout
	h := directory(c, nil, follower.address, unresponsive)
	h.d.cfg.Unresponsive = c.Unresponsive
	for range 2 {
		_, err := h.Find(t.Context(), invocationID(1))
		require.NoError(t, err)
	}
	require.EqualValues(t, 5, h.d.Stats().Remote, "follower, leader, relay; follower, relay")
}

// A request that waits for long ends when its leader is replaced, like one that is not relayed.
func TestRelayedRequestEndsWhenTheLeaderChanges(t *testing.T) {
	waiting := newFake(true)
	started := make(chan struct{})
	waiting.await = func(ctx context.Context, _ ids.Invocation) (partition.Ending, error) {
		close(started)
		<-ctx.Done()
		return partition.Ending{}, ctx.Err()
	}
	s := separate(t, waiting)
	next := startNode(t, "c", localReplica(respondingLeader()))
	done := make(chan error, 1)
	go func() {
		_, err := s.handle.Await(t.Context(), invocationID(1))
		done <- err
	}()
	<-started
	waiting.set(false, leaderOf(next.address, next.address))
	s.followersView.set(false, leaderOf(next.address, next.address))
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the request still waits for the old leader")
	}
}

// Followers that take each other for the leader do not send a request around.
func TestRequestIsRelayedOnce(t *testing.T) {
	leading := newFake(false)
	s := separate(t, leading)
	leading.set(false, leaderOf(s.follower.address, s.follower.address))
	s.handle.d.cfg.LookupTimeout = 50 * time.Millisecond
	_, err := s.handle.Find(t.Context(), invocationID(1))
	require.ErrorIs(t, err, raftgroup.ErrNotLeader)
	require.True(t, raftgroup.Definite(err))
	require.Zero(t, leading.acceptedRequests())
	stats := s.handle.d.Stats()
	require.LessOrEqual(t, stats.Relayed, stats.Rounds+1)
}

func TestRelayThatCannotReachTheLeaderEitherIsDefinite(t *testing.T) {
	s := separate(t, respondingLeader())
	s.leader.stop()
	s.handle.d.cfg.LookupTimeout = 50 * time.Millisecond
	_, err := s.handle.Invoke(t.Context(), invocation(1))
	require.ErrorIs(t, err, raftgroup.ErrNotLeader)
	require.NotErrorIs(t, err, raftgroup.ErrUnknownOutcome)
}

func TestRequestsAreSentDirectlyOnceTheLeaderResponds(t *testing.T) {
	s := separate(t, respondingLeader())
	s.reachable.Store(true)
	leader, err := s.client.nodeConn(s.leader.address)
	require.NoError(t, err)
	leader.unresponsive.Store(true)
	stats := s.handle.d.Stats
	for end := time.Now().Add(20 * time.Second); ; {
		before := stats().Relayed
		s.handle.leader.Store(nil) // the follower is asked first
		_, err := s.handle.Find(t.Context(), invocationID(1))
		require.NoError(t, err)
		if stats().Relayed == before {
			break
		}
		require.True(t, time.Now().Before(end), "requests are still relayed")
	}
	require.NotZero(t, stats().Relayed)
}

// Each field of a request but relay must reach the leader.
func TestRelayedRequestIsComplete(t *testing.T) {
	req := new(node.PartitionRequest)
	fields := req.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch f.Kind() {
		case protoreflect.MessageKind:
			req.ProtoReflect().Mutable(f)
		case protoreflect.BytesKind:
			req.ProtoReflect().Set(f, protoreflect.ValueOfBytes([]byte{1}))
		case protoreflect.BoolKind:
			req.ProtoReflect().Set(f, protoreflect.ValueOfBool(true))
		case protoreflect.EnumKind:
			req.ProtoReflect().Set(f, protoreflect.ValueOfEnum(1))
		case protoreflect.Uint32Kind:
			req.ProtoReflect().Set(f, protoreflect.ValueOfUint32(1))
		case protoreflect.Uint64Kind:
			req.ProtoReflect().Set(f, protoreflect.ValueOfUint64(1))
		default:
			t.Fatalf("field %s has a kind that this test does not set", f.Name())
		}
	}
	relayed := relayedRequest(req)
	require.False(t, relayed.Relay)
	relayed.Relay = true
	require.True(t, proto.Equal(req, relayed), "%v\n%v", req, relayed)
}
