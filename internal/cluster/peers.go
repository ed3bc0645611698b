package node

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/raftgroup"
	nodepb "platform/proto/node"
)

// peers are the connections to other nodes for what is rarely asked: who joins, who
// leads the metadata, how replicas are. Raft and requests to partitions have their own.
type peers struct {
	asked map[string]*atomic.Uint64 // how often, by method; the map does not change

	mu     sync.Mutex // covers the fields below
	closed bool
	conns  map[string]*grpc.ClientConn
}

func newPeers() *peers {
	p := &peers{asked: make(map[string]*atomic.Uint64), conns: make(map[string]*grpc.ClientConn)}
	for _, method := range nodepb.NodeCluster_ServiceDesc.Methods {
		p.asked[method.MethodName] = new(atomic.Uint64)
	}
	return p
}

// count counts a request and sends it.
func (p *peers) count(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if n := p.asked[path.Base(method)]; n != nil {
		n.Add(1)
	}
	return invoke(ctx, method, req, resp, cc, opts...)
}

// at is the node at an address, which is dialled when it is asked something.
func (p *peers) at(address string) (nodepb.NodeClusterClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the node is stopping")
	}
	conn := p.conns[address]
	if conn == nil {
		// The resolver leaves names to the dialer, so they are resolved at each dial.
		options := append(raftgroup.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(p.count))
		var err error
		if conn, err = grpc.NewClient("passthrough:///"+address, options...); err != nil {
			return nil, fmt.Errorf("dial %s: %w", address, err)
		}
		p.conns[address] = conn
	}
	return nodepb.NewNodeClusterClient(conn), nil
}

// close ends all connections.
func (p *peers) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, conn := range p.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
