package httpserver

import (
	"net"
	"net/http"
	"sync"
)

// freshConns are the connections on which no request has begun. Clients open them
// in reserve; the library would wait five seconds for a request on each before it
// lets a server stop.
type freshConns struct {
	mu       sync.Mutex // covers the fields below
	conns    map[net.Conn]struct{}
	stopping bool
}

// note is the server's ConnState hook.
func (f *freshConns) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state != http.StateNew {
		delete(f.conns, c)
		return
	}
	f.conns[c] = struct{}{}
	if f.stopping {
		_ = c.Close()
	}
}

// close closes those there are and those that were accepted too late.
func (f *freshConns) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	for c := range f.conns {
		_ = c.Close()
	}
}
