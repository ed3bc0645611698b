package partition

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// testNetwork has the connections between the hosts of a test. Each direction can be cut, which
// loses nothing that TCP would not retransmit once it is repaired.
type testNetwork struct {
	mu    sync.Mutex // covers the fields below
	names map[raft.ServerAddress]string
	cuts  map[direction]chan struct{} // closed when repaired
	conns map[*testConn]struct{}
	off   map[string]bool // severed hosts
	// tap observes the bytes of a direction before they are sent.
	tap func(w direction, n int)
}

type direction struct{ from, to string }

func newTestNetwork() *testNetwork {
	return &testNetwork{names: map[raft.ServerAddress]string{}, cuts: map[direction]chan struct{}{}, conns: map[*testConn]struct{}{}, off: map[string]bool{}}
}

func (w *testNetwork) cut(from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cuts[direction{from, to}] == nil {
		w.cuts[direction{from, to}] = make(chan struct{})
	}
}

// isolate cuts a host off in both directions.
func (w *testNetwork) isolate(name string, others ...string) {
	for _, o := range others {
		if o != name {
			w.cut(name, o)
			w.cut(o, name)
		}
	}
}

func (w *testNetwork) repair() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.cuts {
		close(c)
	}
	clear(w.cuts)
}

// sever closes all connections of hosts, including data in transit, and prevents new ones
// until turnOn.
func (w *testNetwork) sever(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if slices.Contains(names, c.from) || slices.Contains(names, c.to) {
			c.severed.Store(true)
			_ = c.Conn.Close()
		}
	}
	for _, name := range names {
		w.off[name] = true
	}
}

// turnOn makes severed hosts reachable again.
func (w *testNetwork) turnOn(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		delete(w.off, name)
	}
}

// pass waits until the direction is open; false if stop is closed first.
func (w *testNetwork) pass(stop <-chan struct{}, from, to string) bool {
	for {
		w.mu.Lock()
		cut := w.cuts[direction{from, to}]
		w.mu.Unlock()
		if cut == nil {
			return true
		}
		select {
		case <-cut:
		case <-stop:
			return false
		}
	}
}

func (w *testNetwork) count(from, to string, n int) {
	w.mu.Lock()
	tap := w.tap
	w.mu.Unlock()
	if tap != nil {
		tap(direction{from, to}, n)
	}
}

func (w *testNetwork) watch(tap func(direction, int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tap = tap
}

// dialer returns the function with which the host from dials the others.
func (w *testNetwork) dialer(from string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		w.mu.Lock()
		to := w.names[raft.ServerAddress(addr)]
		w.mu.Unlock()
		if !w.pass(ctx.Done(), from, to) || !w.pass(ctx.Done(), to, from) {
			return nil, ctx.Err()
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		c := &testConn{Conn: conn, network: w, from: from, to: to, closed: make(chan struct{})}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.off[from] || w.off[to] {
			return nil, errors.Join(net.ErrClosed, conn.Close())
		}
		w.conns[c] = struct{}{}
		return c, nil
	}
}

// testConn is the dialing end of one connection.
type testConn struct {
	net.Conn
	network  *testNetwork
	from, to string
	once     sync.Once
	closed   chan struct{}
	severed  atomic.Bool
}

func (c *testConn) Write(b []byte) (int, error) {
	c.network.count(c.from, c.to, len(b))
	if !c.network.pass(c.closed, c.from, c.to) || c.severed.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *testConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.network.pass(c.closed, c.to, c.from) || c.severed.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *testConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		delete(c.network.conns, c)
	})
	return c.Conn.Close()
}
