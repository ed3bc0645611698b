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
)

// errNoAddress is returned for a node that nobody has told the address of. The
// library asks again by other ways.
var errNoAddress = errors.New("no address known")

// maxStreams bounds the incoming streams that have not introduced themselves.
const maxStreams = 64

// peer is how a node can be reached.
type peer struct {
	address string   // host:port, the host may be a name
	target  identity // zero: whoever answers there
	refusal *error   // gets why the node did not welcome a stream; nil if nobody asks
}

// transport carries the gossip over the node port. Nodes are named by identities,
// which it turns into the addresses that they advertise.
type transport struct {
	self     hello // with this node as the target
	streams  net.Listener
	packets  net.PacketConn
	dial     func(context.Context, string) (net.Conn, error)
	timeout  time.Duration
	resolver *resolver

	ctx      context.Context // ends with Shutdown
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	conns    *connSet
	packetCh chan *memberlist.Packet
	streamCh chan net.Conn

	sentPackets, openedStreams atomic.Uint64

	// mu covers peers.
	mu    sync.RWMutex
	peers map[identity]peer
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(cfg Config) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	t := &transport{
		self:    hello{cluster: clusterHash(cfg.ClusterName), target: identityOf(cfg.Name, cfg.Incarnation)},
		streams: cfg.Streams, packets: cfg.Packets, dial: cfg.Dial, timeout: cfg.Profile.StreamTimeout,
		ctx: ctx, cancel: cancel, conns: newConnSet(),
		packetCh: make(chan *memberlist.Packet), streamCh: make(chan net.Conn),
		peers: make(map[identity]peer),
	}
	_, _ = rand.Read(t.self.process[:]) // never fails
	t.resolver = &resolver{
		ctx: ctx, wg: &t.wg, lookup: cfg.Resolve, only4: isIPv4(cfg.Packets.LocalAddr()), hosts: make(map[string]*resolved),
	}
	t.wg.Go(t.acceptStreams)
	t.wg.Go(t.readPackets)
	return t
}

// setPeer tells how the node is reached from now on.
func (t *transport) setPeer(id identity, p peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peers[id] = p
}

func (t *transport) removePeer(id identity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.peers, id)
}

func (t *transport) peer(address string) (peer, error) {
	id, ok := parseIdentity(address)
	if ok {
		t.mu.RLock()
		defer t.mu.RUnlock()
		if p, known := t.peers[id]; known {
			return p, nil
		}
	}
	return peer{}, errNoAddress
}

// FinalAdvertiseAddr returns the identity of this node.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.self.target.ip(), identityPort, nil
}

// WriteTo is WriteToAddress.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet. A name that is not resolved yet loses the packet, as
// a network may: an error would keep the library from trying the node over a stream,
// and so from finding out that it is dead.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	p, err := t.peer(a.Addr)
	if err != nil {
		return time.Time{}, err
	}
	if to, ok := t.resolver.packetAddress(p.address); ok {
		t.sentPackets.Add(1)
		_, err = t.packets.WriteTo(encodePacket(p.target, b), net.UDPAddrFromAddrPort(to))
	}
	return time.Now(), err
}

// PacketCh returns the packets for this node.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packetCh }

// StreamCh returns the streams to this node.
func (t *transport) StreamCh() <-chan net.Conn { return t.streamCh }

// DialTimeout is DialAddressTimeout.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout opens a stream.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	p, err := t.peer(a.Addr)
	if err != nil {
		return nil, err
	}
	conn, err := t.open(p, timeout)
	if err != nil && p.refusal != nil {
		*p.refusal = err
	}
	return conn, err
}

// open connects to a node and makes sure that it is the one that is meant.
func (t *transport) open(p peer, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	t.openedStreams.Add(1)
	conn, err := t.dial(ctx, p.address)
	if err != nil {
		return nil, err
	}
	if !t.conns.add(conn) {
		return nil, net.ErrClosed
	}
	h := t.self
	h.target = p.target
	if err := h.call(conn, timeout); err != nil {
		t.conns.remove(conn)
		_ = conn.Close()
		return nil, fmt.Errorf("node at %s: %w", p.address, err)
	}
	t.resolver.reached(p.address, conn.RemoteAddr())
	return &stream{Conn: conn, set: t.conns}, nil
}

// Shutdown closes the sockets and all streams.
func (t *transport) Shutdown() error {
	t.cancel()
	_ = t.streams.Close() // both may be closed already by their owners
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
			t.welcome(conn)
		})
	})
}

// welcome hands a stream to the library if it is meant for this node.
func (t *transport) welcome(conn net.Conn) {
	if !t.conns.add(conn) {
		return
	}
	s := &stream{Conn: conn, set: t.conns}
	if err := t.self.receive(conn, t.timeout); err != nil {
		_ = s.Close()
		return
	}
	select {
	case t.streamCh <- s:
	case <-t.ctx.Done():
		_ = s.Close()
	}
}

// readPackets hands the packets for this node to the library.
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
			case <-time.After(10 * time.Millisecond): // an error that stays must not burn the processor
				continue
			case <-t.ctx.Done():
				return
			}
		}
		payload, ok := decodePacket(t.self.target, buf[:n])
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

// stream is an open stream that leaves its set when it is closed.
type stream struct {
	net.Conn
	set *connSet
}

// Close ends the stream.
func (s *stream) Close() error {
	s.set.remove(s.Conn)
	return s.Conn.Close()
}
