package metadata

import (
	"context"
	"sync"

	"platform/internal/broadcast"
	"platform/internal/raftgroup"
)

// gate is open while this node leads and has applied everything that previous leaders
// committed.
type gate struct {
	changed broadcast.Channel // opening, closing and changes of the known leader

	// leaderships passes the context of the current leadership to the controller, which may
	// receive it repeatedly.
	leaderships chan context.Context

	mu   sync.Mutex      // covers lost
	lost <-chan struct{} // closed when this node's leadership ends, nil if it does not lead
}

func newGate() *gate { return &gate{leaderships: make(chan context.Context)} }

// lead opens the gate until ctx ends.
func (g *gate) lead(ctx context.Context, _ uint64) error {
	g.set(ctx.Done())
	defer g.set(nil)
	for {
		select {
		case g.leaderships <- ctx:
		case <-ctx.Done():
			return nil
		}
	}
}

func (g *gate) set(lost <-chan struct{}) {
	g.mu.Lock()
	g.lost = lost
	g.mu.Unlock()
	g.changed.Send()
}

func (g *gate) leaderChanged(raftgroup.Leader) { g.changed.Send() }

// open reports whether this node leads.
func (g *gate) open() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost == nil {
		return false
	}
	select {
	case <-g.lost:
		return false
	default:
		return true
	}
}
