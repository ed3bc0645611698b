package httpserver

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// newConnGracePeriod is how long new connections may take to carry a request once the server stops: it may have arrived already.
const newConnGracePeriod = 250 * time.Millisecond

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

// any reports whether a connection is tracked.
func (f *newConns) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns) > 0
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
