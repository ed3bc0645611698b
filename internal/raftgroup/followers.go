package raftgroup

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/boottime"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/retention"
)

// followers tracks the state of the other replicas as their responses reveal it to the leader; Raft
// does not expose it.
type followers struct {
	// elapsed includes suspensions of the machine, during which another leader may be elected.
	elapsed func() time.Duration

	mu   sync.Mutex // covers the fields below
	term uint64     // of the leadership that byID belongs to
	byID map[raft.ServerID]*followerState
}

// followerState is the state of one follower as reported to the leader of a term.
type followerState struct {
	match     uint64    // its log matches the leader's up to here
	contact   time.Time // time of its last response
	responded bool
	confirmed time.Duration // if it has responded: it was in the leader's term some time after this
	since     time.Duration // responses to requests that were sent before this do not count
}

func newFollowers() followers { return followers{elapsed: boottime.Start().Elapsed} }

// appended records the response to an append. Heartbeats contain no entries and count only
// as contact. The request was sent after sent.
func (f *followers) appended(id raft.ServerID, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, sent time.Duration) {
	if resp.Term > req.Term {
		return
	}
	match := uint64(0)
	if resp.Success {
		match = req.PrevLogEntry + uint64(len(req.Entries))
	}
	f.note(id, req.Term, match, sent)
}

// installed records the response to a snapshot that was sent after sent.
func (f *followers) installed(id raft.ServerID, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, sent time.Duration) {
	if resp.Term > req.Term {
		return
	}
	match := uint64(0)
	if resp.Success {
		match = req.LastLogIndex
	}
	f.note(id, req.Term, match, sent)
}

// note records that id was in term some time after sent, and has the log up to match.
func (f *followers) note(id raft.ServerID, term, match uint64, sent time.Duration) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if term < f.term {
		return
	}
	if term > f.term || f.byID == nil { // what earlier terms knew may have been truncated
		f.term, f.byID = term, make(map[raft.ServerID]*followerState)
	}
	a := f.byID[id]
	if a == nil {
		a = new(followerState)
		f.byID[id] = a
	}
	if sent < a.since {
		return
	}
	a.match, a.contact, a.responded = max(a.match, match), now, true
	a.confirmed = max(a.confirmed, sent)
}

// absent records that there is no such replica on the follower's node now.
func (f *followers) absent(id raft.ServerID, term uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.byID[id]; a != nil && f.term == term {
		a.contact = time.Time{}
	}
}

// forget discards what the leader of term knows about a follower that is about to be added
// or removed: if it becomes a member again, only what it responds as a member counts. Its
// data may have been removed in between.
func (f *followers) forget(id raft.ServerID, term uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if term > f.term || f.byID == nil {
		f.term, f.byID = term, make(map[raft.ServerID]*followerState)
	}
	if term == f.term {
		f.byID[id] = &followerState{since: f.elapsed()}
	}
}

// confirmedWithin reports whether a follower was in term within limit before the call.
func (f *followers) confirmedWithin(id raft.ServerID, term uint64, limit time.Duration) bool {
	a := f.of(id, term)
	return a.responded && f.elapsed()-a.confirmed <= limit
}

// of returns what the leader of term knows about a follower.
func (f *followers) of(id raft.ServerID, term uint64) followerState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.byID[id]; a != nil && f.term == term {
		return *a
	}
	return followerState{}
}

// newRetention returns the policy of this group for its log.
func (g *Group) newRetention() (*retention.Policy, error) {
	first, last, err := logstore.Bounds(g.storage)
	if err != nil {
		return nil, err
	}
	p := retention.NewPolicy(retention.Config{
		TrailingEntries: g.cfg.Profile.TrailingLogs, TrailingBytes: g.cfg.Profile.TrailingBytes,
		Alone: g.fsm.alone, Match: g.matchOf, Budget: g.cfg.Transport.heldLog,
		OnHeld: g.cfg.Metrics.heldLogBytes, OnDropped: g.cfg.Metrics.droppedHold,
		Logger: g.log, Now: time.Now,
	})
	p.Started(first, last)
	return p, nil
}

// matchOf returns the index up to which a follower's log is known to match that of this
// replica, 0 if this replica does not lead in term.
func (g *Group) matchOf(follower raft.ServerID, term uint64) uint64 {
	if !g.port.outgoing.Load().leads(term) {
		return 0
	}
	return g.port.followers.of(follower, term).match
}

// Follower is what the leader knows about another replica.
type Follower struct {
	raft.Server
	// Match is the index up to which its log is known to match the leader's; 0 while
	// unknown.
	Match uint64
	// Lag is how many entries it misses.
	Lag uint64
	// Contact is the time of its last response; zero if there is none in this term.
	Contact time.Time
	// Live means that it responded within the heartbeat timeout, CaughtUp that it also has
	// the log except for what is in transit.
	Live, CaughtUp bool
}

// Followers returns what this replica, as the leader, knows of the others in the group's
// latest configuration; nil if it does not lead.
func (g *Group) Followers() []Follower {
	r := g.current().raft
	if r.State() != raft.Leader {
		return nil
	}
	term, last, now := r.CurrentTerm(), r.LastIndex(), time.Now()
	out := []Follower{}
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == g.cfg.LocalID {
			continue
		}
		a := g.port.followers.of(s.ID, term)
		f := Follower{Server: s, Match: a.match, Lag: last - min(a.match, last), Contact: a.contact}
		f.Live = now.Sub(a.contact) < g.cfg.Profile.HeartbeatTimeout
		// One append's worth of entries is less than a round trip of work.
		f.CaughtUp = f.Live && a.match > 0 && f.Lag <= uint64(g.cfg.Profile.MaxAppendEntries)
		out = append(out, f)
	}
	return out
}
