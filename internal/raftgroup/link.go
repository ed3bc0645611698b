package raftgroup

import (
	"sync"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// Conn is a connection to another node, dialed when it is used. It is a *grpc.ClientConn,
// unless a test replaces the network.
type Conn interface {
	grpc.ClientConnInterface
	// GetState says whether the last dial failed.
	GetState() connectivity.State
	// Close ends pending calls.
	Close() error
}

// link is one connection to a peer, which can be told to dial now instead of after gRPC's
// backoff. ClientConn.ResetConnectBackoff is not used for that: it reads the connection's
// map of addresses without a lock, which crashes the process if the map is written
// concurrently.
type link struct {
	t    *Transport
	addr raft.ServerAddress

	mu     sync.Mutex // covers the fields below
	conn   Conn
	closed bool
}

func (t *Transport) newLink(addr raft.ServerAddress) (*link, error) {
	conn, err := t.dial(addr)
	if err != nil {
		return nil, err
	}
	return &link{t: t, addr: addr, conn: conn}, nil
}

// current returns the connection to use.
func (l *link) current() Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// redial replaces the connection if the last dial failed, so that the next request dials
// immediately. A connection in that state has no pending calls.
func (l *link) redial() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.conn.GetState() != connectivity.TransientFailure {
		return
	}
	fresh, err := l.t.dial(l.addr)
	if err != nil {
		return
	}
	_ = l.conn.Close()
	l.conn = fresh
}

func (l *link) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.conn.Close()
}
