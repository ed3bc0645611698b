package raftgroup

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// preVoteWindow is the time within which a majority must grant its pre-votes: a voter that granted one earlier may have
// voted for another candidate since.
const preVoteWindow = 250 * time.Millisecond

// attempt collects the pre-votes of one attempt to be elected, which Raft requests concurrently. The pre-votes are
// released to Raft, which then starts an election, only once a majority has granted them and this replica yields to no
// other candidate.
type attempt struct {
	args   *raft.RequestPreVoteRequest // the same pointer for all voters
	quorum int                         // pre-votes, including the own one
	claims *electionClaims
	step   time.Duration   // see Profile.FailoverStep
	yield  time.Duration   // how long this replica yields to other candidates
	ctx    context.Context //nolint:containedctx // shared by the requests; ends once the pre-votes are released
	end    context.CancelFunc

	mu       sync.Mutex // covers the fields below
	granted  map[raft.ServerID]time.Time
	majority time.Time // since when a majority has granted its pre-votes; zero if it has not
	done     bool      // the pre-votes in granted are released
}

func newAttempt(ctx context.Context, args *raft.RequestPreVoteRequest, quorum int, c *electionClaims, p *Profile) *attempt {
	a := &attempt{args: args, quorum: quorum, claims: c, step: p.FailoverStep, granted: make(map[raft.ServerID]time.Time)}
	a.yield = min(2*a.step, p.ElectionTimeout/2) // Raft's attempt lasts for ElectionTimeout at least
	a.ctx, a.end = context.WithTimeout(ctx, 2*p.ElectionTimeout)
	return a
}

// note records the response of a voter.
func (a *attempt) note(id raft.ServerID, granted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return
	}
	now := time.Now()
	delete(a.granted, id)
	if granted {
		maps.DeleteFunc(a.granted, func(_ raft.ServerID, at time.Time) bool { return now.Sub(at) > preVoteWindow })
		a.granted[id] = now
	}
	if 1+len(a.granted) < a.quorum {
		a.majority = time.Time{}
		return
	}
	a.majority = cmp.Or(a.majority, now)
	if granted && a.claims.claimGranted(now.Sub(a.majority) > a.yield, a.step) {
		a.done = true
		a.end()
	}
}

// released reports whether Raft may count the pre-vote of a voter.
func (a *attempt) released(id raft.ServerID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.done && !a.granted[id].IsZero()
}

// attempts holds the newest attempt of a replica to be elected.
type attempts struct {
	mu     sync.Mutex // covers newest
	newest *attempt
}

// join returns the attempt that args belong to, which begin creates; it ends the previous one.
func (s *attempts) join(args *raft.RequestPreVoteRequest, begin func() *attempt) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil || s.newest.args != args {
		if s.newest != nil {
			s.newest.end()
		}
		s.newest = begin()
	}
	return s.newest
}
