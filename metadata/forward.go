package metadata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
)

// ForwardFunc hands an entry to HandleForward on the node at leader and returns its
// answer. An error that wraps ErrNotLeader or ErrUnavailable promises that the entry
// was not proposed; any other leaves it open.
type ForwardFunc func(ctx context.Context, leader raft.ServerAddress, entry []byte) (result []byte, index uint64, err error)

// ask forwards an entry to the leader, for as long as it is known as such, and waits
// until the entry was applied here.
func (l *raftLog) ask(ctx context.Context, leader raftgroup.Leader, data []byte) (o outcome, err error) {
	asking, cancel := context.WithTimeout(ctx, attemptTimeout)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		l.awaitOther(asking, leader)
	})
	result, index, err := l.forward(asking, leader.Address, data)
	cancel()
	wg.Wait()
	if err != nil {
		return o, fmt.Errorf("ask leader %s: %w", leader.ID, err)
	}
	if o, err = decodeOutcome(result); err != nil {
		return o, err
	}
	return o, l.fsm.await(ctx, index)
}

// awaitOther waits until a node is not known as the leader any more.
func (l *raftLog) awaitOther(ctx context.Context, leader raftgroup.Leader) {
	for {
		moved := l.gate.moved.next()
		if l.group.Leader() != leader {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// HandleForward proposes an entry that another node's ForwardFunc sent here, and
// returns what it came to and its place in the log. It does not forward once more:
// the error is ErrNotLeader or ErrUnavailable when nothing was proposed.
func (s *Store) HandleForward(ctx context.Context, entry []byte) (result []byte, index uint64, err error) {
	// An entry that nobody can read would stop all replicas.
	h, _, err := decodeEntry(entry)
	if err != nil {
		return nil, 0, fmt.Errorf("forwarded change: %w", err)
	}
	if h.request == "" {
		return nil, 0, errors.New("forwarded change: it names no request")
	}
	l := s.replica.raftLog
	if err := l.awaitOpen(ctx); err != nil {
		return nil, 0, err
	}
	o, index, err := l.propose(ctx, entry)
	if err != nil {
		return nil, 0, fmt.Errorf("forwarded change: %w", err)
	}
	result, err = encodeOutcome(o)
	return result, index, err
}

// awaitOpen waits while this node leads but is not ready to.
func (l *raftLog) awaitOpen(ctx context.Context) error {
	for {
		moved := l.gate.moved.next()
		if l.gate.open() {
			return nil
		}
		if !l.group.IsLeader() {
			return ErrNotLeader
		}
		select {
		case <-moved:
		case <-time.After(lookAgain): // losing leadership again does not open the gate
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
	}
}
