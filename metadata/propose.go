//go:build raftgroup

package metadata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"platform/internal/raftgroup"
)

// proposeTimeout bounds how long a change waits for a leader and for the log.
const proposeTimeout = 30 * time.Second

// proposeAgain is the pause after the group refused to propose.
const proposeAgain = 20 * time.Millisecond

// raftLog proposes on the node that leads.
type raftLog struct {
	group *raftgroup.Group
	gate  *gate
}

// Propose waits for leadership, which after a start takes a moment, then for the
// entry. It asks again only while nothing was proposed.
func (l *raftLog) Propose(ctx context.Context, data []byte) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	for {
		ended, err := l.gate.wait(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", raftgroup.ErrNotLeader, err)
		}
		result, err := l.group.Propose(data).Wait(ctx)
		if !errors.Is(err, raftgroup.ErrNotLeader) {
			return result, err
		}
		// Either the gate does not know yet, or a transfer of leadership is under way,
		// which may come to nothing.
		select {
		case <-ended:
		case <-time.After(proposeAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// gate is open while this node leads.
type gate struct {
	// mu covers both channels.
	mu     sync.Mutex
	opened chan struct{} // closed while open
	ended  chan struct{} // closed when the current leadership is over
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

// lead opens the gate until ctx ends.
func (g *gate) lead(ctx context.Context, _ uint64) error {
	ended := make(chan struct{})
	g.mu.Lock()
	g.ended = ended
	close(g.opened)
	g.mu.Unlock()

	<-ctx.Done()
	g.mu.Lock()
	g.opened = make(chan struct{})
	g.mu.Unlock()
	close(ended)
	return nil
}

// wait blocks until the gate is open; the result is closed when it no longer is.
func (g *gate) wait(ctx context.Context) (ended <-chan struct{}, err error) {
	for {
		g.mu.Lock()
		opened, ended := g.opened, g.ended
		g.mu.Unlock()
		select {
		case <-opened:
			return ended, nil
		default:
		}
		select {
		case <-opened: // look again, for the leadership that opened it
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
