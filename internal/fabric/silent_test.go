package fabric

import (
	"context"
	"iter"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
	"platform/proto/node"
)

// accepting is a replica that answers every request at once.
func accepting() *fake {
	p := newFake(true)
	p.invoke = func(context.Context, *machine.Invoke) (machine.Outcome, error) {
		return machine.Outcome{ExpiresAt: 7}, nil
	}
	return p
}

// mute accepts streams and says nothing on them.
type mute struct {
	node.UnimplementedNodePartitionsServer
}

func (mute) Exchange(stream node.NodePartitions_ExchangeServer) error {
	<-stream.Context().Done()
	return nil
}

func startMute(t *testing.T) string {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	node.RegisterNodePartitionsServer(s, mute{})
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(lis) })
	t.Cleanup(func() {
		s.Stop()
		served.Wait()
	})
	return lis.Addr().String()
}

// A request that waits for a connection to the leader goes to its successor as soon as
// the local replica knows that one.
func TestAConnectionToADeposedLeaderIsNotWaitedFor(t *testing.T) {
	silent := startMute(t)
	next := startNode(t, "c", only(accepting()))
	c := newClient(t, "c")
	c.patience.reach = time.Hour
	local := newFake(false)
	local.set(false, leaderOf("a", silent))
	h := directory(c, local, silent, next.address)
	answered := make(chan error, 1)
	go func() { _, err := h.Invoke(t.Context(), invocation(1)); answered <- err }()
	require.Eventually(t, func() bool { return h.d.Stats().Remote == 1 }, 20*time.Second, time.Millisecond)
	local.set(false, leaderOf("b", next.address))
	select {
	case err := <-answered:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the request waits for the old leader")
	}
}

// A node that falls silent is found out once. Requests after that go to the other
// replicas first, and do not wait for it.
func TestANodeThatFellSilentIsAskedLastAndNotWaitedFor(t *testing.T) {
	old := accepting()
	began := make(chan struct{}, 1)
	old.call = func(ctx context.Context, _ *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
		began <- struct{}{}
		<-ctx.Done()
		return e, o, ctx.Err()
	}
	way := startHole(t, startNode(t, "c", only(old)).address)
	next := startNode(t, "c", only(accepting()))
	c := newClient(t, "c")
	c.patience = patience{reach: time.Hour, ping: 5 * time.Millisecond, deaf: 50 * time.Millisecond, held: time.Hour}
	h := directory(c, nil, way.address, next.address)
	h.d.cfg.Silent = c.Silent
	called := make(chan error, 1)
	go func() { _, _, err := h.Call(t.Context(), invocation(1)); called <- err }()
	<-began
	require.False(t, c.Silent(way.address))
	way.stop()
	require.ErrorIs(t, <-called, raftgroup.ErrUnknownOutcome)
	require.True(t, c.Silent(way.address))

	before := h.d.Stats().Remote
	_, err := h.Invoke(t.Context(), invocation(2))
	require.NoError(t, err)
	require.EqualValues(t, 1, h.d.Stats().Remote-before, "requests")

	h.d.cfg.Replicas = func(uint32) []string { return []string{way.address} }
	h.d.cfg.Patience = time.Millisecond
	h.leader.Store(nil)
	refused := make(chan error, 1)
	go func() { _, err := h.Invoke(t.Context(), invocation(3)); refused <- err }()
	select {
	case err := <-refused:
		require.ErrorIs(t, err, ErrUnreachable)
	case <-time.After(10 * time.Second):
		t.Fatal("the request waits for a silent node")
	}
	c.Seen(way.address)
	require.False(t, c.Silent(way.address), "it has connected to this node")
}

// A node that was silent is served again when it answers, without being waited for.
func TestASilentNodeThatComesBackIsAsked(t *testing.T) {
	n := startNode(t, "c", only(accepting()))
	c := newClient(t, "c")
	p, err := c.peer(n.address)
	require.NoError(t, err)
	p.silent.Store(true)
	h := directory(c, nil, n.address)
	h.d.cfg.Silent, h.d.cfg.Patience = c.Silent, 20*time.Second
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.False(t, c.Silent(n.address))
}

func TestSilentNodesAreAskedLast(t *testing.T) {
	w := newWorld("a", "b", "c")
	w.lead("c")
	w.local = newFake(false)
	w.local.set(false, leaderOf("a", "a"))
	h := w.handle()
	h.d.cfg.Silent = func(address string) bool { return address == "a" }
	_, err := h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c"}, w.order(), "not the leader that the local replica still believes in")
	w.lead("a")
	_, err = h.Invoke(t.Context(), invocation(1))
	require.NoError(t, err)
	require.Equal(t, []string{"c", "b", "a"}, w.order(), "it may lead all the same")
}

func TestNobodyElseIsAskedWhileTheLocalReplicaTakesOver(t *testing.T) {
	w := newWorld("a", "b")
	w.local = newFake(false)
	w.local.invoke = accepting().invoke
	w.local.set(false, leaderOf("self", "self"))
	h := w.handle()
	answered := make(chan error, 1)
	go func() { _, err := h.Invoke(t.Context(), invocation(1)); answered <- err }()
	require.Eventually(t, func() bool { return h.d.Stats().Rounds > 0 }, 20*time.Second, time.Millisecond)
	w.local.set(true, leaderOf("self", "self"))
	require.NoError(t, <-answered)
	require.Empty(t, w.order())
}

// Records come on a stream of their own, which is given up like any request.
func TestRecordsOfASilentOrDeposedNodeAreGivenUp(t *testing.T) {
	for _, moves := range []bool{false, true} {
		p := newFake(true)
		began := make(chan struct{}, 1)
		p.records = func(ctx context.Context, _ bool) iter.Seq2[partition.Record, error] {
			return func(func(partition.Record, error) bool) {
				began <- struct{}{}
				<-ctx.Done()
			}
		}
		way := startHole(t, startNode(t, "c", only(p)).address)
		c := newClient(t, "c")
		c.patience = patience{reach: 100 * time.Millisecond, ping: 5 * time.Millisecond, deaf: 100 * time.Millisecond, held: time.Hour}
		local := newFake(false)
		local.set(false, leaderOf("a", way.address))
		r := c.Remote(way.address, 0).watched(watch{local: local, address: way.address, at: configured})
		if moves {
			c.patience.reach, c.patience.deaf = time.Hour, time.Hour
		}
		ended := make(chan error, 1)
		go func() {
			for _, err := range r.Records(t.Context(), false) {
				ended <- err
			}
		}()
		<-began
		if moves {
			local.set(false, leaderOf("b", "b"))
		} else {
			way.stop()
		}
		select {
		case err := <-ended:
			require.ErrorIs(t, err, ErrUnreachable)
		case <-time.After(20 * time.Second):
			t.Fatal("the reader waits for a node that does not answer")
		}
	}
}
