package fabric

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"platform/internal/raftgroup"
)

const (
	// The wait between two rounds of asking all replicas doubles from firstWait to
	// lastWait, or to lastWatchedWait where it ends early because the local replica learns
	// of a leader. Up to half of it is left out at random.
	firstWait       = 2 * time.Millisecond
	lastWait        = 100 * time.Millisecond
	lastWatchedWait = 400 * time.Millisecond
	// roundLimit bounds whom one round asks, since hints may go in circles.
	roundLimit = 16
)

// seek asks one replica after the other until one does not refuse.
func seek[T any](ctx context.Context, h *Handle, ask func(Replica) (T, error)) (T, error) {
	return seekFor(ctx, h, h.d.cfg.Patience, ask)
}

// seekToRead is seek with the patience of those who read.
func seekToRead[T any](ctx context.Context, h *Handle, ask func(Replica) (T, error)) (T, error) {
	return seekFor(ctx, h, h.d.cfg.ReadPatience, ask)
}

func seekFor[T any](ctx context.Context, h *Handle, patience time.Duration, ask func(Replica) (T, error)) (v T, err error) {
	s := newSearch(h, patience)
	for {
		r, address := s.next()
		if r == nil {
			if !s.pause(ctx) {
				h.d.counters.noLeader.Add(1)
				return v, s.failure(ctx)
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
		v, err = ask(r)
		if address == "" {
			err = markHeld(err, time.Since(begin), heldTime)
		}
		s.note(address, err)
		if err == nil || !elsewhere(err) {
			return v, err
		}
	}
}

// search looks for the leader of a partition. In a round it asks each replica once:
// the one on this node if it leads, whom a refusal named, whom the local replica
// takes for the leader, who led last, and all others of the table. Nodes that are
// silent come last. While the local replica has been elected and is not ready, no other
// one is asked.
type search struct {
	h       *Handle
	local   Local
	changed <-chan struct{} // of the local replica, since the round began
	self    bool            // the local replica was asked
	asked   []string
	hint    string
	wait    time.Duration
	until   time.Time
	held    bool  // by one of the replicas that were asked
	last    error // of the latest refusal

	patience time.Duration
}

func newSearch(h *Handle, patience time.Duration) *search {
	s := &search{h: h, wait: firstWait, until: time.Now().Add(patience), patience: patience}
	s.begin()
	return s
}

// begin starts a round.
func (s *search) begin() {
	s.local, s.changed = s.h.d.cfg.Local(s.h.id), nil
	if s.local != nil {
		s.changed = s.local.Changed() // before looking who leads
	}
	s.self, s.asked = false, s.asked[:0]
}

// next returns whom to ask next, and its address if it is not on this node; nil when
// the round is over.
func (s *search) next() (Replica, string) {
	if s.local != nil && !s.self && s.local.Leading() {
		s.self = true
		return s.local, ""
	}
	if s.h.d.cfg.Remote == nil {
		return nil, ""
	}
	silent := ""
	for a := range s.candidates {
		switch {
		case !s.untried(a):
		case !s.h.d.cfg.Silent(a):
			return s.remote(a)
		case silent == "":
			silent = a
		}
	}
	if silent != "" {
		return s.remote(silent)
	}
	return nil, ""
}

// candidates are the addresses of replicas, the most likely leader first, some of them
// more than once.
func (s *search) candidates(yield func(string) bool) {
	known := ""
	if s.local != nil {
		if l := s.local.Leader(); l.Address != "" {
			known = s.h.d.cfg.AddressOf(l)
		}
	}
	if known != "" && known == s.h.d.cfg.Self {
		return // elected, and told when it is ready
	}
	if !yield(s.hint) || !yield(known) {
		return
	}
	if a := s.h.leader.Load(); a != nil && !yield(*a) {
		return
	}
	if s.h.d.cfg.Replicas == nil {
		return
	}
	for _, a := range s.h.d.cfg.Replicas(s.h.id) {
		if !yield(a) {
			return
		}
	}
}

func (s *search) untried(address string) bool {
	return address != "" && address != s.h.d.cfg.Self && len(s.asked) < roundLimit && !slices.Contains(s.asked, address)
}

func (s *search) remote(address string) (Replica, string) {
	s.asked = append(s.asked, address)
	r := s.h.d.cfg.Remote(address, s.h.id)
	if remote, ok := r.(*Remote); ok {
		remote.watched(watch{local: s.local, address: address, at: s.h.d.cfg.AddressOf})
	}
	return r, address
}

// note learns from what became of a request.
func (s *search) note(address string, err error) {
	if address != "" {
		switch {
		case err == nil:
			s.h.remember(address)
		case elsewhere(err), errors.Is(err, raftgroup.ErrUnknownOutcome):
			s.h.doubt(address)
		}
	}
	if err == nil {
		return
	}
	if WasHeld(err) { // the partition had a leader until now
		s.held, s.until, s.wait = true, time.Now().Add(s.patience), firstWait
	}
	s.last, s.hint = err, ""
	if refusal, ok := errors.AsType[*NotLeaderError](err); ok && refusal.Leader.Address != "" {
		s.hint = s.h.d.cfg.AddressOf(refusal.Leader)
	}
}

// pause waits before the next round; false if there is none.
func (s *search) pause(ctx context.Context) bool {
	left := time.Until(s.until)
	if left <= 0 || ctx.Err() != nil {
		return false
	}
	t := time.NewTimer(min(s.wait-rand.N(s.wait/2), left))
	defer t.Stop()
	longest := lastWait
	if s.changed != nil {
		longest = lastWatchedWait
	}
	select {
	case <-s.changed:
	case <-t.C:
		s.wait = min(2*s.wait, longest)
	case <-ctx.Done():
		return false
	}
	s.begin()
	return true
}

// failure is why the search was given up: the latest refusal, or that there was nobody
// to ask. It is definite.
func (s *search) failure(ctx context.Context) error {
	err := s.last
	if err == nil {
		err = &NotLeaderError{Partition: s.h.id}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	if s.held && !WasHeld(err) {
		err = heldError{err}
	}
	return err
}
