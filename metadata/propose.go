package metadata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
)

var (
	// ErrUnavailable says that a change was not made because no node leads the
	// metadata, or not yet. Asking again is safe.
	ErrUnavailable = errors.New("metadata has no leader at the moment")

	// ErrUnknownOutcome says that a change was on its way when it failed: it may or
	// may not have been made. Asking again is safe.
	ErrUnknownOutcome = errors.New("outcome of the change is unknown")

	// ErrNotLeader says that a forwarded entry was not proposed because this node
	// does not lead.
	ErrNotLeader = errors.New("this node does not lead the metadata")
)

const (
	// proposeTimeout bounds how long a change waits for a leader and for the log.
	proposeTimeout = 30 * time.Second
	// attemptTimeout bounds one attempt at one leader. It is longer than a slow disk
	// holds a leader up; a leader that is gone is noticed by other means.
	attemptTimeout = 10 * time.Second
	// proposeAgain is the pause after the leader refused to propose, which it does
	// while it hands over, and how often a leader is looked for in any case.
	proposeAgain = 20 * time.Millisecond
	lookAgain    = 250 * time.Millisecond
)

// raftLog proposes on the node that leads, which may be another one.
type raftLog struct {
	group   *raftgroup.Group
	gate    *gate
	fsm     *fsm
	local   raft.ServerID
	forward ForwardFunc // may be nil

	committed chan struct{} // there is something to announce
}

var _ groupLog = (*raftLog)(nil)

// Propose asks the leader, and the next one when that fails, until the entry has an
// outcome and was applied here. Repeating is safe since entries name their request.
func (l *raftLog) Propose(ctx context.Context, data []byte) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	reason := ErrUnavailable // stays if no attempt can have had an effect
	for {
		moved := l.gate.moved.next() // before looking, so that nothing is missed
		o, wait, err := l.attempt(ctx, data)
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNotLeader) {
			reason = ErrUnknownOutcome
		}
		if ctx.Err() == nil && wait > 0 {
			select {
			case <-moved:
			case <-time.After(wait):
			case <-l.group.Done():
				wait = 0
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil || wait == 0 {
			return outcome{}, fmt.Errorf("%w: %w", reason, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// attempt asks the leader once. wait is how long to wait before the next time, unless
// something changes; 0 means that asking again is of no use.
func (l *raftLog) attempt(ctx context.Context, data []byte) (o outcome, wait time.Duration, err error) {
	if l.gate.open() {
		o, _, err := l.propose(ctx, data)
		if errors.Is(err, raftgroup.ErrStopped) || errors.Is(err, raftgroup.ErrOverloaded) {
			return o, 0, err
		}
		return o, proposeAgain, err
	}
	leader := l.group.Leader()
	if leader.ID == "" || leader.ID == l.local || l.forward == nil {
		return o, lookAgain, ErrUnavailable
	}
	o, err = l.ask(ctx, leader, data)
	return o, proposeAgain, err
}

// propose puts an entry into the log of this node, which leads.
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

// announce lets followers know at once that an entry is committed. They learn it from
// the next message, which without this comes with the next heartbeat of an idle group:
// half a second in which a service that was just registered is unknown elsewhere, and
// a change that was forwarded is not answered.
func (l *raftLog) announce(ctx context.Context) {
	for {
		select {
		case <-l.committed:
		case <-ctx.Done():
			return
		}
		if len(l.group.Servers()) > 1 {
			limited, cancel := context.WithTimeout(ctx, attemptTimeout)
			_ = l.group.Barrier(limited) // the message is what matters
			cancel()
		}
	}
}
