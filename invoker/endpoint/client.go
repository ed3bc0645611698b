package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config are the settings of a Client.
type Config struct {
	ConnectTimeout time.Duration
	IdleTimeout    time.Duration // after which an unused connection is closed
	DrainTimeout   time.Duration // how long the rest of a finished response is read
	PingInterval   time.Duration // silence after which a peer is asked whether it lives
	PingTimeout    time.Duration // how long its answer may take
	MaxStreams     int           // per HTTP/2 connection
	StreamWindow   int           // bytes a peer may send per stream before they are consumed
	ConnWindow     int           // the same for an HTTP/2 connection
	MaxFrame       int           // bytes of an HTTP/2 frame that a peer may send
	MaxHeader      int           // bytes of a response head
	Guard          Guard
	TLS            *tls.Config // nil: the system's roots
}

// DefaultConfig works with every known SDK.
func DefaultConfig() Config {
	return Config{
		ConnectTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, DrainTimeout: 5 * time.Second,
		PingInterval: 40 * time.Second, PingTimeout: 20 * time.Second,
		MaxStreams: 128, StreamWindow: 2 << 20, ConnWindow: 5 << 20, MaxFrame: 16 << 10, MaxHeader: 64 << 10,
	}
}

// ErrClosed says that the client has been closed.
var ErrClosed = errors.New("the client is closed")

// Client opens streams to any number of endpoints. Connections are shared per
// authority, and opened as streams need them.
type Client struct {
	cfg     Config
	dialer  net.Dialer
	http1   *http.Transport
	http2   *http.Transport
	buffers sync.Pool // of *[]byte, for reading

	mu       sync.Mutex // guards the fields below
	closed   bool
	pools    map[string]*pool
	streams  map[*Stream]struct{}
	draining map[*Stream]struct{}
	sweep    *time.Timer // armed while anything is draining
	work     sync.WaitGroup
}

// NewClient returns a client without connections.
func NewClient(cfg Config) *Client {
	c := &Client{cfg: cfg, pools: map[string]*pool{}, streams: map[*Stream]struct{}{}, draining: map[*Stream]struct{}{}}
	c.dialer = net.Dialer{Timeout: cfg.ConnectTimeout, ControlContext: c.cfg.Guard.control}
	c.buffers.New = func() any {
		b := make([]byte, 4<<10)
		return &b
	}
	c.http1 = c.transport(false)
	c.http2 = c.transport(true)
	return c
}

// maxReceive is the largest window that the standard library takes.
const maxReceive = 4<<20 - 1

func (c *Client) transport(http2 bool) *http.Transport {
	var speaks http.Protocols
	speaks.SetHTTP1(!http2)
	speaks.SetHTTP2(http2)
	speaks.SetUnencryptedHTTP2(http2)
	t := &http.Transport{
		Protocols: &speaks, TLSHandshakeTimeout: c.cfg.ConnectTimeout, IdleConnTimeout: c.cfg.IdleTimeout,
		MaxIdleConnsPerHost: c.cfg.MaxStreams, DisableCompression: true, MaxResponseHeaderBytes: int64(c.cfg.MaxHeader),
		DialContext: c.dialer.DialContext,
		HTTP2: &http.HTTP2Config{
			MaxReadFrameSize:              c.cfg.MaxFrame,
			MaxReceiveBufferPerConnection: min(c.cfg.ConnWindow, maxReceive),
			MaxReceiveBufferPerStream:     min(c.cfg.StreamWindow, maxReceive),
			SendPingTimeout:               c.cfg.PingInterval,
			PingTimeout:                   c.cfg.PingTimeout,
		},
	}
	if http2 {
		t.DialContext = c.dial
	}
	if c.cfg.TLS != nil {
		t.TLSClientConfig = c.cfg.TLS.Clone()
	}
	return t
}

func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	tcp, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	out := newConn(tcp)
	c.work.Go(out.send)
	return out, nil
}

func (c *Client) roundTrip(a *Address, r *http.Request) (*http.Response, error) {
	if a.HTTP11 {
		return c.http1.RoundTrip(r)
	}
	p, err := c.pool(a)
	if err != nil {
		return nil, err
	}
	return p.roundTrip(r)
}

func (c *Client) pool(a *Address) (*pool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	p := c.pools[a.key]
	if p == nil {
		p = newPool(c, a)
		c.pools[a.key] = p
	}
	return p, nil
}

// begin registers a stream; false if the client is closed.
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

// drain gives a finished stream some time to end by itself. One timer serves all.
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
		c.sweep = time.AfterFunc(c.cfg.DrainTimeout, c.cutDrained)
		return
	}
	c.sweep.Reset(c.cfg.DrainTimeout)
}

func (c *Client) cutDrained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.draining {
		s.mu.Lock()
		due := time.Since(s.since) >= c.cfg.DrainTimeout
		s.mu.Unlock()
		if due {
			s.cut()
			delete(c.draining, s)
		}
	}
	if len(c.draining) > 0 {
		c.sweep.Reset(c.cfg.DrainTimeout)
	}
}

// Close ends all streams and connections, and waits until no receiver is called any
// more. Streams opened later fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	if c.sweep != nil {
		c.sweep.Stop()
	}
	for s := range c.streams {
		s.cut()
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

// Negotiate asks an endpoint over TLS whether it speaks HTTP/2, and tells with
// which HTTP its address is to be used.
func (c *Client) Negotiate(ctx context.Context, a *Address) (*Address, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout)
	defer cancel()
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.cfg.TLS != nil {
		cfg = c.cfg.TLS.Clone()
	}
	cfg.NextProtos = []string{"h2", "http/1.1"}
	d := tls.Dialer{NetDialer: &c.dialer, Config: cfg}
	conn, err := d.DialContext(ctx, "tcp", a.host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
		return a, nil
	}
	http1 := *a
	http1.HTTP11 = true
	return &http1, nil
}
