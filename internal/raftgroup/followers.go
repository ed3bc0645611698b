package raftgroup

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// followers is what a leader learns of the other replicas from their answers; Raft
// keeps it to itself.
type followers struct {
	mu   sync.Mutex // covers the fields below
	term uint64     // of the leadership that known is about
	byID map[raft.ServerID]*answered
}

// answered is what one follower has said to the leader of a term.
type answered struct {
	match     uint64    // its log is the leader's up to here
	contact   time.Time // of its last answer
	confirmed time.Time // it was in the leader's term some time after this
}

// appended notes the answer to an append. Heartbeats name no entries, so that they
// only count as contact. The request was sent after sent.
func (f *followers) appended(id raft.ServerID, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse, sent time.Time) {
	if resp.Term > req.Term {
		return
	}
	match := uint64(0)
	if resp.Success {
		match = req.PrevLogEntry + uint64(len(req.Entries))
	}
	f.note(id, req.Term, match, sent)
}

// installed notes the answer to a snapshot that was sent after sent.
func (f *followers) installed(id raft.ServerID, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, sent time.Time) {
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
func (f *followers) note(id raft.ServerID, term, match uint64, sent time.Time) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if term < f.term {
		return
	}
	if term > f.term || f.byID == nil { // what earlier terms knew may be cut off
		f.term, f.byID = term, make(map[raft.ServerID]*answered)
	}
	a := f.byID[id]
	if a == nil {
		a = new(answered)
		f.byID[id] = a
	}
	a.match, a.contact = max(a.match, match), now
	if sent.After(a.confirmed) {
		a.confirmed = sent
	}
}

// of is what is known about a follower by the leader of term.
func (f *followers) of(id raft.ServerID, term uint64) answered {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.byID[id]; a != nil && f.term == term {
		return *a
	}
	return answered{}
}

// newHolds returns the holds of this group, which share the node's bound.
func (g *Group) newHolds() *compactionHolds {
	t := g.cfg.Transport
	return &compactionHolds{
		sizes: &g.storage.sizes, limit: orDefault(t.cfg.MaxHeldLogBytes, maxHeldLogBytes), shared: &t.heldLog,
		metrics: g.cfg.Metrics, log: g.log, now: time.Now,
	}
}

// matchOf is up to where the log of a follower is known to be that of this replica,
// 0 if this replica does not lead in term.
func (g *Group) matchOf(follower raft.ServerID, term uint64) uint64 {
	if !g.port.outgoing.Load().leads(term) {
		return 0
	}
	return g.port.followers.of(follower, term).match
}

// Follower is what the leader knows about another replica.
type Follower struct {
	raft.Server
	// Match is up to where its log is known to be the leader's, 0 until it has
	// told.
	Match uint64
	// Lag is how many entries it misses.
	Lag uint64
	// Contact is when it answered last, zero if it has not in this term.
	Contact time.Time
	// Live says that it answered within the heartbeat time-out, CaughtUp that it
	// also has the log but for what is under way.
	Live, CaughtUp bool
}

// Followers returns what this replica, as the leader, knows of the others in the
// group's latest configuration; nil if it does not lead.
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
