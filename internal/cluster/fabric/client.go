package fabric

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/budget"
	"platform/internal/feature"
	"platform/internal/nodelink"
	"platform/internal/nodetls"
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
	Dial func(address string) (nodelink.Conn, error)
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Client maintains one connection to each other node, opened on first use.
type Client struct {
	self     Identity
	level    func() feature.Level
	bodies   *budget.Budget
	dial     func(address string) (nodelink.Conn, error)
	timeouts timeouts
	log      *slog.Logger
	ctx      context.Context //nolint:containedctx // of connections, which requests share; ends with Close
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
		cfg.Dial = func(address string) (nodelink.Conn, error) { return nodelink.Dial(address, cfg.Security) }
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
		errs = errors.Join(errs, p.conn.Close())
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

	conn *nodelink.Redialer
	// brokenSince is when the last link broke, in Unix nanoseconds; 0 while there is one.
	brokenSince atomic.Int64

	mu   sync.Mutex // covers link
	link *link
}

// unusedAfter is the time without a request to a node that is not connected after which its connection
// is dropped: a node that is restarted elsewhere has another address.
const unusedAfter = 10 * time.Minute

// redial dials the node immediately if the last dial failed.
func (p *nodeConn) redial() {
	p.unresponsive.Store(false)
	p.conn.Redial()
}

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
	conn, err := nodelink.NewRedialer(address, c.dial)
	if err != nil {
		return nil, err
	}
	c.dropUnusedLocked(time.Now())
	p = &nodeConn{c: c, address: address, conn: conn}
	c.conns[address] = p
	return p, nil
}

// connect opens a connection to the node at address in the background, if there is none.
func (c *Client) connect(address string) {
	if p, err := c.nodeConn(address); err == nil {
		_, _ = p.open() // the error is that the client is closed
	}
}

// dropUnusedLocked closes the connections that have been broken for long, and that no request has opened
// again.
func (c *Client) dropUnusedLocked(now time.Time) {
	for address, p := range c.conns {
		if since := p.brokenSince.Load(); since != 0 && now.Sub(time.Unix(0, since)) > unusedAfter {
			_ = p.conn.Close() // a request that opens it now is not sent, and repeated
			delete(c.conns, address)
		}
	}
}

// open returns the link to the node, and opens one if there is none or it is broken.
func (p *nodeConn) open() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != nil && !p.link.calls.Broken() {
		return p.link, nil
	}
	if p.c.self.ClusterID() == "" {
		return nil, nodelink.ErrNoCluster
	}
	p.c.mu.RLock() // no link is started once Close waits for them
	defer p.c.mu.RUnlock()
	if p.c.closed {
		return nil, errClosed
	}
	l := newLink(p)
	p.link = l
	p.brokenSince.Store(0)
	p.c.wg.Go(func() { l.run(p.c.ctx) })
	return l, nil
}
