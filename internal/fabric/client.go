package fabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"platform/internal/budget"
	"platform/internal/feature"
	"platform/internal/nodetls"
	"platform/internal/raftgroup"
	"platform/proto/node"
)

// ClientConfig configures a Client.
type ClientConfig struct {
	Self Identity
	// Level returns the cluster's feature level as known by this node; nil means the
	// first. Requests use only features of that level.
	Level func() feature.Level
	// Bodies is charged for large responses while they are received; nil disables
	// accounting.
	Bodies *budget.Budget
	// Security authenticates other nodes; nil: no authentication.
	Security *nodetls.Security
	// Dial replaces gRPC in tests that simulate the network. It may be nil.
	Dial func(address string) (raftgroup.Conn, error)
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Client maintains one connection to each other node, opened on first use.
type Client struct {
	self     Identity
	level    func() feature.Level
	bodies   *budget.Budget
	dial     func(address string) (raftgroup.Conn, error)
	timeouts timeouts
	log      *slog.Logger
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	requests requestCounts

	mu     sync.RWMutex // covers the fields below
	closed bool
	conns  map[string]*nodeConn
}

// NewClient returns a client without connections.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Level == nil {
		cfg.Level = func() feature.Level { return feature.Level1 }
	}
	if cfg.Dial == nil {
		cfg.Dial = dialer(append(raftgroup.DialOptions(), raftgroup.SecureDialOptions(cfg.Security)...))
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{
		bodies: cfg.Bodies, self: cfg.Self, level: cfg.Level, timeouts: defaultTimeouts, dial: cfg.Dial,
		log: cfg.Log.With("component", "fabric"), ctx: ctx, cancel: cancel, conns: make(map[string]*nodeConn),
	}
}

// Close closes all connections. The outcome of pending requests is unknown.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	peers := slices.Collect(maps.Values(c.conns))
	c.mu.Unlock()
	c.cancel()
	var errs error
	for _, p := range peers {
		errs = errors.Join(errs, p.close())
	}
	c.wg.Wait()
	return errs
}

// Seen reports that the node at address is up, so that it is dialed immediately instead of
// after the backoff.
func (c *Client) Seen(address string) {
	c.mu.RLock()
	p := c.conns[address]
	c.mu.RUnlock()
	if p != nil {
		p.redial()
	}
}

// Unresponsive reports whether the node at address failed to respond in time and has not
// been heard from since.
func (c *Client) Unresponsive(address string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.conns[address]
	return p != nil && p.unresponsive.Load()
}

// nodeConn is the connection to one node.
type nodeConn struct {
	c       *Client
	address string

	// unresponsive is set when the node failed to respond in time and cleared when it is
	// heard from again. Meanwhile it is dialed in the background and requests do not wait
	// for the connection.
	unresponsive atomic.Bool

	mu   sync.Mutex // covers the fields below
	conn raftgroup.Conn
	link *link
}

// grpcConn returns the connection for the next stream.
func (p *nodeConn) grpcConn() raftgroup.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}

// redial replaces the connection if the last dial failed, so that the next request dials
// immediately. A connection in that state has no pending requests.
func (p *nodeConn) redial() {
	p.unresponsive.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.c.ctx.Err() != nil || p.conn.GetState() != connectivity.TransientFailure {
		return
	}
	fresh, err := p.c.dial(p.address)
	if err != nil {
		return
	}
	_ = p.conn.Close()
	p.conn = fresh
}

func (p *nodeConn) close() error { return p.grpcConn().Close() }

func (c *Client) nodeConn(address string) (*nodeConn, error) {
	c.mu.RLock()
	p, closed := c.conns[address], c.closed
	c.mu.RUnlock()
	switch {
	case closed:
		return nil, errClosed
	case p != nil:
		return p, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.conns[address]; p != nil {
		return p, nil
	}
	if c.closed {
		return nil, errClosed
	}
	conn, err := c.dial(address)
	if err != nil {
		return nil, err
	}
	p = &nodeConn{c: c, address: address, conn: conn}
	c.conns[address] = p
	return p, nil
}

// dialer returns a function that creates connections, which are dialed on first use.
func dialer(options []grpc.DialOption) func(string) (raftgroup.Conn, error) {
	return func(address string) (raftgroup.Conn, error) {
		// The passthrough resolver leaves name resolution to the dialer, which resolves
		// names at each dial.
		conn, err := grpc.NewClient("passthrough:///"+address, options...)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		return conn, nil
	}
}

// open returns the link to the node, and opens one if there is none or it is broken.
func (p *nodeConn) open() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != nil && !p.link.broken() {
		return p.link, nil
	}
	if p.c.self.ClusterID() == "" {
		return nil, errNoCluster
	}
	p.c.mu.RLock() // no link is started once Close waits for them
	defer p.c.mu.RUnlock()
	if p.c.closed {
		return nil, errClosed
	}
	l := newLink(p)
	p.link = l
	p.c.wg.Go(func() { l.run(p.c.ctx) })
	return l, nil
}

var errNoCluster = errors.New("this node does not belong to a cluster yet")

func (i *Identity) hello() *node.Hello {
	return &node.Hello{ClusterId: i.ClusterID(), NodeId: i.Node, Incarnation: i.Incarnation, Address: i.Address}
}

// verifyHello checks that the sender of a hello belongs to this cluster, and that it is the
// node in its certificate. The context is that of the stream.
func (i *Identity) verifyHello(ctx context.Context, h *node.Hello) error {
	own, name := i.ClusterID(), nodetls.Peer(ctx)
	switch {
	case h == nil:
		return fmt.Errorf("%w: it did not send a hello", ErrForeign)
	case own == "":
		return errNoCluster
	case h.ClusterId != own:
		return fmt.Errorf("%w: %s at %s belongs to cluster %q, this node to %q", ErrForeign, h.NodeId, h.Address, h.ClusterId, own)
	case name != "" && name != h.NodeId:
		return fmt.Errorf("%w: %s at %s has the certificate of node %s", ErrForeign, h.NodeId, h.Address, name)
	}
	return nil
}
