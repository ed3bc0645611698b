package httpserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/budget"
)

// shortBuffers is a listener whose connections have short buffers for data that cannot be
// sent yet.
type shortBuffers struct{ net.Listener }

// Accept returns the next connection.
func (l shortBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		limitUnsent(tcp)
	}
	return c, err
}

// boundedListener is a listener that bounds the open connections, in total and of each remote address, see networkOf.
// Further ones get a 503 and are closed, as do those of an address that has cancelled too many requests
// (see boundCancels). All connections end when their client does not read.
type boundedListener struct {
	net.Listener
	total        int    // 0: no bound
	limit        int    // of an address; 0: no bound
	section      string // of the configuration; may be empty
	tls          bool
	proxies      proxies // their connections are not bounded
	writeTimeout time.Duration
	problem      Problem
	refused      *refusals    // new connections, and forwarded requests
	closed       *refusals    // connections that cancelled too many requests
	refusing     atomic.Int64 // refused connections that wait for their request

	mu      sync.Mutex // covers the fields below, and those of the sources
	sources map[netip.Addr]*source
	open    int       // connections
	idle    int       // sources without connections
	swept   time.Time // when those were last searched for sources to forget
}

// Accept returns the next connection that is within the limit.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		remote := remoteAddr(c)
		addr := networkOf(remote)
		if l.proxies.contain(remote) {
			forwarding := l.newConn(c, addr)
			forwarding.proxy, forwarding.closed = true, func() {}
			return forwarding, nil
		}
		message := l.enter(addr, time.Now())
		if message == "" {
			return l.newConn(c, addr), nil
		}
		l.refused.add(addr, message)
		l.refuse(c, message)
	}
}

func (l *boundedListener) newConn(inner net.Conn, addr netip.Addr) *conn {
	c := &conn{
		Conn: inner, addr: addr, listener: l, timeout: l.writeTimeout, problem: l.problem, awaitsTLS: l.tls,
		cancels: newCancelBound(connectionCancels),
	}
	c.closed = func() { l.leave(addr, c.completed.Load(), time.Now()) }
	return c
}

// enter counts a connection, or returns why there must be no further one.
func (l *boundedListener) enter(addr netip.Addr, now time.Time) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total > 0 && l.open >= l.total {
		return fmt.Sprintf("this port has %d connections open, which is the most that it may have", l.total)
	}
	from := l.sources[addr]
	switch {
	case from == nil:
		from = &source{cancels: newCancelBound(addressCancels)}
		l.sources[addr] = from
	case l.limit > 0 && from.open >= l.limit:
		message := fmt.Sprintf("this address has %d connections open, which is the most that one may have", l.limit)
		if l.section != "" {
			message += fmt.Sprintf(" (%[1]s.connections-per-address-limit; for proxies see %[1]s.trusted-proxies)", l.section)
		}
		return message
	case l.limit > 0 && !from.cancels.Has(now):
		return tooManyCancels
	case from.open == 0:
		l.idle--
	}
	from.open++
	l.open++
	return ""
}

func (l *boundedListener) leave(addr netip.Addr, completed int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.sources[addr]
	from.addRest(completed, now)
	l.open--
	if from.open--; from.open == 0 {
		l.forget(addr, now)
	}
}

const (
	// maxRefusing is how many refused connections wait for their request at a time.
	maxRefusing = 64
	// refusalTimeout is how long each of them waits, and how long it stays open after the response.
	refusalTimeout = time.Second
	// maxRefusedInput is how many bytes of their request are read, and dropped.
	maxRefusedInput = 64 << 10
)

// refuse sends a response in HTTP/1.1 and closes the connection. The response waits for the first bytes of
// the request, because clients treat one that they have not asked for as a broken connection. If maxRefusing
// connections wait, further ones get it immediately.
func (l *boundedListener) refuse(c net.Conn, message string) {
	if l.refusing.Add(1) > maxRefusing {
		l.refusing.Add(-1)
		_ = c.SetDeadline(time.Now().Add(time.Millisecond))
		l.writeRefusal(c, message)
		_ = c.Close()
		return
	}
	go func() {
		defer l.refusing.Add(-1)
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(refusalTimeout))
		buf := make([]byte, 1<<10)
		_, _ = c.Read(buf)
		_ = c.SetDeadline(time.Now().Add(refusalTimeout))
		l.writeRefusal(c, message)
		skipInput(c, buf)
	}()
}

// skipInput reads the rest of a request after a response, until the client closes the connection. If input were unread when
// the server closes it, this would be a reset, at which clients drop the response.
func skipInput(c net.Conn, buf []byte) {
	_ = c.SetReadDeadline(time.Now().Add(refusalTimeout))
	_, _ = io.CopyBuffer(io.Discard, io.LimitReader(c, maxRefusedInput), buf)
}

func (l *boundedListener) writeRefusal(c net.Conn, message string) {
	const status = http.StatusServiceUnavailable
	header, body := l.problem(status, "RT0026", message)
	_, _ = c.Write(response(status, "Retry-After: 1\r\n", header, body))
}

// refusals logs refused or closed connections, at most one line in ten seconds.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex // covers the fields below
	logged time.Time
	count  int
}

// add counts a connection of an address. Listeners of tests may have no refusals.
func (r *refusals) add(addr netip.Addr, reason string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if now := time.Now(); now.Sub(r.logged) >= 10*time.Second {
		r.log.Warn("connections of an address refused or closed", "address", addr, "reason", reason, "count", r.count)
		r.logged, r.count = now, 0
	}
}

// ipv6Network is the size of the networks whose addresses one host may have.
const ipv6Network = 64

// remoteAddr is the address of the peer; the zero address if it has none.
func remoteAddr(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// NetworkOf is the remote address of a connection that bounds apply to: in IPv6, that of the network.
func NetworkOf(c net.Conn) netip.Addr { return networkOf(remoteAddr(c)) }

func networkOf(addr netip.Addr) netip.Addr {
	if !addr.Is6() || addr.IsLoopback() || addr.IsLinkLocalUnicast() { // many hosts have the network of these
		return addr
	}
	network, _ := addr.Prefix(ipv6Network)
	return network.Addr()
}

// conn is a connection whose writes fail when the peer reads too slowly.
type conn struct {
	net.Conn
	addr     netip.Addr
	proxy    bool // the requests are those of clients of a proxy
	listener *boundedListener
	timeout  time.Duration
	problem  Problem
	once     sync.Once
	closed   func()
	account  *budget.Account // set before the connection is served
	outer    net.Conn        // with TLS, or the connection itself; set before the connection is served
	end      atomic.Int64    // of writing, as the server has set it, in Unix nanoseconds; 0: none

	awaitsTLS bool // until the first byte arrives

	completed atomic.Int64 // requests
	calmed    atomic.Bool
	cancels   cancelBound // covered by listener.mu, as is cancelled
	cancelled int         // young requests
}

var errPlain = errors.New("the client does not use TLS")

// Read reads what the peer sends. It responds to requests without TLS, which begin with a letter, unlike TLS.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.awaitsTLS || n == 0 {
		return n, err
	}
	c.awaitsTLS = false
	if p[0] < 'A' || p[0] > 'Z' {
		return n, err
	}
	header, body := c.problem(http.StatusBadRequest, "", RequiresTLS)
	_, _ = c.write(response(http.StatusBadRequest, "", header, body))
	skipInput(c.Conn, p)
	return 0, errPlain
}

// writePiece is the number of bytes that a peer must read within the write timeout.
const writePiece = 64 << 10

// Write sends p, or an explanation if it is a refusal of net/http. The timeout applies to each piece.
func (c *conn) Write(p []byte) (int, error) {
	if explained := explainRejection(p, c.problem); explained != nil {
		if _, err := c.write(explained); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return c.write(p)
}

func (c *conn) write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+writePiece)]
		timeout := c.timeout
		if len(p) > writePiece {
			timeout = stallTimeout(c.account, timeout)
		}
		if err := c.Conn.SetWriteDeadline(earlier(time.Now().Add(timeout), c.end.Load())); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// SetWriteDeadline bounds the time of all writes from now on.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.bound(t)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error {
	c.bound(t)
	return c.Conn.SetDeadline(t)
}

func (c *conn) bound(t time.Time) {
	if t.IsZero() {
		c.end.Store(0)
	} else {
		c.end.Store(t.UnixNano())
	}
}

// earlier is t, or end in Unix nanoseconds if that is set and earlier.
func earlier(t time.Time, end int64) time.Time {
	if end != 0 && end < t.UnixNano() {
		return time.Unix(0, end)
	}
	return t
}

// Close closes the connection.
func (c *conn) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}
