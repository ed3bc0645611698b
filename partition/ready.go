package partition

import (
	"context"
	"sync"
)

// gate lets callers wait until the replica leads.
type gate struct {
	mu   sync.Mutex // covers the fields below
	lead *leadership
	open chan struct{} // closed while lead is set
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) announce(l *leadership) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lead == nil {
		close(g.open)
	}
	g.lead = l
}

func (g *gate) withdraw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lead != nil {
		g.open = make(chan struct{})
	}
	g.lead = nil
}

// wait returns once the gate is open.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notice broadcasts changes to any number of waiters.
type notice struct {
	mu sync.Mutex // covers c
	c  chan struct{}
}

func newNotice() *notice { return &notice{c: make(chan struct{})} }

// next returns a channel that the next broadcast closes.
func (n *notice) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.c
}

func (n *notice) broadcast() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.c)
	n.c = make(chan struct{})
}
