package raftgroup

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/proto/node"
)

const (
	// silenceTick is how often the failure detector counts, and longestTick the most
	// that it counts at once.
	silenceTick = 100 * time.Millisecond
	longestTick = 2 * silenceTick
	// silenceTimeout is how long another replica may take to say whether it hears the
	// leader, silenceRetry the pause before it is asked again.
	silenceTimeout = 250 * time.Millisecond
	silenceRetry   = 50 * time.Millisecond
	// A process that did not run for longestPause may have old messages in its buffers,
	// which it reads within resumeTime.
	longestPause = time.Second
	resumeTime   = 2 * time.Second
)

// silence counts for how long a replica has not heard from its leader: time in which
// this process ran, since the last append arrived at the node, whether or not its own
// Raft instance has come to it.
type silence struct {
	mu      sync.Mutex // covers the fields below
	quiet   time.Duration
	term    uint64        // of the leader that was heard last
	longest time.Duration // gap between appends lately
	acting  bool          // it is being dealt with
	agreed  time.Time     // when another replica was last told that it may stand
}

// heard is called when the leader of term was heard, which is the newest one.
func (s *silence) heard(term uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// An unusual gap is remembered for some hundred appends. The one between two leaders
	// says nothing about either.
	if term == s.term {
		s.longest = max(s.quiet, s.longest-s.longest/128)
	}
	s.quiet, s.term = 0, term
}

func (s *silence) tick(step time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet += step
}

// lasts reports whether the silence is longer than the profile allows: than a leader
// that hears nobody goes on, and than three times the gaps that were usual lately.
func (s *silence) lasts(p *Profile) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.SilenceMargin > 0 && s.quiet >= max(p.LeaderLeaseTimeout+p.SilenceMargin, min(3*s.longest, p.HeartbeatTimeout))
}

// act reports whether the caller is the one to deal with the silence; it then calls
// done.
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

func (s *silence) agree() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agreed = time.Now()
}

// yields reports whether another replica was told within d that it may stand.
func (s *silence) yields(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.agreed) < d
}

func (s *silence) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acting = false
}

// attached are the replicas of this node.
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
		// More than that has passed only if this process did not run, or hardly: then
		// the leader may have spoken all the same.
		now := time.Now()
		step := min(now.Sub(last), longestTick)
		last = now
		for _, p := range t.attached() {
			p.countSilence(step)
		}
	}
}

// running tells whether the process was stopped or starved lately.
type running struct {
	mu      sync.Mutex // covers the fields below
	seen    time.Time  // running
	resumed time.Time  // after the last pause
}

// note notes that the process runs, at intervals of silenceTick.
func (r *running) note(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen.IsZero() && now.Sub(r.seen) > longestPause {
		r.resumed = now
	}
	r.seen = now
}

// steadily reports whether the process has been running all the time lately, as far as
// that was noted.
func (r *running) steadily(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.IsZero() || now.Sub(r.seen) <= longestPause && now.Sub(r.resumed) > resumeTime
}

// countSilence lets time pass for a replica, and begins to replace its leader if that
// has been silent for too long.
func (p *port) countSilence(step time.Duration) {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return
	}
	p.silence.tick(step)
	if r.State() != raft.Follower || !p.silence.lasts(&p.group.cfg.Profile) {
		return
	}
	addr, id := r.LeaderWithID()
	if id == "" || id == p.group.cfg.LocalID || !p.silence.act() {
		return
	}
	leader, term := Leader{ID: id, Address: addr}, r.CurrentTerm()
	p.t.wg.Go(func() {
		defer p.silence.done()
		p.group.replaceSilent(r, leader, term)
	})
}

// replaceSilent stands for election in place of a leader that is not heard, once a
// majority of the voters, this replica included, has not heard it either. That
// agreement takes the part of Raft's pre-vote, which would only be given after the
// election time-out of each voter. Survivors stand one after the other, as when a
// process has died.
func (g *Group) replaceSilent(r *raft.Raft, leader Leader, term uint64) {
	rank, ok := g.successionRank(leader.ID)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(g.port.ctx, 2*g.cfg.Profile.ElectionTimeout)
	defer cancel()
	g.port.forgetVote()
	step := g.cfg.Profile.FailoverStep
	if !g.port.awaitTurn(ctx, time.Duration(rank)*step, 2*step) {
		return
	}
	for ctx.Err() == nil && g.isSilent(r, leader.ID, term) {
		// The first in turn yields to nobody, so that two do not yield to each other.
		if (rank == 0 || !g.port.silence.yields(step)) && g.othersAgree(ctx, leader, term) && g.isSilent(r, leader.ID, term) {
			g.log.Warn("leader is silent, standing for election", "leader", string(leader.ID), "raft_term", term)
			g.stand(r)
			return
		}
		g.port.pause(silenceRetry)
	}
}

// isSilent reports whether this replica follows leader, or nobody, in term and has not
// heard from it for too long.
func (g *Group) isSilent(r *raft.Raft, leader raft.ServerID, term uint64) bool {
	_, known := r.LeaderWithID()
	return r.CurrentTerm() == term && r.State() != raft.Leader && (known == leader || known == "") &&
		g.port.silence.lasts(&g.cfg.Profile)
}

// othersAgree asks the other voters whether they do not hear the leader either.
func (g *Group) othersAgree(ctx context.Context, leader Leader, term uint64) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	voters, asked := 0, 0
	answers := make(chan bool, len(g.Servers()))
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for _, s := range g.Servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == g.cfg.LocalID || s.ID == leader.ID {
			continue
		}
		asked++
		calls.Go(func() { answers <- g.port.askSilence(ctx, s, leader, term) })
	}
	agree := 1
	for range asked {
		if <-answers {
			agree++
		}
		if agree > voters/2 {
			return true
		}
	}
	return false
}

// askSilence asks another replica whether it does not hear the leader either. A version
// that does not know the question says no.
func (p *port) askSilence(ctx context.Context, s raft.Server, leader Leader, term uint64) bool {
	to := p.target(s.ID, s.Address)
	peer, err := p.t.peer(to.addr)
	if err != nil {
		return false
	}
	f, err := peer.call(ctx, controlStream, silenceTimeout, &node.RaftFrame{
		GroupId: p.id, Target: string(to.id), TimeoutMs: uint32(silenceTimeout.Milliseconds()),
		SilenceRequest: &node.SilenceRequest{Term: term, Leader: string(leader.ID)},
	})
	return err == nil && f.SilenceResponse.GetSilent()
}

// answerSilence answers askSilence from memory.
func (p *port) answerSilence(f *node.RaftFrame) *node.SilenceResponse {
	r := p.outgoing.Load().raft.Load()
	if r == nil || p.meant(f.Target) != nil {
		return &node.SilenceResponse{}
	}
	req := f.SilenceRequest
	silent := p.group.isSilent(r, raft.ServerID(req.Leader), req.Term)
	if silent {
		p.silence.agree()
	}
	return &node.SilenceResponse{Term: r.CurrentTerm(), Silent: silent}
}

// noteAppend notes that an append has arrived at this node.
func (p *port) noteAppend(term uint64) {
	if r := p.outgoing.Load().raft.Load(); r != nil && term >= r.CurrentTerm() {
		p.silence.heard(term)
	}
}
