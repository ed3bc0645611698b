package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// peekTimeout is how long a connection may take to show what it is, and how long
	// it waits for a server to accept it.
	peekTimeout = 5 * time.Second
	// maxPeeking bounds the connections that wait for either.
	maxPeeking = 512
	// protocolBytes is how many bytes tell the protocols apart.
	protocolBytes = 4
)

// httpMethods are the first bytes of HTTP/1 requests.
var httpMethods = []string{"GET ", "HEAD", "POST", "PUT ", "PATC", "DELE", "OPTI"}

// Ports are the protocols that share the node port. Each listener gets the
// connections of its protocol; closing one refuses its protocol and leaves the others.
type Ports struct {
	// RPC gets HTTP/2 with prior knowledge, which is gRPC.
	RPC net.Listener
	// HTTP gets HTTP/1 requests.
	HTTP net.Listener
	// Gossip gets the streams of Members.
	Gossip net.Listener

	listener net.Listener
	done     chan struct{}
	stopOnce sync.Once
	slots    chan struct{} // one is taken by each connection that is not handed out
	peeking  *connSet
	wg       sync.WaitGroup

	rpc, http, gossip *protocolListener
}

// Split hands the connections of l out by their first bytes. What speaks none of the
// protocols is closed. Ports takes l over; it ends with Close, or when l is closed.
func Split(l net.Listener) *Ports {
	addr := l.Addr()
	p := &Ports{
		listener: l, done: make(chan struct{}),
		slots: make(chan struct{}, maxPeeking), peeking: newConnSet(),
		rpc: newProtocolListener(addr), http: newProtocolListener(addr), gossip: newProtocolListener(addr),
	}
	p.RPC, p.HTTP, p.Gossip = p.rpc, p.http, p.gossip
	p.wg.Go(func() {
		defer p.stop()
		acceptAll(l, p.done, p.take)
	})
	return p
}

// Close stops accepting. Connections that were handed out stay open.
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
		for _, l := range []*protocolListener{p.rpc, p.http, p.gossip} {
			_ = l.Close()
		}
		p.peeking.closeAll()
	})
}

// take sorts a new connection without holding up those behind it.
func (p *Ports) take(conn net.Conn) {
	select {
	case p.slots <- struct{}{}:
	default: // a flood of connections that say nothing
		_ = conn.Close()
		return
	}
	p.wg.Go(func() {
		defer func() { <-p.slots }()
		p.sort(conn)
	})
}

// sort looks at the first bytes of a connection and hands it to its protocol.
func (p *Ports) sort(conn net.Conn) {
	if !p.peeking.add(conn) {
		return
	}
	head := make([]byte, protocolBytes)
	_ = conn.SetReadDeadline(time.Now().Add(peekTimeout))
	_, err := io.ReadFull(conn, head)
	p.peeking.remove(conn)
	to := p.protocol(string(head))
	if err != nil || to == nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	to.deliver(&peekedConn{Conn: conn, head: head})
}

// protocol returns the listener for connections that begin with head, nil if there
// is none.
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

// ListenPacket opens the UDP socket on the address that a TCP listener got.
func ListenPacket(ctx context.Context, tcp net.Addr) (net.PacketConn, error) {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", tcp.String())
	if err != nil {
		return nil, fmt.Errorf("listen for gossip packets: %w", err)
	}
	return conn, nil
}
