package raftgroup

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/peers"
	"platform/proto/node"
)

const (
	// silenceTick is the interval of the failure detector, and longestTick the most that it
	// counts per tick.
	silenceTick = 100 * time.Millisecond
	longestTick = 2 * silenceTick
	// silenceTimeout is how long another replica may take to report whether it hears from the
	// leader, silenceRetry the delay before it is queried again.
	silenceTimeout = 250 * time.Millisecond
	silenceRetry   = 50 * time.Millisecond
	// A process that was paused for longestPause may have old messages in its buffers,
	// which it reads within resumeTime.
	longestPause = time.Second
	resumeTime   = 2 * time.Second
)

// silence measures for how long a replica has not heard from its leader: the time in which
// this process ran since the last append arrived at the node, whether or not its Raft
// instance has processed it. It also knows whether this replica was the leader.
type silence struct {
	mu      sync.Mutex // covers the fields below
	quiet   time.Duration
	term    uint64        // of the last leader that was heard
	longest time.Duration // longest recent gap between appends
	acting  bool          // the silence is being handled

	ledTerm       uint64    // the last one in which this replica led
	failedTerm    uint64    // the last one in which it could not write to its log
	requestedTerm uint64    // of the last request for a vote
	requestedAt   time.Time // when that arrived
}

// heard is called when an append of the leader of term, the newest one, arrived.
func (s *silence) heard(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// An unusual gap is remembered for some hundred appends. A gap between two leaders says
	// nothing about either.
	if term == s.term {
		s.longest = max(s.quiet, s.longest-s.longest/128)
	}
	s.quiet, s.term = 0, term
}

// lead is called while this replica leads in term.
func (s *silence) lead(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet, s.ledTerm = 0, term
}

// writeFailed is called when this replica could not write to its log in term.
func (s *silence) writeFailed(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedTerm = term
}

// voteRequested is called when a candidate's request for a vote in term arrives, before Raft gets it.
func (s *silence) voteRequested(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requestedTerm, s.requestedAt = term, time.Now()
}

// ledIn reports whether this replica led in term and was able to write to its log, and no other one has begun a newer term
// within d: Raft steps down before it has stored the newer term.
func (s *silence) ledIn(term uint64, d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	succeeded := s.term > term || s.requestedTerm > term && time.Since(s.requestedAt) < d
	return s.ledTerm == term && term > s.failedTerm && !succeeded
}

// tick adds time in which this process ran.
func (s *silence) tick(step time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet += step
}

// lasts reports whether the silence is longer than the profile allows: longer than a leader
// without contact continues, and than three times the longest recent gap.
func (s *silence) lasts(p *Profile) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.SilenceMargin > 0 && s.quiet >= max(p.LeaderLeaseTimeout+p.SilenceMargin, min(3*s.longest, p.HeartbeatTimeout))
}

// act reports whether the caller should handle the silence; it must then call done.
func (s *silence) act() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acting {
		return false
	}
	s.acting = true
	return true
}

// inTouch reports whether a leader was heard within d.
func (s *silence) inTouch(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quiet <= d
}

// done ends what began with act.
func (s *silence) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acting = false
}

// attached returns the replicas of this node.
func (t *Transport) attached() []*port {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.ports))
}

// watchSilence runs the failure detector of all groups until the transport is closed.
func (t *Transport) watchSilence() {
	tick := time.NewTicker(silenceTick)
	defer tick.Stop()
	for last := time.Now(); ; {
		t.run.note(last)
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
		}
		// More time has passed only if this process was paused or starved: then messages of
		// the leader may not have been read.
		now := time.Now()
		step := min(now.Sub(last), longestTick)
		last = now
		for _, p := range t.attached() {
			p.countSilence(step)
		}
	}
}

// running tracks whether the process was paused or starved recently.
type running struct {
	mu      sync.Mutex // covers the fields below
	seen    time.Time  // running
	resumed time.Time  // after the last pause
}

// note records that the process runs, at intervals of silenceTick.
func (r *running) note(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen.IsZero() && now.Sub(r.seen) > longestPause {
		r.resumed = now
	}
	r.seen = now
}

// steadily reports whether the process has been running without interruption recently.
func (r *running) steadily(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.IsZero() || now.Sub(r.seen) <= longestPause && now.Sub(r.resumed) > resumeTime
}

// countSilence adds time to a replica's silence, and starts to replace its leader if that
// has been silent for too long, or if this replica has stepped down.
func (p *port) countSilence(step time.Duration) {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return
	}
	term := r.CurrentTerm() // before the state: a later term would not be the one in which it leads
	p.claims.entered(term)
	if r.State() == raft.Leader {
		p.silence.lead(term)
		return
	}
	p.silence.tick(step)
	if r.State() != raft.Follower {
		return
	}
	addr, id := r.LeaderWithID()
	var replace func()
	switch {
	case id == "" && p.group.steppedDown(r, term):
		replace = func() { p.group.leadAgain(r, term) }
	case id == "" || id == p.group.cfg.LocalID || !p.silence.lasts(&p.group.cfg.Profile):
		return
	default:
		replace = func() { p.group.replaceSilent(r, Leader{ID: id, Address: addr}, term) }
	}
	if p.silence.act() {
		p.t.wg.Go(func() {
			defer p.silence.done()
			replace()
		})
	}
}

// steppedDown reports whether this replica has led in term, lost that without a successor, and may lead again.
func (g *Group) steppedDown(r *raft.Raft, term uint64) bool {
	if g.cfg.Profile.SilenceMargin == 0 || !g.port.silence.ledIn(term, g.cfg.Profile.ElectionTimeout) || g.ending() || g.storage.probe.Hangs() {
		return false
	}
	_, known := r.LeaderWithID()
	if known != "" || r.CurrentTerm() != term || r.State() != raft.Follower {
		return false
	}
	s, found := findServer(g.Servers(), g.cfg.LocalID)
	return found && s.Suffrage == raft.Voter
}

// leadAgain starts an election after this replica has lost its leadership because it had no contact to a majority, once it
// has. Its log has all entries of its term, so another replica would often not be elected, and would notice the silence
// only after the timeout.
func (g *Group) leadAgain(r *raft.Raft, term uint64) {
	ctx, cancel := context.WithTimeout(g.port.ctx, 2*g.cfg.Profile.ElectionTimeout)
	defer cancel()
	self := Leader{ID: g.cfg.LocalID}
	for ctx.Err() == nil && g.steppedDown(r, term) {
		if g.votersConfirmSilence(ctx, self, term) && g.steppedDown(r, term) && g.port.claims.claim(true, g.cfg.Profile.FailoverStep) {
			g.log.Warn("leadership was lost without a successor, starting an election", "raft_term", term)
			g.stand(r)
			return
		}
		g.port.pause(silenceRetry)
	}
}

// replaceSilent starts an election in place of a silent leader, once a majority of the
// voters, including this replica, no longer hears from it. That agreement replaces Raft's
// pre-vote, which would be granted only after the election timeout of each voter. Survivors
// start elections one after the other, as when a process has died.
func (g *Group) replaceSilent(r *raft.Raft, leader Leader, term uint64) {
	rank, ok := g.successionRank(leader.ID)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(g.port.ctx, 2*g.cfg.Profile.ElectionTimeout)
	defer cancel()
	g.port.clearVote()
	step := g.cfg.Profile.FailoverStep
	if !g.port.awaitTurn(ctx, time.Duration(rank)*step, 2*step) {
		return
	}
	for ctx.Err() == nil && g.isSilent(r, leader.ID, term) {
		if !g.port.claims.yields(rank == 0, step) && g.votersConfirmSilence(ctx, leader, term) &&
			g.isSilent(r, leader.ID, term) && g.port.claims.claim(rank == 0, step) {
			g.log.Warn("leader is silent, starting an election", "leader", string(leader.ID), "raft_term", term)
			g.stand(r)
			return
		}
		g.port.pause(silenceRetry)
	}
}

// isSilent reports whether this replica follows leader, or none, in term and has not heard
// from it for too long.
func (g *Group) isSilent(r *raft.Raft, leader raft.ServerID, term uint64) bool {
	return follows(r, leader, term) && g.port.silence.lasts(&g.cfg.Profile)
}

// follows reports whether a replica follows leader, or none, in term.
func follows(r *raft.Raft, leader raft.ServerID, term uint64) bool {
	_, known := r.LeaderWithID()
	return r.CurrentTerm() == term && r.State() != raft.Leader && (known == leader || known == "")
}

// votersConfirmSilence queries the other voters whether the leader is silent for them as well, or if this replica is the
// leader and has stepped down, whether they know no other one.
func (g *Group) votersConfirmSilence(ctx context.Context, leader Leader, term uint64) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers := g.Servers()
	voters, asked := 0, 0
	responds := make(chan bool, len(servers)) // those that are not waited for do not block
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == g.cfg.LocalID || s.ID == leader.ID {
			continue
		}
		asked++
		calls.Go(func() { responds <- g.port.querySilence(ctx, s, leader, term) })
	}
	agree := 1
	for range asked {
		if <-responds {
			agree++
		}
		if agree > voters/2 {
			return true
		}
	}
	return false
}

// querySilence queries another replica whether the leader is silent for it as well. A version
// without this request says no.
func (p *port) querySilence(ctx context.Context, s raft.Server, leader Leader, term uint64) bool {
	to := p.target(s.ID, s.Address)
	peer, err := p.t.peers.Peer(to.addr)
	if err != nil {
		return false
	}
	f, err := peer.Call(ctx, peers.Control, silenceTimeout, &node.RaftFrame{
		GroupId: p.id, Target: string(to.id), TimeoutMs: uint32(silenceTimeout.Milliseconds()),
		SilenceRequest: &node.SilenceRequest{Term: term, Leader: string(leader.ID), SteppedDown: leader.ID == p.group.cfg.LocalID},
	})
	return err == nil && f.SilenceResponse.GetSilent()
}

// serveSilence responds to querySilence from memory.
func (p *port) serveSilence(f *node.RaftFrame) *node.SilenceResponse {
	r := p.outgoing.Load().raft.Load()
	if r == nil || p.checkTarget(f.Target) != nil {
		return &node.SilenceResponse{}
	}
	req := f.SilenceRequest
	silent := req.SteppedDown && follows(r, raft.ServerID(req.Leader), req.Term) || p.group.isSilent(r, raft.ServerID(req.Leader), req.Term)
	silent = silent && p.claims.agree(req.SteppedDown, p.group.cfg.Profile.FailoverStep)
	return &node.SilenceResponse{Term: r.CurrentTerm(), Silent: silent}
}

// noteAppend records that an append has arrived at this node.
func (p *port) noteAppend(term uint64) {
	if r := p.outgoing.Load().raft.Load(); r != nil && term >= r.CurrentTerm() {
		p.silence.heard(term)
	}
}
