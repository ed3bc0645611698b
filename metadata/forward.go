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

// ForwardFunc sends an entry to HandleForward on the node at leader and returns its
// response. An error that wraps ErrNotLeader or ErrUnavailable means that the entry was not
// proposed; after any other error the outcome is unknown.
type ForwardFunc func(ctx context.Context, leader raft.ServerAddress, entry []byte) (result []byte, index uint64, err error)

// forwardTo forwards an entry to the leader, until another leader is known, and waits until
// the entry has been applied here.
func (l *raftLog) forwardTo(ctx context.Context, leader raftgroup.Leader, data []byte) (o outcome, err error) {
	attemptCtx, cancel := context.WithTimeout(ctx, attemptTimeout)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		l.awaitLeaderChange(attemptCtx, leader)
	})
	result, index, err := l.forward(attemptCtx, leader.Address, data)
	cancel()
	wg.Wait()
	if err != nil {
		return o, fmt.Errorf("forward to leader %s: %w", leader.ID, err)
	}
	if o, err = decodeOutcome(result); err != nil {
		return o, err
	}
	return o, l.fsm.await(ctx, index)
}

// awaitLeaderChange waits until a node is no longer known as the leader.
func (l *raftLog) awaitLeaderChange(ctx context.Context, leader raftgroup.Leader) {
	for {
		changed := l.gate.changed.Next()
		if l.group.Leader() != leader {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// HandleForward proposes an entry that another node's ForwardFunc sent, and returns its
// outcome and log index. It does not forward again: the error is ErrNotLeader or
// ErrUnavailable if nothing was proposed.
func (s *Store) HandleForward(ctx context.Context, entry []byte) (result []byte, index uint64, err error) {
	// An entry that cannot be decoded would stop all replicas.
	h, _, err := decodeEntry(entry)
	if err != nil {
		return nil, 0, fmt.Errorf("forwarded change: %w", err)
	}
	if h.request == "" {
		return nil, 0, errors.New("forwarded change: no request ID")
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

// awaitOpen waits while this node leads but is not ready.
func (l *raftLog) awaitOpen(ctx context.Context) error {
	for {
		changed := l.gate.changed.Next()
		if l.gate.open() {
			return nil
		}
		if !l.group.IsLeader() {
			return ErrNotLeader
		}
		select {
		case <-changed:
		case <-time.After(leaderPollInterval): // losing leadership does not notify the gate
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
	}
}
