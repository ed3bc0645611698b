package httpserver

import (
	"net"
	"net/http"
	"sync"
)

// newConns tracks connections that have not carried a request yet, which clients open in advance.
// If they were not closed, http.Server.Shutdown would wait five seconds for each.
type newConns struct {
	mu       sync.Mutex // covers the fields below
	conns    map[net.Conn]struct{}
	stopping bool
}

// connState is the server's ConnState hook.
func (f *newConns) connState(c net.Conn, state http.ConnState) {
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

// close closes all tracked connections, and those accepted later.
func (f *newConns) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopping = true
	for c := range f.conns {
		_ = c.Close()
	}
}
