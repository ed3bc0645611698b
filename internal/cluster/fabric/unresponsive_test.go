package fabric

import (
	"context"
	"iter"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
	"platform/proto/node"
)

// invokeFake returns a leader that responds to Invoke immediately.
func invokeFake() *fake {
	p := newFake(true)
	p.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) {
		return machine.Outcome{ExpiresAt: 7}, nil
	}
	return p
}

// unresponsiveServer accepts streams and never sends anything.
type unresponsiveServer struct {
	node.UnimplementedNodePartitionsServer
}

func (unresponsiveServer) Exchange(stream node.NodePartitions_ExchangeServer) error {
	<-stream.Context().Done()
	return nil
}

func startUnresponsiveServer(t *testing.T) string {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	node.RegisterNodePartitionsServer(s, unresponsiveServer{})
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(lis) })
	t.Cleanup(func() {
		s.Stop()
		served.Wait()
	})
	return lis.Addr().String()
}

// helloFake lets the hello of a node arrive while a request waits for it, and the time for that end as well.
type helloFake struct {
	*fake
	link *link
}

func (f helloFake) Changed() <-chan struct{} {
	time.Sleep(2 * f.link.conn.c.timeouts.connect)
	f.link.greeted()
	return nil
}

// On a busy machine a request may learn of both at the same time.
func TestANodeWhoseHelloArrivesLastIsResponsive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			l := newLink(&nodeConn{c: &Client{timeouts: defaultTimeouts}})
			_ = l.awaitConnected(t.Context(), leaderWatch{local: helloFake{newFake(false), l}, addressOf: configuredAddress})
			require.False(t, l.conn.unresponsive.Load())
		}
	})
}

// A request waiting for a connection to the leader is sent to the new leader as soon as the
// local replica learns of it.
func TestLeaderChangeEndsConnectionAttempt(t *testing.T) {
	unresponsive := startUnresponsiveServer(t)
	next := startNode(t, "c", localReplica(invokeFake()))
	c := newClient(t, "c")
	c.timeouts.connect = time.Hour
	local := newFake(false)
	local.set(false, leaderOf("a", unresponsive))
	h := directory(c, local, unresponsive, next.address)
	done := make(chan error, 1)
	go func() { _, err := h.Invoke(t.Context(), invocation(1)); done <- err }()
	require.Eventually(t, func() bool { return h.d.Stats().Remote == 1 }, time.Minute, time.Millisecond)
	local.set(false, leaderOf("b", next.address))
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Fatal("request still waits for the old leader")
	}
}

// Once a node has been found unresponsive, requests try the other replicas first and do not
// wait for a connection to it.
func TestUnresponsiveNodeIsTriedLastWithoutWaiting(t *testing.T) {
	old := invokeFake()
	started := make(chan struct{}, 1)
	old.call = func(ctx context.Context, _ *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
		started <- struct{}{}
		<-ctx.Done()
		return e, o, ctx.Err()
	}
	proxy := startBlackhole(t, startNode(t, "c", localReplica(old)).address)
	next := startNode(t, "c", localReplica(invokeFake()))
	c := newClient(t, "c")
	c.timeouts = timeouts{connect: time.Hour, ping: 5 * time.Millisecond, unresponsive: 50 * time.Millisecond, accepted: time.Hour}
	h := directory(c, nil, proxy.address, next.address)
	h.d.cfg.Unresponsive = c.Unresponsive
	called := make(chan error, 1)
	go func() { _, _, err := h.Call(t.Context(), invocation(1)); called <- err }()
	<-started
	require.False(t, c.Unresponsive(proxy.address))
	proxy.drop()
	require.ErrorIs(t, <-called, raftgroup.ErrUnknownOutcome)
	require.True(t, c.Unresponsive(proxy.address))

	before := h.d.Stats().Remote
	_, err := h.Invoke(t.Context(), invocation(2))
	require.NoError(t, err)
	require.EqualValues(t, 1, h.d.Stats().Remote-before, "requests")

	h.d.cfg.Replicas = func(uint32) []string { return []string{proxy.address} }
	h.d.cfg.LookupTimeout = time.Millisecond
	h.leader.Store(nil)
	failed := make(chan error, 1)
	go func() { _, err := h.Invoke(t.Context(), invocation(3)); failed <- err }()
	select {
	case err := <-failed:
		require.ErrorIs(t, err, ErrUnreachable)
	case <-time.After(time.Minute):
		t.Fatal("request waits for an unresponsive node")
	}
	c.Seen(proxy.address)
	require.False(t, c.Unresponsive(proxy.address), "the node has connected to this one")
}

// An unresponsive node gets requests again once it responds.
func TestUnresponsiveNodeRecovers(t *testing.T) {
	n := startNode(t, "c", localReplica(invokeFake()))
	c := newClient(t, "c")
	p, err := c.nodeConn(n.address)
	require.NoError(t, err)
	p.unresponsive.Store(true)
	h := directory(c, nil, n.address)
	h.d.cfg.Unresponsive, h.d.cfg.LookupTimeout = c.Unresponsive, 20*time.Second
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.False(t, c.Unresponsive(n.address))
}

func TestUnresponsiveNodesAreTriedLast(t *testing.T) {
	w := newFakeCluster("a", "b", "c")
	w.lead("c")
	w.local = newFake(false)
	w.local.set(false, leaderOf("a", "a"))
	h := w.handle()
	h.d.cfg.Unresponsive = func(address string) bool { return address == "a" }
	_, err := h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c"}, w.takeRequested(), "the leader known by the local replica is unresponsive")
	w.lead("a")
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"c", "c", "b", "a"}, w.takeRequested(), "c is asked to relay, and an unresponsive node is still tried")
}

func TestLookupWaitsForElectedLocalReplica(t *testing.T) {
	w := newFakeCluster("a", "b")
	w.local = newFake(false)
	w.local.invoke = invokeFake().invoke
	w.local.set(false, leaderOf("self", "self"))
	h := w.handle()
	done := make(chan error, 1)
	go func() { _, err := h.Invoke(t.Context(), invocation(1)); done <- err }()
	require.Eventually(t, func() bool { return h.d.Stats().Rounds > 0 }, time.Minute, time.Millisecond)
	w.local.set(true, leaderOf("self", "self"))
	require.NoError(t, <-done)
	require.Empty(t, w.takeRequested())
}

// Records use a separate stream, which is monitored like any request.
func TestRecordsStreamEndsWhenNodeIsUnresponsiveOrDeposed(t *testing.T) {
	for _, leaderChanges := range []bool{false, true} {
		p := newFake(true)
		started := make(chan struct{}, 1)
		p.records = func(ctx context.Context, _ bool) iter.Seq2[partition.Record, error] {
			return func(func(partition.Record, error) bool) {
				started <- struct{}{}
				<-ctx.Done()
			}
		}
		proxy := startBlackhole(t, startNode(t, "c", localReplica(p)).address)
		c := newClient(t, "c")
		c.timeouts = timeouts{connect: 100 * time.Millisecond, ping: 5 * time.Millisecond, unresponsive: 100 * time.Millisecond, accepted: time.Hour}
		local := newFake(false)
		local.set(false, leaderOf("a", proxy.address))
		r := c.Remote(proxy.address, 0).withLeaderWatch(leaderWatch{local: local, address: proxy.address, addressOf: configuredAddress})
		if leaderChanges {
			c.timeouts.connect, c.timeouts.unresponsive = time.Hour, time.Hour
		}
		ended := make(chan error, 1)
		go func() {
			for _, err := range r.Records(t.Context(), false) {
				ended <- err
			}
		}()
		<-started
		if leaderChanges {
			local.set(false, leaderOf("b", "b"))
		} else {
			proxy.drop()
		}
		select {
		case err := <-ended:
			require.ErrorIs(t, err, ErrUnreachable)
		case <-time.After(time.Minute):
			t.Fatal("reader still waits for the node")
		}
	}
}
