package cluster

import (
	"context"
	"errors"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"platform/internal/nodelink"
	"platform/internal/nodetls"
	nodepb "platform/proto/node"
)

// Peers holds the connections to other nodes for requests about the cluster: joining,
// metadata, replica status. Raft and requests to partitions have connections of their own.
// It is safe for concurrent use.
type Peers struct {
	security *nodetls.Security
	sent     map[string]*atomic.Uint64 // number of requests by method; the map does not change

	mu     sync.Mutex // covers the fields below
	closed bool
	conns  map[string]*peerConn
}

// peerConn is the connection to an address.
type peerConn struct {
	*grpc.ClientConn
	used time.Time // when it was last needed
}

// unusedAfter is the time without requests after which the connection to an address is dropped: a node
// that is restarted elsewhere has another address. No request takes this long.
const unusedAfter = 10 * time.Minute

// NewPeers returns a Peers without connections. security may be nil.
func NewPeers(security *nodetls.Security) *Peers {
	p := &Peers{security: security, sent: make(map[string]*atomic.Uint64), conns: make(map[string]*peerConn)}
	for _, method := range nodepb.NodeCluster_ServiceDesc.Methods {
		p.sent[method.MethodName] = new(atomic.Uint64)
	}
	return p
}

// count is an interceptor that counts requests.
func (p *Peers) count(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if n := p.sent[path.Base(method)]; n != nil {
		n.Add(1)
	}
	return invoke(ctx, method, req, resp, cc, opts...)
}

// At returns a client for the node at an address. The first request dials it.
func (p *Peers) At(address string) (nodepb.NodeClusterClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the node is stopping")
	}
	now := time.Now()
	conn := p.conns[address]
	if conn == nil {
		dialed, err := nodelink.Dial(address, p.security, grpc.WithUnaryInterceptor(p.count))
		if err != nil {
			return nil, err
		}
		p.dropUnusedLocked(now)
		conn = &peerConn{ClientConn: dialed}
		p.conns[address] = conn
	}
	conn.used = now
	return nodepb.NewNodeClusterClient(conn), nil
}

// dropUnusedLocked closes the connections that are no longer used.
func (p *Peers) dropUnusedLocked(now time.Time) {
	for address, conn := range p.conns {
		if now.Sub(conn.used) > unusedAfter {
			_ = conn.Close() // nothing waits for it
			delete(p.conns, address)
		}
	}
}

// Close closes all connections. Later requests fail.
func (p *Peers) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, conn := range p.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// Sent returns the number of requests sent so far, by method.
func (p *Peers) Sent() map[string]uint64 {
	sent := make(map[string]uint64, len(p.sent))
	for method, n := range p.sent {
		sent[method] = n.Load()
	}
	return sent
}
