package metadata

import (
	"context"
	"sync"

	"platform/internal/raftgroup"
)

// gate is open while this node leads and has applied everything that previous leaders
// committed.
type gate struct {
	changed broadcast // opening, closing and changes of the known leader

	// mu covers tenure.
	mu         sync.Mutex
	leadership context.Context // of this node's leadership, nil if it does not lead
}

func newGate() *gate { return &gate{} }

// lead opens the gate until ctx ends.
func (g *gate) lead(ctx context.Context, _ uint64) error {
	g.set(ctx)
	<-ctx.Done()
	g.set(nil) // nolint:staticcheck // nil means not leading
	return nil
}

func (g *gate) set(leadership context.Context) {
	g.mu.Lock()
	g.leadership = leadership
	g.mu.Unlock()
	g.changed.send()
}

func (g *gate) leaderChanged(raftgroup.Leader) { g.changed.send() }

// open reports whether this node leads.
func (g *gate) open() bool { return g.leading() != nil }

// leading returns the context of this node's leadership, nil if it does not lead.
func (g *gate) leading() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leadership == nil || g.leadership.Err() != nil {
		return nil
	}
	return g.leadership
}
