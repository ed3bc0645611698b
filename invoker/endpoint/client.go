package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"platform/internal/egress"
)

// Config configures a Client.
type Config struct {
	ConnectTimeout time.Duration
	IdleTimeout    time.Duration  // until an unused connection is closed
	drainTimeout   time.Duration  // for reading the rest of a finished response
	PingInterval   time.Duration  // silence before a ping
	PingTimeout    time.Duration  // how long the peer may take to respond to a ping
	MaxStreams     int            // per HTTP/2 connection
	StreamWindow   int            // bytes a peer may send per stream before they are consumed
	ConnWindow     int            // the same for an HTTP/2 connection; at least that of all streams
	MaxFrame       int            // bytes of an HTTP/2 frame that a peer may send
	maxHeader      int            // bytes of the response headers
	Egress         *egress.Policy // nil: the zero Policy
	TLS            *tls.Config    // nil: the system's roots
	Proxy          *url.URL       // http or https; nil: none. Not used for loopback addresses
	NoProxy        []string       // hosts, domains, addresses, prefixes and * that are connected to directly
	Functions      Functions      // nil: functions cannot be invoked
	// MaySend is called for each new HTTP/2 connection. The function that it returns is
	// called before every write to the connection; it may block, and an error closes the
	// connection. nil: no check.
	MaySend func() func() error
}

// DefaultConfig works with all known SDKs.
func DefaultConfig() Config {
	return Config{
		ConnectTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, drainTimeout: 5 * time.Second,
		PingInterval: 40 * time.Second, PingTimeout: 20 * time.Second,
		MaxStreams: 128, StreamWindow: 256 << 10, ConnWindow: 32 << 20, MaxFrame: 16 << 10, maxHeader: 64 << 10,
	}
}

// ErrClosed means that the client has been closed.
var ErrClosed = errors.New("the client is closed")

// Client opens streams to any number of endpoints. Connections are shared per authority and
// opened on demand.
type Client struct {
	cfg     Config
	dialer  dialer
	http1   *http.Transport
	http2   *http.Transport
	buffers sync.Pool // of *[]byte, for reading

	mu        sync.Mutex // covers the fields below
	closed    bool
	pools     map[string]*pool
	streams   map[*Stream]struct{}
	draining  map[*Stream]struct{}
	sweep     *time.Timer // set while streams are draining
	idleSweep *time.Timer // of idle connections; nil until there is one
	work      sync.WaitGroup
}

// NewClient returns a client without connections.
func NewClient(cfg Config) *Client {
	c := &Client{cfg: cfg, pools: map[string]*pool{}, streams: map[*Stream]struct{}{}, draining: map[*Stream]struct{}{}}
	if c.cfg.Egress == nil {
		c.cfg.Egress = &egress.Policy{}
	}
	c.dialer.init(&c.cfg)
	c.buffers.New = func() any {
		b := make([]byte, 4<<10)
		return &b
	}
	c.http1 = c.transport(false)
	c.http1.DialContext, c.http1.Proxy = c.dialer.dialHTTP1, c.dialer.proxyHTTP1
	c.http2 = c.transport(true)
	c.http2.DialContext, c.http2.IdleConnTimeout = takeConn, 0 // see sweepIdle
	return c
}

// maxReceive is the largest window that the standard library accepts.
const maxReceive = 4<<20 - 1

// connWindow is the receive window of a connection. It has room for the windows of all streams:
// streams whose receivers block would otherwise keep the others from receiving, also the one
// whose end they wait for. Zero means the default of the standard library, which is 1 GiB.
func (c *Config) connWindow() int {
	if w := max(c.ConnWindow, c.MaxStreams*c.StreamWindow); w <= maxReceive {
		return w
	}
	return 0
}

// noHeaderTable keeps headers of requests out of the compression tables of both sides. The ID of the
// invocation is in each request and never repeated, so that adding and evicting it there costs more
// than the few bytes that the table saves. Zero would mean the default of the standard library.
const noHeaderTable = 1

func (c *Client) transport(http2 bool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2) // TLS is below the transport, see conn
	t := &http.Transport{
		Protocols: &protocols, TLSHandshakeTimeout: c.cfg.ConnectTimeout, IdleConnTimeout: c.cfg.IdleTimeout,
		MaxIdleConnsPerHost: c.cfg.MaxStreams, DisableCompression: true, MaxResponseHeaderBytes: int64(c.cfg.maxHeader),
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize:              c.cfg.MaxFrame,
			MaxReceiveBufferPerConnection: c.cfg.connWindow(),
			MaxReceiveBufferPerStream:     min(c.cfg.StreamWindow, maxReceive),
			MaxEncoderHeaderTableSize:     noHeaderTable,
		},
	}
	if c.cfg.TLS != nil {
		t.TLSClientConfig = c.cfg.TLS.Clone()
	}
	return t
}

// roundTrip sends a request with the body, which may be nil, and returns when the response
// head has arrived.
func (c *Client) roundTrip(a *Address, r *http.Request, b *body, m Memory) (*http.Response, error) {
	if a.Function == nil && !a.HTTP11 {
		p, err := c.pool(a)
		if err != nil {
			return nil, err
		}
		defer c.leave(p)
		return p.roundTrip(r, b)
	}
	if b != nil {
		b.readOnce(a.Function != nil)
		var err error
		if r.Body, err = b.try(); err != nil {
			return nil, err
		}
		r.GetBody = b.try
	}
	if a.Function != nil {
		return c.invoke(a.Function, r, m)
	}
	return c.http1.RoundTrip(r)
}

// maxPools is the number of pools from which unused ones are dropped. Most of them are then
// of endpoints that are no longer used.
const maxPools = 4096

// pool returns the pool of an address, which is not dropped before leave.
func (c *Client) pool(a *Address) (*pool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	p := c.pools[a.key]
	if p == nil {
		if len(c.pools) >= maxPools {
			maps.DeleteFunc(c.pools, func(_ string, p *pool) bool { return p.users == 0 && p.closeEmpty() })
		}
		p = newPool(c, a)
		c.pools[a.key] = p
	}
	p.users++
	return p, nil
}

func (c *Client) leave(p *pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.users--
}

// begin registers a stream. It returns false if the client is closed.
func (c *Client) begin(s *Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.streams[s] = struct{}{}
	c.work.Add(1)
	return true
}

func (c *Client) end(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
	delete(c.draining, s)
	c.work.Done()
}

// drain resets a finished stream if it does not end within drainTimeout. One timer serves
// all streams.
func (c *Client) drain(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.streams[s]; !open {
		return
	}
	if c.draining[s] = struct{}{}; len(c.draining) > 1 {
		return
	}
	if c.sweep == nil {
		c.sweep = time.AfterFunc(c.cfg.drainTimeout, c.resetDrained)
		return
	}
	c.sweep.Reset(c.cfg.drainTimeout)
}

func (c *Client) resetDrained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.draining {
		s.mu.Lock()
		due := time.Since(s.since) >= c.cfg.drainTimeout
		s.mu.Unlock()
		if due {
			s.abort()
			delete(c.draining, s)
		}
	}
	if len(c.draining) > 0 {
		c.sweep.Reset(c.cfg.drainTimeout)
	}
}

// Close ends all streams and connections, and waits until no receiver is being called.
// Streams that are opened later fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	if c.sweep != nil {
		c.sweep.Stop()
	}
	if c.idleSweep != nil {
		c.idleSweep.Stop()
	}
	for s := range c.streams {
		s.abort()
	}
	pools := c.pools
	c.pools = nil
	c.mu.Unlock()
	for _, p := range pools {
		p.close()
	}
	c.work.Wait()
	c.http1.CloseIdleConnections()
	c.http2.CloseIdleConnections()
}

// Negotiate connects to an endpoint over TLS and returns the address with the HTTP version
// to use.
func (c *Client) Negotiate(ctx context.Context, a *Address) (*Address, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	conn, err := c.dialer.dialTLS(ctx, a, protoHTTP2, protoHTTP1)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if conn.ConnectionState().NegotiatedProtocol == protoHTTP2 {
		return a, nil
	}
	http1 := *a
	http1.HTTP11 = true
	return &http1, nil
}
