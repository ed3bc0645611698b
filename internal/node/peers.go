package node

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/raftgroup"
	nodepb "platform/proto/node"
)

// peers are the connections to other nodes for what is rarely asked: who joins, who
// leads the metadata, how replicas are. Raft and requests to partitions have their own.
type peers struct {
	mu     sync.Mutex // covers the fields below
	closed bool
	conns  map[string]*grpc.ClientConn
}

func newPeers() *peers { return &peers{conns: make(map[string]*grpc.ClientConn)} }

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
		options := append(raftgroup.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
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
