package raftgroup

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// electionModel measures how long the survivors of a dead leader take to elect a new one. It models the candidates and voters
// of Raft with slow disks: storing a term takes one sync, storing a vote two. The attempts and the agreement between the
// candidates are the real ones.
type electionModel struct {
	mu        sync.Mutex // covers random and elections
	random    *rand.Rand
	elections int

	voters   int // of the group, including the dead ones
	alive    []*modelReplica
	sync     time.Duration
	cut      bool // the first and the last survivor have no connection
	profile  Profile
	elected  chan struct{}
	finished context.Context //nolint:containedctx // ends the goroutines of the model
}

// modelReplica is one survivor. Its requests are served, and its elections begin, while the main channel is held.
type modelReplica struct {
	rank     int
	log      int
	main     chan struct{}
	changed  chan struct{}
	state    raft.RaftState
	term     uint64
	voteTerm uint64
	vote     int
	led      bool // it still knows the dead leader
	contact  time.Time
	claims   electionClaims
}

// elect returns how long the survivors take.
func (m *electionModel) elect(t *testing.T, alive int, logsDiffer bool) (d time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // the zero time is long ago
		ctx, cancel := context.WithCancel(t.Context())
		m.finished, m.elected, m.profile = ctx, make(chan struct{}, alive), Safe()
		for i := range alive {
			r := &modelReplica{rank: i, main: make(chan struct{}, 1), changed: make(chan struct{}, 1), term: 5, voteTerm: 5, vote: -1, led: true, contact: time.Now()}
			if logsDiffer {
				r.log = m.random.IntN(2)
			}
			m.alive = append(m.alive, r)
		}
		begin := time.Now()
		for _, r := range m.alive {
			go m.run(r)
		}
		select {
		case <-m.elected:
		case <-time.After(time.Minute):
		}
		d = time.Since(begin)
		cancel()
		time.Sleep(time.Minute) // until the goroutines have ended
	})
	return d
}

// timeout returns a random timeout as Raft's.
func (m *electionModel) timeout() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.profile.ElectionTimeout + time.Duration(m.random.Int64N(int64(m.profile.ElectionTimeout)))
}

// hop delays a message.
func (m *electionModel) hop() {
	m.mu.Lock()
	d := time.Duration(200+m.random.IntN(1800)) * time.Microsecond
	m.mu.Unlock()
	time.Sleep(d)
}

// others returns the replicas to which r has a connection.
func (m *electionModel) others(r *modelReplica) (others []*modelReplica) {
	for _, o := range m.alive {
		if o != r && (!m.cut || o.rank+r.rank != len(m.alive)-1) {
			others = append(others, o)
		}
	}
	return others
}

func (r *modelReplica) is(s raft.RaftState) bool {
	r.main <- struct{}{}
	defer func() { <-r.main }()
	return r.state == s
}

func (r *modelReplica) set(s raft.RaftState) {
	r.state = s
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (m *electionModel) run(r *modelReplica) {
	for m.finished.Err() == nil {
		if r.is(raft.Candidate) {
			m.campaign(r)
			continue
		}
		pause(m.finished, m.timeout())
		r.main <- struct{}{}
		if r.state == raft.Follower && time.Since(r.contact) >= m.profile.HeartbeatTimeout {
			r.led = false
			r.set(raft.Candidate)
		}
		<-r.main
	}
}

// campaign is one attempt to be elected.
func (m *electionModel) campaign(r *modelReplica) {
	select {
	case <-r.changed: // of an earlier attempt
	default:
	}
	if !r.is(raft.Candidate) {
		return
	}
	r.main <- struct{}{}
	term, log := r.term+1, r.log
	<-r.main
	a := newAttempt(m.finished, nil, m.voters/2+1, &r.claims, &m.profile)
	defer a.end()
	for _, o := range m.others(r) {
		go m.requestPreVotes(a, r, o, term, log)
	}
	preVotes, votes := a.ctx.Done(), make(chan bool, m.voters)
	count := 0
	timer := time.After(m.timeout())
	for {
		select {
		case <-preVotes:
			preVotes = nil
			if m.finished.Err() != nil {
				return
			}
			timer = time.After(m.timeout())
			m.startElection(r, term, log, votes)
		case granted := <-votes:
			if granted {
				count++
			}
			if count > m.voters/2 {
				m.elected <- struct{}{}
				<-m.finished.Done()
				return
			}
		case <-r.changed:
			if !r.is(raft.Candidate) {
				return
			}
		case <-timer:
			return
		}
	}
}

func (m *electionModel) startElection(r *modelReplica, term uint64, log int, votes chan bool) {
	r.main <- struct{}{}
	defer func() { <-r.main }()
	if r.state != raft.Candidate || r.term != term-1 {
		return
	}
	m.mu.Lock()
	m.elections++
	m.mu.Unlock()
	m.enter(r, term)
	others := m.others(r)
	for _, o := range m.alive { // as Raft, in the order of the configuration
		switch {
		case o == r:
			m.store(r, term, r.rank)
			votes <- true
		case slices.Contains(others, o):
			go func() { votes <- m.requestVote(r, o, term, log) }()
		}
	}
}

func (m *electionModel) enter(r *modelReplica, term uint64) {
	time.Sleep(m.sync)
	r.term = term
	r.claims.entered(term)
}

func (m *electionModel) store(r *modelReplica, term uint64, vote int) {
	time.Sleep(2 * m.sync)
	r.voteTerm, r.vote = term, vote
}

// requestPreVotes is port.RequestPreVote.
func (m *electionModel) requestPreVotes(a *attempt, from, to *modelReplica, term uint64, log int) {
	for a.ctx.Err() == nil {
		m.hop()
		to.main <- struct{}{}
		granted := !to.led && term >= to.term && log >= to.log
		if to.term >= term && time.Since(to.claims.entered(to.term)) < m.profile.ElectionTimeout {
			granted = false
		}
		newer := to.term > term
		<-to.main
		granted = granted && to.claims.preVote(from.rank < to.rank, m.profile.FailoverStep)
		m.hop()
		if newer {
			return
		}
		a.note(raft.ServerID(strconv.Itoa(to.rank)), granted)
		pause(a.ctx, voteRetry)
	}
}

func (m *electionModel) requestVote(from, to *modelReplica, term uint64, log int) bool {
	m.hop()
	to.main <- struct{}{}
	defer m.hop()
	defer func() { <-to.main }()
	if to.led || term < to.term {
		return false
	}
	if term > to.term {
		m.enter(to, term)
		to.set(raft.Follower)
	}
	if to.voteTerm == term {
		return to.vote == from.rank
	}
	if log < to.log {
		return false
	}
	m.store(to, term, from.rank)
	to.contact = time.Now()
	return true
}
