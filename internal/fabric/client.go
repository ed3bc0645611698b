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
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/budget"
	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/proto/node"
)

// ClientConfig says who asks and how it connects.
type ClientConfig struct {
	Self Identity
	// Level is the cluster's feature level as far as this node knows it; nil: the first.
	// Requests contain nothing that it does not include.
	Level func() feature.Level
	// Bodies is what large responses are accounted to as they come; nil: nothing.
	Bodies *budget.Budget
	// DialOptions replace the default of no transport security.
	DialOptions []grpc.DialOption
	// Dial replaces gRPC, for tests that simulate the network; nil: it is not replaced.
	Dial func(address string) (raftgroup.Conn, error)
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Client holds the connections to other nodes, one for each, made when they are used.
type Client struct {
	self     Identity
	level    func() feature.Level
	bodies   *budget.Budget
	dial     func(address string) (raftgroup.Conn, error)
	patience patience
	log      *slog.Logger
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	requests requestCounts

	mu     sync.RWMutex // covers the fields below
	closed bool
	peers  map[string]*peer
}

// NewClient returns the connections of a node. It dials when it is asked to reach one.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Level == nil {
		cfg.Level = func() feature.Level { return feature.Level1 }
	}
	if cfg.DialOptions == nil {
		cfg.DialOptions = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	if cfg.Dial == nil {
		cfg.Dial = dialer(append(raftgroup.DialOptions(), cfg.DialOptions...))
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Client{
		bodies: cfg.Bodies,
		self:   cfg.Self, level: cfg.Level, patience: usualPatience, dial: cfg.Dial,
		log: cfg.Log.With("component", "fabric"), ctx: ctx, cancel: cancel, peers: make(map[string]*peer),
	}
}

// Close ends all connections. What is under way on them has an unknown outcome.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	peers := slices.Collect(maps.Values(c.peers))
	c.mu.Unlock()
	c.cancel()
	var errs error
	for _, p := range peers {
		errs = errors.Join(errs, p.close())
	}
	c.wg.Wait()
	return errs
}

// Seen says that the node at address is up, so that it is dialled at once and not
// when the back-off allows.
func (c *Client) Seen(address string) {
	c.mu.RLock()
	p := c.peers[address]
	c.mu.RUnlock()
	if p != nil {
		p.redial()
	}
}

// Silent reports whether the node at address gave no sign of life when it should have,
// and has given none since.
func (c *Client) Silent(address string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.peers[address]
	return p != nil && p.silent.Load()
}

// peer is the connection to one node.
type peer struct {
	c       *Client
	address string

	// silent says that the node gave no sign of life when it should have, and has given
	// none since. It is dialed in the background and nobody waits for that.
	silent atomic.Bool

	mu   sync.Mutex // covers the fields below
	conn raftgroup.Conn
	link *link
}

// connection is the one to use for the next request.
func (p *peer) connection() raftgroup.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}

// redial takes a fresh connection if the last dial failed, so that the next request
// dials at once. Nothing is under way on a connection in that state.
func (p *peer) redial() {
	p.silent.Store(false)
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

func (p *peer) close() error { return p.connection().Close() }

func (c *Client) peer(address string) (*peer, error) {
	c.mu.RLock()
	p, closed := c.peers[address], c.closed
	c.mu.RUnlock()
	switch {
	case closed:
		return nil, errClosed
	case p != nil:
		return p, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.peers[address]; p != nil {
		return p, nil
	}
	if c.closed {
		return nil, errClosed
	}
	conn, err := c.dial(address)
	if err != nil {
		return nil, err
	}
	p = &peer{c: c, address: address, conn: conn}
	c.peers[address] = p
	return p, nil
}

// dialer prepares connections, which are dialled when they are used.
func dialer(options []grpc.DialOption) func(string) (raftgroup.Conn, error) {
	return func(address string) (raftgroup.Conn, error) {
		// The resolver leaves names to the dialer, so they are resolved at each dial.
		conn, err := grpc.NewClient("passthrough:///"+address, options...)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		return conn, nil
	}
}

// open returns the link to a node, a new one if there is none that works.
func (p *peer) open() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != nil && !p.link.broken() {
		return p.link, nil
	}
	if p.c.self.ClusterID() == "" {
		return nil, errNoCluster
	}
	p.c.mu.RLock() // Close waits for what is started before it
	defer p.c.mu.RUnlock()
	if p.c.closed {
		return nil, errClosed
	}
	l := newLink(p)
	p.link = l
	p.c.wg.Go(func() { l.run(p.c.ctx) })
	return l, nil
}

var errNoCluster = errors.New("this node belongs to no cluster yet")

func (i *Identity) hello() *node.Hello {
	return &node.Hello{ClusterId: i.ClusterID(), NodeId: i.Node, Incarnation: i.Incarnation, Address: i.Address}
}

// greet checks how another node introduced itself.
func (i *Identity) greet(h *node.Hello) error {
	own := i.ClusterID()
	switch {
	case h == nil:
		return fmt.Errorf("%w: it did not introduce itself", ErrForeign)
	case own == "":
		return errNoCluster
	case h.ClusterId != own:
		return fmt.Errorf("%w: %s at %s is of cluster %q, this one of %q", ErrForeign, h.NodeId, h.Address, h.ClusterId, own)
	}
	return nil
}
