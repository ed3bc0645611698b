package raftgroup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/failpoint"
	"platform/internal/raftgroup/peers"
	"platform/internal/raftgroup/wire"
	"platform/proto/node"
)

// confirmRetry is the delay before an unreachable voter is queried again.
const confirmRetry = 20 * time.Millisecond

// ConfirmLeadership returns nil once it is certain that this replica led in term at some
// moment after the call started. A linearizable read first reads the state, then confirms
// the term in which this replica got its leadership, and then responds. It returns
// ErrNotLeader if the replica has lost that leadership.
//
// Only voters of the current configuration count, and only their responses to requests that
// were sent after the call started. raft.VerifyLeader guarantees neither.
func (g *Group) ConfirmLeadership(ctx context.Context, term uint64) error {
	r, err := g.reads.join(term)
	if err != nil || r == nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leads reports whether r led in term at some moment during the call.
func leads(r *raft.Raft, term uint64) bool {
	// The state changes to follower before the term grows, and to leader after it has
	// grown, so both are consistent if the term stays the same.
	return r.CurrentTerm() == term && r.State() == raft.Leader && r.CurrentTerm() == term
}

// confirmer confirms with the voters that this replica still leads, once for all waiting reads.
// Reads that arrive during a round share the next one. There is at most one pending request
// per voter, so that an unresponsive voter costs nothing.
type confirmer struct {
	g *Group

	// mu covers the fields below.
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // requests in flight; started only while closed is false
	number uint64         // of the latest round
	round  *confirmRound  // in progress, nil if none
	next   *confirmRound  // collects reads until round ends
	voters map[raft.ServerID]*confirmVoter
}

// confirmRound is a round that several reads wait for.
type confirmRound struct {
	term uint64
	done chan struct{} // closed when err is final
	err  error
}

// confirmVoter is what is known about one voter.
type confirmVoter struct {
	querying bool
	term     uint64 // its term ...
	round    uint64 // ... some time after this round started
}

func newConfirmer(g *Group) *confirmer {
	return &confirmer{g: g, voters: make(map[raft.ServerID]*confirmVoter)}
}

// join returns the round to wait for, nil if term is already confirmed.
func (c *confirmer) join(term uint64) (*confirmRound, error) {
	inst := c.g.current()
	if !leads(inst.raft, term) {
		return nil, ErrNotLeader
	}
	if soleVoter(inst.raft.GetConfiguration().Configuration(), c.g.cfg.LocalID) {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrStopped
	}
	if failpoint.Active(failpoint.EarlierResponses) && c.round != nil && c.round.term == term {
		return c.round, nil
	}
	if c.next == nil {
		c.next = &confirmRound{term: term, done: make(chan struct{})}
	}
	r := c.next
	if r.term != term { // one of the two leaderships is over
		if r.term > term {
			return nil, ErrNotLeader
		}
		c.endLocked(r, ErrNotLeader)
		r = &confirmRound{term: term, done: make(chan struct{})}
		c.next = r
	}
	if c.round == nil {
		c.beginLocked()
	}
	return r, nil
}

// beginLocked starts the round that has collected reads.
func (c *confirmer) beginLocked() {
	c.round, c.next = c.next, nil
	if c.round == nil {
		return
	}
	c.number++
	c.advanceLocked()
}

// advanceLocked ends the round if its outcome is known, and queries the voters otherwise.
func (c *confirmer) advanceLocked() {
	for c.round != nil {
		over, err := c.outcomeLocked()
		if !over {
			return
		}
		c.endLocked(c.round, err)
		c.round, c.next = c.next, nil
		if c.round != nil {
			c.number++
		}
	}
}

// outcomeLocked counts the responses of the voters in this round, and queries those that
// have not responded.
func (c *confirmer) outcomeLocked() (over bool, err error) {
	r, term := c.g.port.outgoing.Load().raft.Load(), c.round.term
	if r == nil || !leads(r, term) { // after the round started: the own vote
		return true, ErrNotLeader
	}
	voters, confirmed := 0, 0
	for _, s := range r.GetConfiguration().Configuration().Servers {
		switch {
		case s.Suffrage == raft.Voter:
			voters++
		case !failpoint.Active(failpoint.NonvoterResponses):
			continue
		}
		if s.ID == c.g.cfg.LocalID {
			confirmed++
			continue
		}
		v := c.voters[s.ID]
		if v == nil {
			v = new(confirmVoter)
			c.voters[s.ID] = v
		}
		switch {
		case v.round == c.number && v.term == term:
			confirmed++
		case v.round == c.number && v.term > term:
			return true, fmt.Errorf("%w: %s is in term %d", ErrNotLeader, s.ID, v.term)
		case !v.querying:
			c.queryLocked(v, s, term)
		}
	}
	return confirmed > voters/2, nil
}

func (c *confirmer) endLocked(r *confirmRound, err error) {
	r.err = err
	close(r.done)
}

// queryLocked queries a voter for its term. The current round started before the request is
// sent.
func (c *confirmer) queryLocked(v *confirmVoter, s raft.Server, term uint64) {
	if c.closed {
		return
	}
	v.querying = true
	round := c.number
	c.calls.Go(func() {
		is, err := c.g.port.termOf(s, term)
		if err != nil {
			c.g.port.pause(confirmRetry)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		v.querying = false
		if err == nil {
			v.term, v.round = is, round
		}
		c.advanceLocked()
	})
}

// lost ends the rounds of a leadership that is over.
func (c *confirmer) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked()
}

// close ends all rounds and prevents new ones. wait then waits for the pending requests,
// which end when the port closes.
func (c *confirmer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, r := range []*confirmRound{c.round, c.next} {
		if r != nil {
			c.endLocked(r, ErrStopped)
		}
	}
	c.round, c.next = nil, nil
}

func (c *confirmer) wait() { c.calls.Wait() }

// HoldsLease reports whether a majority of the voters was in term within the election
// timeout before the call, so that no other leader has acknowledged anything earlier than
// that. The state applied by this replica is then at most that old. It sends no request.
func (g *Group) HoldsLease(term uint64) bool {
	r := g.current().raft
	if !leads(r, term) {
		return false
	}
	voters, confirmed := 0, 0
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == g.cfg.LocalID || g.port.followers.confirmedWithin(s.ID, term, g.cfg.Profile.ElectionTimeout) {
			confirmed++
		}
	}
	return confirmed > voters/2
}

// termOf queries a voter for its term. The request is also a heartbeat of term: a version
// without Frame.Confirm passes it to Raft, whose response says the same.
func (p *port) termOf(s raft.Server, term uint64) (uint64, error) {
	if !p.outgoing.Load().leads(term) {
		return 0, errDeposed
	}
	sent := p.followers.elapsed()
	f, err := p.call(p.target(s.ID, s.Address), peers.Control, p.election, &node.RaftFrame{
		Confirm: true, AppendRequest: &node.AppendEntriesRequest{Header: wire.EncodeHeader(p.header()), Term: term},
	})
	if err != nil {
		return 0, err
	}
	if f.AppendResponse == nil {
		return 0, errWrongResponse
	}
	if f.AppendResponse.Term == term {
		p.followers.note(s.ID, term, 0, sent)
	}
	return f.AppendResponse.Term, nil
}

// confirm responds to termOf from memory: Raft grants a vote and accepts entries only after
// it has stored and then published the term. It returns nil if the request has to be passed
// to Raft.
func (p *port) confirm(f *node.RaftFrame) *node.AppendEntriesResponse {
	out := p.outgoing.Load()
	r := out.raft.Load()
	if r == nil || p.checkTarget(f.Target) != nil {
		return nil
	}
	term := r.CurrentTerm()
	// A later instance may be ahead of r, and r learns of a newer term only by a heartbeat.
	if p.outgoing.Load() != out || f.AppendRequest.GetTerm() > term {
		return nil
	}
	return &node.AppendEntriesResponse{Header: wire.EncodeHeader(p.header()), Term: term}
}
