package endpoint

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// ProxyFunc returns the Proxy function for a transport of the standard library, nil if
// there is no proxy.
func (c *Config) ProxyFunc() func(*http.Request) (*url.URL, error) {
	if c.Proxy == nil {
		return nil
	}
	find := proxyFunc(c.Proxy, c.NoProxy)
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }
}

// proxyFunc returns a function that returns the proxy for a URL, nil for direct
// connections.
func proxyFunc(proxy *url.URL, except []string) func(*url.URL) (*url.URL, error) {
	text := proxy.String()
	cfg := httpproxy.Config{HTTPProxy: text, HTTPSProxy: text, NoProxy: strings.Join(except, ",")}
	return cfg.ProxyFunc()
}

// hostPort is the host and port that a URL refers to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// tunnel connects to a target through a proxy. HTTP/2 has to be tunneled even without TLS:
// proxies forward HTTP/1 only.
func (d *dialer) tunnel(ctx context.Context, proxy *url.URL, target string) (net.Conn, error) {
	where := hostPort(proxy)
	conn, err := d.direct.DialContext(ctx, "tcp", where)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", where, err)
	}
	if proxy.Scheme == "https" {
		if conn, err = d.handshake(ctx, conn, proxy.Hostname(), protoHTTP1); err != nil {
			return nil, fmt.Errorf("proxy %s: %w", where, err)
		}
	}
	// The exchange with the proxy ends with ctx.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	through, err := d.connect(conn, proxy, target)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("proxy %s: %w", where, err)
	}
	return through, nil
}

// connect requests the tunnel from the proxy.
func (d *dialer) connect(conn net.Conn, proxy *url.URL, target string) (net.Conn, error) {
	head := http.Header{"User-Agent": nil}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		head.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: head}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	// What follows the response belongs to the tunnel; the peer may send first.
	limit := &io.LimitedReader{R: conn, N: int64(d.cfg.maxHeader)}
	in := bufio.NewReader(limit)
	resp, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("it does not connect to %s: %s", target, resp.Status)
	}
	limit.N = 1<<63 - 1
	if in.Buffered() == 0 {
		return conn, nil
	}
	return &tunnelConn{Conn: conn, in: in}, nil
}

// tunnelConn is a connection of which some bytes have been read ahead.
type tunnelConn struct {
	net.Conn
	in *bufio.Reader
}

// Read returns the bytes read ahead, then those of the connection.
func (t *tunnelConn) Read(p []byte) (int, error) {
	if t.in.Buffered() > 0 {
		return t.in.Read(p[:min(len(p), t.in.Buffered())])
	}
	return t.Conn.Read(p)
}
