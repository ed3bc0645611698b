package raftgroup

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"
)

// gates hold what travels on the connections that one node has dialed, in the order
// in which it was sent, until they are opened. Its requests and their responses travel
// on these; what other nodes ask it travels on theirs.
type gates struct {
	mu    sync.Mutex // covers the fields below
	shut  map[string]*gate
	conns map[*gatedConn]bool // that are open
}

// gate is one direction of the connections to one address.
type gate struct {
	opened chan struct{} // closed when it is opened
	held   int           // bytes that arrived at it while it was shut
}

func newGates() *gates { return &gates{shut: map[string]*gate{}, conns: map[*gatedConn]bool{}} }

// requests names the messages sent to an address, answers those that it returns.
func requests(to raft.Server) string  { return "to " + string(to.Address) }
func answers(from raft.Server) string { return "from " + string(from.Address) }

func (g *gates) close(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut[name] = &gate{opened: make(chan struct{})}
}

func (g *gates) open(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shut := g.shut[name]; shut != nil {
		close(shut.opened)
		delete(g.shut, name)
	}
}

// held is how many bytes wait at a gate.
func (g *gates) held(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if shut := g.shut[name]; shut != nil {
		return shut.held
	}
	return 0
}

// pass waits with n bytes until the gate is open or the connection is closed.
func (g *gates) pass(name string, n int, closed <-chan struct{}) {
	for {
		g.mu.Lock()
		shut := g.shut[name]
		if shut != nil {
			shut.held += n
		}
		g.mu.Unlock()
		if shut == nil {
			return
		}
		select {
		case <-shut.opened:
		case <-closed:
			return
		}
	}
}

// dialer puts connections behind the gates.
func (g *gates) dialer() grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		c := &gatedConn{Conn: conn, gates: g, address: address, closed: make(chan struct{})}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.conns[c] = true
		return c, nil
	})
}

// sever closes the connections that are open. What waits at a gate is lost.
func (g *gates) sever() {
	g.mu.Lock()
	conns := slices.Collect(maps.Keys(g.conns))
	g.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

type gatedConn struct {
	net.Conn
	gates   *gates
	address string
	once    sync.Once
	closed  chan struct{}
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.gates.pass("from "+c.address, n, c.closed)
	}
	return n, err
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.gates.pass("to "+c.address, len(b), c.closed)
	return c.Conn.Write(b)
}

func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.gates.mu.Lock()
	delete(c.gates.conns, c)
	c.gates.mu.Unlock()
	return c.Conn.Close()
}
