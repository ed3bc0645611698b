package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"platform/internal/raftgroup"
	"platform/partition"
)

const (
	// The backoff between two rounds doubles from minBackoff to maxBackoff, or to
	// maxWatchedBackoff if there is a local replica, which ends the wait when it learns of a
	// leader. It is randomized by up to one half.
	minBackoff        = 2 * time.Millisecond
	maxBackoff        = 100 * time.Millisecond
	maxWatchedBackoff = 400 * time.Millisecond
	// maxRequestsPerRound bounds the nodes tried in one round, since hints may be circular.
	maxRequestsPerRound = 16
)

// onLeader sends a request to the leader. It tries one replica after another until one
// does not reject the request.
func onLeader[T any](ctx context.Context, h *Handle, request func(Replica) (T, error)) (T, error) {
	return onLeaderWithin(ctx, h, h.d.cfg.LookupTimeout, request)
}

// lookupDeadline is the key of the deadline in a context.
type lookupDeadline struct{}

// WithLookupDeadline returns a context for retries of a request: their lookups of the
// leader end at deadline, so that all attempts together have one budget. A lookup whose
// request a leader accepts starts a new one.
func WithLookupDeadline(ctx context.Context, deadline time.Time) context.Context {
	return context.WithValue(ctx, lookupDeadline{}, deadline)
}

// lookupTimeoutError is the error of a lookup that found no leader in time.
type lookupTimeoutError struct{ error }

func (e lookupTimeoutError) Unwrap() error { return e.error }

// TimedOut reports whether err means that no leader was found in time, so that the
// request's budget is used up.
func TimedOut(err error) bool {
	_, timedOut := errors.AsType[lookupTimeoutError](err)
	return timedOut
}

func onLeaderWithin[T any](ctx context.Context, h *Handle, timeout time.Duration, request func(Replica) (T, error)) (v T, err error) {
	l := newLookup(ctx, h, timeout)
	for {
		r, address := l.next()
		if r == nil {
			if err := l.unserved(ctx, false); err != nil {
				return v, err
			}
			if !l.waitForNextRound(ctx) {
				h.d.counters.noLeader.Add(1)
				return v, cmp.Or(l.unserved(ctx, true), l.finalError(ctx))
			}
			h.d.counters.rounds.Add(1)
			continue
		}
		if address == "" {
			h.d.counters.local.Add(1)
		} else {
			h.d.counters.remote.Add(1)
		}
		begin := time.Now()
		v, err = request(r)
		if address == "" {
			err = markAccepted(err, time.Since(begin), acceptedAfter)
		}
		l.observe(address, err)
		if err == nil || !canRetryElsewhere(err) {
			if l.interrupted && errors.Is(err, partition.ErrNotFound) {
				err = interruptedError{err}
			}
			return v, err
		}
		l.interrupted = l.interrupted || l.relaying || WasInterrupted(err)
	}
}

// unserved returns why the partition cannot have a leader, or nil if it may have one.
func (l *lookup) unserved(ctx context.Context, last bool) error {
	if l.h.d.cfg.Unserved != nil && ctx.Err() == nil {
		return l.h.d.cfg.Unserved(l.h.id, last)
	}
	return nil
}

// lookup finds the leader of a partition. Each round tries each replica once: the one on
// this node if it leads, then the leader hinted by the last rejection, the local replica's
// view, the cached leader, and the rest of the partition table. Unresponsive nodes are
// tried last. While the local replica has been elected but is not ready, no other node is
// tried. If a node names a leader that this one cannot reach, it is asked to relay the request.
type lookup struct {
	h           *Handle
	local       Local
	changed     <-chan struct{} // closed when the local replica's view has changed since the round began
	localTried  bool            // in this round
	tried       []string
	hint        string
	backoff     time.Duration
	deadline    time.Time
	accepted    bool  // by one of the replicas
	interrupted bool  // one of the replicas did not respond
	lastErr     error // the last rejection

	unreachable []string // nodes that could not be reached in this round
	referrer    string   // the last node that rejected the request and named a leader
	referred    string   // that leader
	relayed     bool     // in this round
	relaying    bool     // the current request is one to be relayed

	timeout time.Duration
}

func newLookup(ctx context.Context, h *Handle, timeout time.Duration) *lookup {
	l := &lookup{h: h, backoff: minBackoff, timeout: timeout}
	var shared bool
	if l.deadline, shared = ctx.Value(lookupDeadline{}).(time.Time); !shared {
		l.deadline = time.Now().Add(timeout)
	}
	l.beginRound()
	return l
}

// beginRound starts a round.
func (l *lookup) beginRound() {
	l.local, l.changed = l.h.d.cfg.Local(l.h.id), nil
	if l.local != nil {
		l.changed = l.local.Changed() // before checking, so that no change is missed
	}
	l.localTried, l.tried = false, l.tried[:0]
	l.unreachable, l.referrer, l.referred, l.relayed = l.unreachable[:0], "", "", false
}

// next returns the replica to try next, and its address if it is on another node; nil when
// the round is over.
func (l *lookup) next() (Replica, string) {
	if l.local != nil && !l.localTried && l.local.Leading() {
		l.localTried = true
		return l.local, ""
	}
	if l.h.d.cfg.Remote == nil {
		return nil, ""
	}
	if l.relaying = l.mustRelay(); l.relaying {
		l.relayed = true
		l.h.d.counters.relayed.Add(1)
		return l.relay(), l.referrer
	}
	unresponsive := ""
	for a := range l.candidates {
		switch {
		case !l.untried(a):
		case !l.h.d.cfg.Unresponsive(a):
			return l.remote(a)
		case unresponsive == "":
			unresponsive = a
		}
	}
	if unresponsive != "" {
		return l.remote(unresponsive)
	}
	return nil, ""
}

// mustRelay reports whether a node has named a leader that this node cannot reach.
func (l *lookup) mustRelay() bool {
	return l.referred != "" && !l.relayed && (slices.Contains(l.unreachable, l.referred) || l.h.d.cfg.Unresponsive(l.referred))
}

// relay returns the leader through the node that has named it. Meanwhile this node connects
// to the leader, if it can.
func (l *lookup) relay() Replica {
	r := l.h.d.cfg.Remote(l.referrer, l.h.id)
	if remote, ok := r.(*Remote); ok {
		remote.c.connect(l.referred)
		remote.relaying().doubt().withMoment(&l.h.moment).withLeaderWatch(leaderWatch{local: l.local, address: l.referred, addressOf: l.h.d.cfg.AddressOf})
	}
	return r
}

// candidates yields the addresses of replicas, the most likely leader first. It may yield
// an address more than once.
func (l *lookup) candidates(yield func(string) bool) {
	leader := ""
	if l.local != nil {
		if r := l.local.Leader(); r.Address != "" {
			leader = l.h.d.cfg.AddressOf(r)
		}
	}
	if leader != "" && leader == l.h.d.cfg.Self {
		return // the local replica is elected; l.changed signals when it is ready
	}
	if !yield(l.hint) || !yield(leader) {
		return
	}
	if a := l.h.leader.Load(); a != nil && !yield(*a) {
		return
	}
	if l.h.d.cfg.Replicas == nil {
		return
	}
	for _, a := range l.h.d.cfg.Replicas(l.h.id) {
		if !yield(a) {
			return
		}
	}
}

func (l *lookup) untried(address string) bool {
	return address != "" && address != l.h.d.cfg.Self && len(l.tried) < maxRequestsPerRound && !slices.Contains(l.tried, address)
}

func (l *lookup) remote(address string) (Replica, string) {
	l.tried = append(l.tried, address)
	r := l.h.d.cfg.Remote(address, l.h.id)
	if remote, ok := r.(*Remote); ok {
		remote.withMoment(&l.h.moment).withLeaderWatch(leaderWatch{local: l.local, address: address, addressOf: l.h.d.cfg.AddressOf})
		if l.lastErr != nil {
			remote.doubt()
		}
	}
	return r, address
}

// observe updates the lookup with the outcome of a request.
func (l *lookup) observe(address string, err error) {
	if address != "" && !l.relaying {
		switch {
		case err == nil:
			l.h.cacheLeader(address)
		case canRetryElsewhere(err), errors.Is(err, raftgroup.ErrUnknownOutcome):
			l.h.evictLeader(address)
		}
	}
	if err == nil {
		return
	}
	if WasAccepted(err) { // the partition had a leader until now: restart the timeout
		l.accepted, l.deadline, l.backoff = true, time.Now().Add(l.timeout), minBackoff
	}
	l.lastErr, l.hint = err, ""
	if errors.Is(err, ErrUnreachable) && !l.relaying {
		l.unreachable = append(l.unreachable, address)
	}
	if rejection, ok := errors.AsType[*NotLeaderError](err); ok && rejection.Leader.Address != "" {
		l.hint = l.h.d.cfg.AddressOf(rejection.Leader)
		l.referrer, l.referred = address, l.hint
	}
}

// waitForNextRound waits for the backoff and begins a round. It returns false if the
// lookup has timed out or ctx has ended.
func (l *lookup) waitForNextRound(ctx context.Context) bool {
	left := time.Until(l.deadline)
	if left <= 0 || ctx.Err() != nil {
		return false
	}
	t := time.NewTimer(min(l.backoff-rand.N(l.backoff/2), left))
	defer t.Stop()
	longest := maxBackoff
	if l.changed != nil {
		longest = maxWatchedBackoff
	}
	select {
	case <-l.changed:
	case <-t.C:
		l.backoff = min(2*l.backoff, longest)
	case <-ctx.Done():
		return false
	}
	l.beginRound()
	return true
}

// finalError returns the error of a failed lookup: the last rejection, or that no leader
// is known. It is definite.
func (l *lookup) finalError(ctx context.Context) error {
	err := l.lastErr
	if err == nil {
		err = &NotLeaderError{Partition: l.h.id}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	} else {
		err = lookupTimeoutError{err}
	}
	if l.accepted && !WasAccepted(err) {
		err = acceptedError{err}
	}
	return err
}
