package metadata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"platform/internal/raftgroup"
)

// ErrUnavailable says that a change was not made because no node leads the
// metadata, or not yet. Asking again is safe.
var ErrUnavailable = errors.New("metadata has no leader at the moment")

// ErrUnknownOutcome says that a change was on its way when it failed: it may or
// may not have been made. Asking again is safe.
var ErrUnknownOutcome = errors.New("outcome of the change is unknown")

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
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		result, err := l.group.Propose(data).Wait(ctx)
		switch {
		case err == nil:
			return result, nil
		case !raftgroup.Definite(err):
			return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		case !errors.Is(err, raftgroup.ErrNotLeader):
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		// Either the gate does not know yet, or a transfer of leadership is under way,
		// which may come to nothing.
		select {
		case <-ended:
		case <-time.After(proposeAgain):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
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
