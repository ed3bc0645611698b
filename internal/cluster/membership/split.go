package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"platform/internal/httpserver"
	"platform/internal/nodetls"
)

const (
	// peekTimeout bounds how long a connection may take to send its first bytes, and how
	// long it waits to be accepted.
	peekTimeout = 5 * time.Second
	// peekingShare limits one remote address to 1/peekingShare of the connections in either state: a client that opens
	// connections and sends nothing must not keep nodes at other addresses from connecting.
	peekingShare = 8
	// protocolBytes is the number of bytes that identify the protocol.
	protocolBytes = 4
)

// httpMethods are the first bytes of HTTP/1 requests.
var httpMethods = []string{"GET ", "HEAD", "POST", "PUT ", "PATC", "DELE", "OPTI"}

// Ports are the listeners of the protocols that share the node port. Closing one rejects
// connections of its protocol and does not affect the others.
type Ports struct {
	// RPC accepts HTTP/2 with prior knowledge, that is, gRPC.
	RPC net.Listener
	// HTTP accepts HTTP/1.
	HTTP net.Listener
	// Gossip accepts the streams of Members.
	Gossip net.Listener
	// Enroll accepts nodes that have no certificate yet, see nodetls. Their connections are
	// delivered to no other listener, whatever they send.
	Enroll net.Listener

	listener net.Listener
	security *nodetls.Security
	done     chan struct{}
	stopOnce sync.Once
	slots    *slots // one per connection that has not been accepted yet
	peeking  *connSet
	timeout  time.Duration // peekTimeout
	wg       sync.WaitGroup

	rpc, http, gossip, enroll *protocolListener
}

// Split dispatches the connections of l by their first bytes. Connections of unknown
// protocols are closed. Nodes are authenticated first, as security requires, which may be
// nil. pending limits the connections that are not identified yet. Ports takes ownership of l and stops on Close or when l is closed.
func Split(l net.Listener, security *nodetls.Security, pending int) *Ports {
	return split(l, security, pending, peekTimeout)
}

func split(l net.Listener, security *nodetls.Security, pending int, timeout time.Duration) *Ports {
	addr := l.Addr()
	p := &Ports{
		listener: l, security: security, timeout: timeout, done: make(chan struct{}),
		slots: &slots{limit: pending, ofAddress: max(1, pending/peekingShare), of: map[netip.Addr]int{}}, peeking: newConnSet(),
		rpc: newProtocolListener(addr), http: newProtocolListener(addr), gossip: newProtocolListener(addr), enroll: newProtocolListener(addr),
	}
	p.RPC, p.HTTP, p.Gossip, p.Enroll = p.rpc, p.http, p.gossip, p.enroll
	p.wg.Go(func() {
		defer p.stop()
		acceptAll(l, p.done, p.handle)
	})
	return p
}

// Close stops accepting. Connections that have been accepted stay open.
func (p *Ports) Close() error {
	err := p.listener.Close()
	p.stop()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Ports) stop() {
	p.stopOnce.Do(func() {
		close(p.done)
		for _, l := range []*protocolListener{p.rpc, p.http, p.gossip, p.enroll} {
			_ = l.Close()
		}
		p.peeking.closeAll()
	})
}

// handle dispatches a new connection without blocking the accept loop. It closes the
// connection if too many are waiting.
func (p *Ports) handle(conn net.Conn) {
	from := httpserver.NetworkOf(conn)
	if !p.slots.take(from) {
		_ = conn.Close()
		return
	}
	p.wg.Go(func() {
		defer p.slots.release(from)
		p.dispatch(conn)
	})
}

// slots is a semaphore that no remote address can exhaust.
type slots struct {
	limit, ofAddress int

	mu    sync.Mutex // covers the fields below
	taken int
	of    map[netip.Addr]int
}

func (s *slots) take(from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == s.limit || s.of[from] == s.ofAddress {
		return false
	}
	s.taken++
	s.of[from]++
	return true
}

func (s *slots) release(from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[from]--; s.of[from] == 0 {
		delete(s.of, from)
	}
}

// dispatch peeks at the first bytes of a connection and delivers it to its protocol.
func (p *Ports) dispatch(conn net.Conn) {
	if !p.peeking.add(conn) {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(p.timeout))
	opened, to := p.open(conn)
	p.peeking.remove(conn)
	if to == nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	to.deliver(opened)
}

// open authenticates the other node, if it begins with TLS, and returns the connection to
// deliver and the listener for its protocol, nil if it is refused.
func (p *Ports) open(conn net.Conn) (net.Conn, *protocolListener) {
	opened, head, err := peek(conn)
	if err != nil {
		return nil, nil
	}
	secure := isTLS(head) && p.security.Mode() != nodetls.Off
	if secure {
		authenticated, err := p.security.Server(context.Background(), opened) // the deadline ends it
		if err != nil {
			return nil, nil
		}
		if authenticated.Enrolling() {
			return authenticated, p.enroll
		}
		if opened, head, err = peek(authenticated); err != nil {
			return nil, nil
		}
	}
	to := p.protocol(head)
	if !secure && to != nil && to != p.http && !p.security.AcceptsPlain() {
		p.security.RefusePlain(conn.RemoteAddr())
		return nil, nil
	}
	return opened, to
}

// peek reads the bytes that identify the protocol, which the returned connection contains.
func peek(conn net.Conn) (*peekedConn, string, error) {
	head := make([]byte, protocolBytes)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, "", err
	}
	return &peekedConn{Conn: conn, head: head}, string(head), nil
}

// isTLS reports whether a connection begins with a TLS handshake.
func isTLS(head string) bool { return strings.HasPrefix(head, "\x16\x03") }

// protocol returns the listener for connections that begin with head, nil if the protocol
// is unknown.
func (p *Ports) protocol(head string) *protocolListener {
	switch {
	case head == "PRI ":
		return p.rpc
	case head == streamMagic:
		return p.gossip
	case slices.Contains(httpMethods, head):
		return p.http
	}
	return nil
}

// ListenPacket opens a UDP socket on the address of a TCP listener.
func ListenPacket(ctx context.Context, tcp net.Addr) (net.PacketConn, error) {
	var lc net.ListenConfig
	network := "udp"
	if a, ok := tcp.(*net.TCPAddr); ok && a.IP.To4() != nil {
		network = "udp4" // with "udp", 0.0.0.0 would include IPv6
	}
	conn, err := lc.ListenPacket(ctx, network, tcp.String())
	if err != nil {
		return nil, fmt.Errorf("listen for gossip packets: %w", err)
	}
	return conn, nil
}
