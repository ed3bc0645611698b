package httpserver

import (
	"net"
	"sync"
)

// maxEstablished bounds the connections that are accepted when a listener is closed.
const maxEstablished = 512

// backlog is a listener that, when it is closed, first accepts the connections that the kernel has established. The kernel resets
// those that have not been accepted, whose requests may have arrived already. They do not count in the limits of Listener,
// whose connections are about to end.
type backlog struct {
	net.Listener
	port *net.TCPListener // below Listener; nil: what is established is reset

	mu      sync.Mutex // covers pending
	pending []net.Conn // were accepted by Close
}

// Close implements net.Listener.
func (l *backlog) Close() error {
	var pending []net.Conn
	if l.port != nil {
		pending = acceptEstablished(l.port)
	}
	l.mu.Lock()
	l.pending = append(l.pending, pending...)
	l.mu.Unlock()
	return l.Listener.Close()
}

// Accept implements net.Listener.
func (l *backlog) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		return c, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return nil, err
	}
	c, l.pending = l.pending[0], l.pending[1:]
	return c, nil
}
