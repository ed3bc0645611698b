package httpserver

import (
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// newConnGracePeriod is how long new connections may take to carry a request once the server stops: it may have arrived
	// already.
	newConnGracePeriod = 250 * time.Millisecond
	// newConnCheck is the interval of the checks whether there are such connections. net/http handles a request that it has
	// read if the server is not shut down within the few instructions that follow.
	newConnCheck = 10 * time.Millisecond
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

// await waits until no connection is tracked, but no longer than limit.
func (f *newConns) await(limit time.Duration) {
	for deadline := time.Now().Add(limit); f.any() && time.Now().Before(deadline); {
		time.Sleep(newConnCheck)
	}
}

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
