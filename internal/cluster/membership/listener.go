package membership

import (
	"errors"
	"net"
	"sync"
	"time"

	"platform/internal/nodetls"
)

// acceptBackoffMax bounds the backoff after a failed accept, for example for lack of file
// descriptors.
const acceptBackoffMax = time.Second

// acceptAll calls serve for each connection until l or done is closed.
func acceptAll(l net.Listener, done <-chan struct{}, serve func(net.Conn)) {
	const backoffMin = 5 * time.Millisecond
	for backoff := backoffMin; ; {
		conn, err := l.Accept()
		if err == nil {
			backoff = backoffMin
			serve(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case <-time.After(backoff):
			backoff = min(2*backoff, acceptBackoffMax)
		case <-done:
			return
		}
	}
}

// connSet tracks open connections so that they can be closed together.
type connSet struct {
	mu    sync.Mutex            // covers conns
	conns map[net.Conn]struct{} // nil once the set is closed
}

func newConnSet() *connSet { return &connSet{conns: make(map[net.Conn]struct{})} }

// add adds conn. After closeAll it closes conn and returns false.
func (s *connSet) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *connSet) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

func (s *connSet) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
}

// protocolListener is a net.Listener for the connections of one protocol.
type protocolListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newProtocolListener(addr net.Addr) *protocolListener {
	return &protocolListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// deliver passes a connection to Accept, and closes it if that takes longer than
// peekTimeout.
func (l *protocolListener) deliver(conn net.Conn) {
	timer := time.NewTimer(peekTimeout)
	defer timer.Stop()
	select {
	case l.conns <- conn:
	case <-l.done:
		_ = conn.Close()
	case <-timer.C:
		_ = conn.Close()
	}
}

// Accept returns the next connection of the protocol.
func (l *protocolListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close stops accepting connections of this protocol.
func (l *protocolListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns the address of the shared port.
func (l *protocolListener) Addr() net.Addr { return l.addr }

// peekedConn is a connection whose first bytes have been read already.
type peekedConn struct {
	net.Conn
	head []byte // not returned by Read yet
}

// Node returns the name of the node at the other end, "" if it is not authenticated.
func (c *peekedConn) Node() string { return nodetls.NodeOf(c.Conn) }

// Read returns the peeked bytes first.
func (c *peekedConn) Read(b []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.head)
	c.head = c.head[n:]
	return n, nil
}
