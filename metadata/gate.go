package metadata

import (
	"context"
	"sync"

	"platform/internal/raftgroup"
)

// gate is open while this node leads and has applied all that former leaders
// committed.
type gate struct {
	moved broadcast // when it opens or closes, or another leader is known

	// mu covers tenure.
	mu     sync.Mutex
	tenure context.Context // of this node's leadership, nil if none
}

func newGate() *gate { return &gate{} }

// lead opens the gate until ctx ends.
func (g *gate) lead(ctx context.Context, _ uint64) error {
	g.set(ctx)
	<-ctx.Done()
	g.set(nil) //nolint:staticcheck // nil is: does not lead
	return nil
}

func (g *gate) set(tenure context.Context) {
	g.mu.Lock()
	g.tenure = tenure
	g.mu.Unlock()
	g.moved.send()
}

func (g *gate) leaderChanged(raftgroup.Leader) { g.moved.send() }

// open reports whether this node leads.
func (g *gate) open() bool { return g.leading() != nil }

// leading is the context of this node's leadership, nil if it does not lead.
func (g *gate) leading() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tenure == nil || g.tenure.Err() != nil {
		return nil
	}
	return g.tenure
}
