package membership

import (
	"errors"
	"net"
	"sync"
	"time"
)

// acceptBackoffMax bounds the pause after an accept that failed, for instance for
// want of file descriptors.
const acceptBackoffMax = time.Second

// acceptAll calls serve for each connection until l is closed or done.
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

// connSet holds open connections, so that all can be closed at the end.
type connSet struct {
	// mu covers the rest. conns is nil once the set is closed.
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newConnSet() *connSet { return &connSet{conns: make(map[net.Conn]struct{})} }

// add takes conn in. After closeAll it closes it and returns false.
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

// protocolListener is a net.Listener fed with connections from elsewhere.
type protocolListener struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newProtocolListener(addr net.Addr) *protocolListener {
	return &protocolListener{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// deliver waits until the connection is accepted, or closes it.
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

// Close refuses the protocol from now on.
func (l *protocolListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns the address of the shared port.
func (l *protocolListener) Addr() net.Addr { return l.addr }

// peekedConn is a connection whose first bytes have been read already.
type peekedConn struct {
	net.Conn
	head []byte // not read by the user yet
}

// Read returns the bytes that were looked at before those that follow.
func (c *peekedConn) Read(b []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.head)
	c.head = c.head[n:]
	return n, nil
}
