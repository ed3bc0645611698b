package fabric

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
)

// directory returns a handle that uses a client with real connections. local may be nil.
func directory(c *Client, local *fake, replicas ...string) *Handle {
	cfg := DirectoryConfig{
		Local:    func(uint32) Local { return nil },
		Remote:   func(address string, id uint32) Replica { return c.Remote(address, id) },
		Replicas: func(uint32) []string { return replicas }, Self: "client",
	}
	if local != nil {
		cfg.Local = localReplica(local)
	}
	return NewDirectory(1, cfg).Partition(0)
}

func TestLeaderChangeEndsPendingRequests(t *testing.T) {
	old := newFake(true)
	started := make(chan struct{}, 2)
	old.call = func(ctx context.Context, _ *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
		started <- struct{}{}
		<-ctx.Done()
		return e, o, ctx.Err()
	}
	old.await = func(ctx context.Context, _ ids.Invocation) (e partition.Ending, err error) {
		started <- struct{}{}
		<-ctx.Done()
		return e, ctx.Err()
	}
	next := newFake(true)
	next.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
		return partition.Ending{ExpiresAt: 5}, nil
	}
	a, b := startNode(t, "c", localReplica(old)), startNode(t, "c", localReplica(next))
	local := newFake(false)
	local.set(false, leaderOf("a", a.address))
	h := directory(newClient(t, "c"), local, a.address, b.address)
	called, awaited := make(chan error, 1), make(chan partition.Ending, 1)
	go func() { _, _, err := h.Call(t.Context(), invocation(1)); called <- err }()
	go func() {
		e, err := h.Await(t.Context(), invocationID(2))
		if err != nil {
			t.Error(err)
		}
		awaited <- e
	}()
	<-started
	<-started
	local.set(false, raftgroup.Leader{})
	local.set(false, leaderOf("a", a.address))
	select {
	case err := <-called:
		t.Fatalf("call ended although the same leader was re-elected: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	local.set(false, leaderOf("b", b.address))
	require.ErrorIs(t, <-called, raftgroup.ErrUnknownOutcome, "the caller decides whether to retry")
	require.EqualValues(t, 5, (<-awaited).ExpiresAt, "reads are retried immediately")
}

func TestServerWaitsForElectedReplicaToBecomeReady(t *testing.T) {
	p := newFake(false)
	p.invoke = func(context.Context, *machine.Invoke) (o machine.Outcome, err error) { return o, nil }
	r, n := pair(t, p)
	p.set(false, leaderOf(n.address, n.address))
	done := make(chan error, 1)
	go func() { _, err := r.Invoke(t.Context(), invocation(1)); done <- err }()
	select {
	case err := <-done:
		t.Fatalf("responded before it led: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	p.set(true, leaderOf(n.address, n.address))
	require.NoError(t, <-done)
}

// blackhole is a TCP proxy that discards all data after drop.
type blackhole struct {
	address string
	drop    func()
}

func startBlackhole(t *testing.T, to string) *blackhole {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stopped := make(chan struct{})
	var g sync.WaitGroup
	forward := func(dst, src net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := src.Read(buf)
			select {
			case <-stopped:
				_, _ = io.Copy(io.Discard, src) // keep reading, forward nothing
				return
			default:
			}
			if err != nil {
				_ = dst.Close()
				return
			}
			_, _ = dst.Write(buf[:n])
		}
	}
	var mu sync.Mutex
	var conns []net.Conn
	g.Go(func() {
		for {
			in, err := lis.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, in, out)
			mu.Unlock()
			g.Go(func() { forward(out, in) })
			g.Go(func() { forward(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = lis.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		g.Wait()
	})
	return &blackhole{lis.Addr().String(), sync.OnceFunc(func() { close(stopped) })}
}

func TestUnresponsiveNodeIsDetected(t *testing.T) {
	p := newFake(true)
	started := make(chan struct{}, 1)
	release := make(chan struct{}, 1)
	p.call = func(ctx context.Context, inv *machine.Invoke) (e partition.Ending, o machine.Outcome, err error) {
		started <- struct{}{}
		select {
		case <-release:
			return partition.Ending{Target: inv.Target}, o, nil
		case <-ctx.Done():
			return e, o, ctx.Err()
		}
	}
	n := startNode(t, "c", localReplica(p))
	proxy := startBlackhole(t, n.address)
	c := newClient(t, "c")
	c.timeouts = timeouts{connect: time.Minute, ping: 20 * time.Millisecond, unresponsive: 3 * time.Second}
	r := c.Remote(proxy.address, 0)
	result := make(chan error, 1)
	call := func() { _, _, err := r.Call(t.Context(), invocation(1)); result <- err }

	go call()
	<-started
	link := c.conns[proxy.address].link
	for range 5 {
		last := link.lastReceived.Load()
		require.Eventually(t, func() bool { return link.lastReceived.Load() > last }, time.Minute, time.Millisecond, "the node responds to pings")
	}
	release <- struct{}{}
	require.NoError(t, <-result)

	go call()
	<-started
	proxy.drop()
	err := <-result
	require.ErrorIs(t, err, raftgroup.ErrUnknownOutcome)
	require.True(t, errors.Is(err, errUnresponsive), "%v", err)
}
