package node

import (
	"context"
	"net"
	"sync"

	"platform/internal/config"
	"platform/metadata"
)

// haveOthers reports whether more than one of the nodes is a member of the cluster.
func haveOthers(nodes []metadata.Node) bool {
	members := 0
	for i := range nodes {
		if !nodes[i].Removed {
			members++
		}
	}
	return members > 1
}

// ingressPort is the port of the ingress. It can be closed until the node serves.
type ingressPort struct {
	mu        sync.Mutex // covers the fields below
	port      net.Listener
	suspended bool // port is closed, and open opens it again
}

// suspend makes the port refuse connections until open is called.
func (p *ingressPort) suspend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspended = true
	_ = p.port.Close()
}

// open returns the port, which it opens again if it is suspended.
func (p *ingressPort) open(ctx context.Context) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.suspended {
		port, err := config.Listener{BindAddress: p.port.Addr().String()}.Listen(ctx, "ingress")
		if err != nil {
			return nil, err
		}
		p.port, p.suspended = port, false
	}
	return p.port, nil
}

// Addr returns the address of the port.
func (p *ingressPort) Addr() net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.port.Addr()
}

// Close implements io.Closer.
func (p *ingressPort) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.port.Close()
}
