package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"platform/internal/nodetls"
)

// errNoAddress is returned for a node whose address is unknown. memberlist retries by
// other paths.
var errNoAddress = errors.New("no address known")

// maxStreams bounds the incoming streams whose handshake is not complete.
const maxStreams = 64

// endpoint is where a node can be reached.
type endpoint struct {
	address string   // host:port, the host may be a name
	target  identity // zero: any node that answers at the address
	dialErr *error   // receives the error of a failed dial; may be nil
}

// transport carries the gossip over the node port. It maps the identities of nodes to
// their advertised addresses.
type transport struct {
	self     hello // with this node as the target
	streams  net.Listener
	security *nodetls.Security
	packets  net.PacketConn
	dial     func(context.Context, string) (net.Conn, error)
	timeout  time.Duration
	removed  func() []Removed
	resolver *resolver

	ctx      context.Context //nolint:containedctx // memberlist calls without one; ends with Shutdown
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	conns    *connSet
	packetCh chan *memberlist.Packet
	streamCh chan net.Conn

	sentPackets, openedStreams atomic.Uint64

	mu        sync.RWMutex // covers the fields below
	endpoints map[identity]endpoint
	sealing   map[identity]time.Time // when the node has last sent an encrypted packet
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(cfg Config) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		self:    hello{cluster: clusterHash(cfg.ClusterName), target: identityOf(cfg.Name, cfg.Incarnation)},
		streams: cfg.Streams, security: cfg.Security, packets: cfg.Packets, dial: cfg.dial, timeout: cfg.profile.streamTimeout, removed: cfg.Removed,
		ctx: ctx, cancel: cancel, conns: newConnSet(),
		packetCh: make(chan *memberlist.Packet), streamCh: make(chan net.Conn),
		endpoints: make(map[identity]endpoint), sealing: make(map[identity]time.Time),
	}
	_, _ = rand.Read(t.self.process[:processRandom]) // never fails
	copy(t.self.process[processRandom:], t.self.target[processRandom:])
	t.resolver = &resolver{
		wg: &t.wg, lookup: cfg.resolve, only4: isIPv4(cfg.Packets.LocalAddr()), hosts: make(map[string]*resolved),
	}
	t.wg.Go(t.acceptStreams)
	t.wg.Go(t.readPackets)
	return t
}

// setEndpoint sets where the node is reached from now on.
func (t *transport) setEndpoint(id identity, e endpoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endpoints[id] = e
}

func (t *transport) removeEndpoint(id identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.endpoints, id)
	delete(t.sealing, id)
}

func (t *transport) endpoint(address string) (endpoint, error) {
	id, ok := parseIdentity(address)
	if ok {
		t.mu.RLock()
		defer t.mu.RUnlock()
		if e, known := t.endpoints[id]; known {
			return e, nil
		}
	}
	return endpoint{}, errNoAddress
}

// FinalAdvertiseAddr returns the identity of this node.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.self.target.ip(), identityPort, nil
}

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet. It drops the packet while the host name is not resolved:
// after an error, memberlist would not probe the node over a stream and so never detect
// that it is dead.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	e, err := t.endpoint(a.Addr)
	if err != nil {
		return time.Time{}, err
	}
	if to, ok := t.resolver.packetAddress(t.ctx, e.address); ok {
		t.sentPackets.Add(1)
		_, err = t.packets.WriteTo(t.encode(e.target, b), net.UDPAddrFromAddrPort(to))
	}
	return time.Now(), err
}

// PacketCh returns the incoming packets.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }

// StreamCh returns the incoming streams.
func (t *transport) StreamCh() <-chan net.Conn { return t.streamCh }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout opens a stream.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	e, err := t.endpoint(a.Addr)
	if err != nil {
		return nil, err
	}
	conn, err := t.open(e, timeout)
	if err == nil {
		return conn, nil
	}
	if e.dialErr != nil {
		*e.dialErr = err
	}
	return nil, fmt.Errorf("node at %s: %w", e.address, err)
}

// open connects to a node and verifies that it is the target.
func (t *transport) open(e endpoint, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	t.openedStreams.Add(1)
	conn, err := t.security.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return t.dial(ctx, e.address) })
	if err != nil {
		return nil, err
	}
	if !t.conns.add(conn) {
		return nil, net.ErrClosed
	}
	h := t.self
	h.target = e.target
	if err := h.clientHandshake(conn, timeout); err != nil {
		t.conns.remove(conn)
		_ = conn.Close()
		return nil, err
	}
	t.resolver.reached(e.address, conn.RemoteAddr())
	return &stream{Conn: conn, set: t.conns}, nil
}

// Shutdown closes the sockets and all streams.
func (t *transport) Shutdown() error {
	t.cancel()
	_ = t.streams.Close() // both may already be closed
	_ = t.packets.Close()
	t.conns.closeAll()
	t.wg.Wait()
	return nil
}

func (t *transport) acceptStreams() {
	slots := make(chan struct{}, maxStreams)
	acceptAll(t.streams, t.ctx.Done(), func(conn net.Conn) {
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			return
		}
		t.wg.Go(func() {
			defer func() { <-slots }()
			t.serveStream(conn)
		})
	})
}

// serveStream passes a stream to memberlist if it is addressed to this node.
func (t *transport) serveStream(conn net.Conn) {
	if !t.conns.add(conn) {
		return
	}
	s := &stream{Conn: conn, set: t.conns}
	admit := func(client hello) error { return t.admit(nodetls.NodeOf(conn), client) }
	if err := t.self.serverHandshake(conn, t.timeout, admit); err != nil {
		_ = s.Close()
		return
	}
	select {
	case t.streamCh <- s:
	case <-t.ctx.Done():
		_ = s.Close()
	}
}

// admit returns an error if a node was removed from the cluster. node is its name if it is authenticated.
func (t *transport) admit(node string, client hello) error {
	for _, r := range t.removed() {
		if client.sentBy(identityOf(r.Name, r.Incarnation)) && (node == "" || node == r.Name) {
			return fmt.Errorf("node %s was removed from the cluster", r.Name)
		}
	}
	return nil
}

// readPackets passes packets addressed to this node to memberlist.
func (t *transport) readPackets() {
	const maxPacket = 64 << 10
	buf := make([]byte, maxPacket)
	for {
		n, from, err := t.packets.ReadFrom(buf)
		now := time.Now()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(10 * time.Millisecond): // do not spin on a persistent error
				continue
			case <-t.ctx.Done():
				return
			}
		}
		payload, ok := t.decode(buf[:n])
		if !ok {
			continue
		}
		select {
		case t.packetCh <- &memberlist.Packet{Buf: append([]byte(nil), payload...), From: from, Timestamp: now}:
		case <-t.ctx.Done():
			return
		}
	}
}

// stream is an open stream that removes itself from its connSet when closed.
type stream struct {
	net.Conn
	set *connSet
}

// Node returns the name of the node at the other end, "" if it is not authenticated.
func (s *stream) Node() string { return nodetls.NodeOf(s.Conn) }

// Close closes the stream.
func (s *stream) Close() error {
	s.set.remove(s.Conn)
	return s.Conn.Close()
}
