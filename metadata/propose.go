package metadata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/limits"
	"platform/internal/raftgroup"
)

var (
	// ErrUnavailable means that a change was not made because no node leads the metadata, or
	// is not ready. A retry is safe.
	ErrUnavailable = errors.New("metadata has no leader at the moment")

	// ErrUnknownOutcome means that a change failed after it was sent: it may or may not have
	// been made. A retry is safe.
	ErrUnknownOutcome = errors.New("outcome of the change is unknown")

	// ErrNotLeader means that a forwarded entry was not proposed because this node does not
	// lead.
	ErrNotLeader = errors.New("this node does not lead the metadata")
)

const (
	// proposeTimeout bounds how long a change waits for a leader and for the log.
	proposeTimeout = 30 * time.Second
	// attemptTimeout bounds one attempt at one leader. It is longer than a slow disk delays
	// a leader; a failed leader is detected otherwise.
	attemptTimeout = 10 * time.Second
	// proposeRetryDelay is the delay after the leader did not propose, for instance
	// during a leadership transfer; leaderPollInterval is how often the leader is looked up
	// in any case.
	proposeRetryDelay  = 20 * time.Millisecond
	leaderPollInterval = 250 * time.Millisecond
)

// raftLog proposes on the leader, which may be another node.
type raftLog struct {
	group   *raftgroup.Group
	gate    *gate
	fsm     *fsm
	local   raft.ServerID
	forward ForwardFunc // may be nil

	committed chan struct{} // signals that a commit is to be notified
}

var _ groupLog = (*raftLog)(nil)

// Propose proposes to the leader, and to the next one if that fails, until the entry has an
// outcome and has been applied here. Retries are safe since entries carry a request ID.
func (l *raftLog) Propose(ctx context.Context, data []byte) (outcome, error) {
	if len(data) > limits.Entry {
		return outcome{}, fmt.Errorf("%w: the change has %d bytes, the limit is %d", raftgroup.ErrTooLarge, len(data), limits.Entry)
	}
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	reason := ErrUnavailable // remains if no attempt can have had an effect
	for {
		changed := l.gate.changed.Next() // before checking, so that no change is missed
		o, wait, err := l.attempt(ctx, data)
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNotLeader) {
			reason = ErrUnknownOutcome
		}
		if ctx.Err() == nil && wait > 0 {
			select {
			case <-changed:
			case <-time.After(wait):
			case <-l.group.Done():
				wait = 0
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil || wait == 0 {
			if errors.Is(reason, ErrUnknownOutcome) { // even if the last attempt had no effect
				err = errors.New(err.Error())
			}
			return outcome{}, fmt.Errorf("%w: %w", reason, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// attempt proposes to the leader once. wait is the delay before the next attempt, unless
// something changes; 0 means that a retry is pointless.
func (l *raftLog) attempt(ctx context.Context, data []byte) (o outcome, wait time.Duration, err error) {
	if l.gate.open() {
		o, _, err := l.propose(ctx, data)
		if errors.Is(err, raftgroup.ErrStopped) || errors.Is(err, raftgroup.ErrOverloaded) {
			return o, 0, err
		}
		return o, proposeRetryDelay, err
	}
	leader := l.group.Leader()
	if leader.ID == "" || leader.ID == l.local || l.forward == nil {
		return o, leaderPollInterval, ErrUnavailable
	}
	o, err = l.forwardTo(ctx, leader, data)
	return o, proposeRetryDelay, err
}

// propose appends an entry to the log of this node, which leads.
func (l *raftLog) propose(ctx context.Context, data []byte) (o outcome, index uint64, err error) {
	future := l.group.Propose(data)
	applied, err := future.Wait(ctx)
	if err != nil {
		if raftgroup.Definite(err) {
			return o, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return o, 0, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	o, ok := applied.(outcome)
	if !ok {
		return o, 0, fmt.Errorf("%w: unexpected result %T", ErrUnknownOutcome, applied)
	}
	select {
	case l.committed <- struct{}{}:
	default:
	}
	return o, future.Index(), nil
}

// notifyCommits immediately tells followers that an entry is committed. They learn it from
// the next message, which otherwise comes with the next heartbeat of an idle group: for
// half a second a newly registered service would be unknown elsewhere, and a forwarded
// change would not return.
func (l *raftLog) notifyCommits(ctx context.Context) {
	for {
		select {
		case <-l.committed:
		case <-ctx.Done():
			return
		}
		if len(l.group.Servers()) > 1 {
			limited, cancel := context.WithTimeout(ctx, attemptTimeout)
			_ = l.group.Barrier(limited) // only the message matters
			cancel()
		}
	}
}
