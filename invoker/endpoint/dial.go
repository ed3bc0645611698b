package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"platform/internal/egress"
)

// Names of the protocols in TLS (ALPN).
const (
	protoHTTP2 = "h2"
	protoHTTP1 = "http/1.1"
)

// errNoHTTP2 means that a peer does not offer HTTP/2 over TLS.
var errNoHTTP2 = errors.New("the endpoint does not speak HTTP/2 over TLS")

// dialer opens connections to addresses that the guard permits, through a proxy if one is
// configured.
type dialer struct {
	cfg     *Config
	guarded *egress.Dialer
	direct  *egress.Dialer                   // for the proxy, which is configured by the operator
	proxy   func(*url.URL) (*url.URL, error) // nil: no proxy
}

func (d *dialer) init(cfg *Config) {
	d.cfg = cfg
	d.direct = (&egress.Policy{}).Dialer(cfg.ConnectTimeout)
	d.guarded = cfg.Egress.Dialer(cfg.ConnectTimeout)
	if cfg.Proxy != nil {
		d.proxy = proxyFunc(cfg.Proxy, cfg.NoProxy)
	}
}

func (d *dialer) dial(ctx context.Context, a *Address) (net.Conn, error) {
	proxy, err := d.proxyOf(ctx, &url.URL{Scheme: a.Scheme, Host: a.host})
	switch {
	case err != nil:
		return nil, err
	case proxy == nil:
		return d.guarded.DialContext(ctx, "tcp", a.host)
	}
	return d.tunnel(ctx, proxy, a.host)
}

// dialTLS connects to an endpoint over TLS and negotiates one of the protocols.
func (d *dialer) dialTLS(ctx context.Context, a *Address, protocols ...string) (*tls.Conn, error) {
	raw, err := d.dial(ctx, a)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(a.host)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %w", errAddress, err)
	}
	return d.handshake(ctx, raw, host, protocols...)
}

func (d *dialer) handshake(ctx context.Context, raw net.Conn, host string, protocols ...string) (*tls.Conn, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.cfg.TLS != nil {
		cfg = d.cfg.TLS.Clone()
	}
	if cfg.NextProtos = protocols; cfg.ServerName == "" {
		cfg.ServerName = host
	}
	secure := tls.Client(raw, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return secure, nil
}

// dialHTTP2 connects to an endpoint that speaks HTTP/2.
func (d *dialer) dialHTTP2(ctx context.Context, a *Address) (net.Conn, error) {
	if a.Scheme == "http" {
		return d.dial(ctx, a)
	}
	secure, err := d.dialTLS(ctx, a, protoHTTP2)
	if err != nil {
		return nil, err
	}
	if secure.ConnectionState().NegotiatedProtocol != protoHTTP2 {
		secure.Close()
		return nil, errNoHTTP2
	}
	return secure, nil
}

// dialHTTP1 is called by the HTTP/1.1 transport, which handles proxies and TLS itself.
func (d *dialer) dialHTTP1(ctx context.Context, network, address string) (net.Conn, error) {
	if d.proxy != nil && address == hostPort(d.cfg.Proxy) {
		return d.direct.DialContext(ctx, network, address)
	}
	return d.guarded.DialContext(ctx, network, address)
}

func (d *dialer) proxyHTTP1(r *http.Request) (*url.URL, error) { return d.proxyOf(r.Context(), r.URL) }

// proxied reports whether an address is reached through a proxy.
func (d *dialer) proxied(a *Address) bool {
	if d.proxy == nil {
		return false
	}
	proxy, err := d.proxy(&url.URL{Scheme: a.Scheme, Host: a.host})
	return err == nil && proxy != nil
}

// proxyOf returns the proxy for an address, nil for none. A proxy connects to what this
// process would not, so the name and its addresses are checked here.
func (d *dialer) proxyOf(ctx context.Context, target *url.URL) (*url.URL, error) {
	if d.proxy == nil {
		return nil, nil
	}
	proxy, err := d.proxy(target)
	if err != nil || proxy == nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(hostPort(target))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAddress, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: port %q", errAddress, port)
	}
	return proxy, d.cfg.Egress.CheckName(ctx, target.Hostname(), uint16(n))
}

type connKey struct{}

// newConn opens an HTTP/2 connection and waits for the peer's greeting.
func (c *Client) newConn(ctx context.Context, a *Address) (*http.ClientConn, error) {
	raw, err := c.dialer.dialHTTP2(ctx, a)
	if err != nil {
		return nil, err
	}
	var maySend func() error
	if c.cfg.MaySend != nil {
		maySend = c.cfg.MaySend()
	}
	below := newConn(raw, maySend)
	c.work.Go(below.send)
	// Always http, since TLS is below the transport.
	conn, err := c.http2.NewClientConn(context.WithValue(ctx, connKey{}, below), "http", a.host)
	if err != nil {
		below.Close()
		return nil, err
	}
	if err := below.greeted(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	below.watchPeer(c.cfg.PingInterval, c.cfg.PingTimeout)
	c.watchIdle()
	return conn, nil
}

// takeConn returns to the transport the connection that was opened for it.
func takeConn(ctx context.Context, _, _ string) (net.Conn, error) {
	return ctx.Value(connKey{}).(*conn), nil
}
