package nodelink

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// Conn is a connection to another node, dialed when it is used. It is a *grpc.ClientConn,
// unless a test replaces the network.
type Conn interface {
	grpc.ClientConnInterface
	// GetState reports whether the last dial failed.
	GetState() connectivity.State
	// Close ends pending calls.
	Close() error
}

// Redialer is a connection to another node that can dial immediately instead of after
// gRPC's backoff. ClientConn.ResetConnectBackoff is not used for that: it reads the
// connection's map of addresses without a lock, which crashes the process if the map is
// written concurrently.
type Redialer struct {
	address string
	dial    func(address string) (Conn, error)

	mu     sync.Mutex // covers the fields below
	conn   Conn
	closed bool
}

// NewRedialer returns a connection to an address.
func NewRedialer(address string, dial func(address string) (Conn, error)) (*Redialer, error) {
	conn, err := dial(address)
	if err != nil {
		return nil, err
	}
	return &Redialer{address: address, dial: dial, conn: conn}, nil
}

// Conn returns the connection for the next stream.
func (r *Redialer) Conn() Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// Redial replaces the connection if the last dial failed, so that the next request dials
// immediately. A connection in that state has no pending calls.
func (r *Redialer) Redial() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.conn.GetState() != connectivity.TransientFailure {
		return
	}
	fresh, err := r.dial(r.address)
	if err != nil {
		return
	}
	_ = r.conn.Close()
	r.conn = fresh
}

// Close closes the connection permanently.
func (r *Redialer) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.conn.Close()
}
