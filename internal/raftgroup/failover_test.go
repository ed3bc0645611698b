package raftgroup

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
	"platform/internal/raftgroup/wire"
	"platform/proto/node"
)

func TestTimeToStandForElection(t *testing.T) {
	const wait, grace = 100 * time.Millisecond, 300 * time.Millisecond
	for _, c := range []struct {
		name string
		vote time.Duration // 0 for none
		turn time.Duration
	}{
		{"no other candidate", 0, wait},
		{"voted for another", 90 * time.Millisecond, 90*time.Millisecond + grace},
		{"voted too late", 150 * time.Millisecond, wait},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := make(voted, 1)
				v.note() // in an earlier election
				v.clearVote()
				if c.vote != 0 {
					defer time.AfterFunc(c.vote, v.note).Stop()
				}
				begin := time.Now()
				require.True(t, v.awaitTurn(t.Context(), wait, grace))
				require.Equal(t, c.turn, time.Since(begin))
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, make(voted, 1).awaitTurn(ended, wait, grace))
}

// hangingStorage takes nothing while hung is locked.
type hangingStorage struct {
	logstore.Storage
	hung    sync.RWMutex
	waiting atomic.Int32 // calls that are under way
}

func (s *hangingStorage) StoreLogs(logs []*raft.Log) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	s.hung.RLock()
	defer s.hung.RUnlock()
	return s.Storage.StoreLogs(logs)
}

// slowDiskWatchdog returns a watchdog that detects a hung disk, but does not end the process.
func slowDiskWatchdog(t *testing.T) *watchdog.Watchdog {
	dog := watchdog.New(watchdog.Config{
		Slow: 100 * time.Millisecond, Tick: 10 * time.Millisecond, Hung: time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(dog.Close)
	return dog
}

// The leader's Raft waits for the disk, but its heartbeats continue: no other node would
// ever stand for election. The election time-outs are much longer than the test.
func TestLeaderWithAHungDiskIsReplaced(t *testing.T) {
	dog := slowDiskWatchdog(t)
	disks := map[raft.ServerID]*hangingStorage{}
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		disks[cfg.LocalID] = &hangingStorage{Storage: cfg.Storage}
		cfg.Storage, cfg.Watchdog = disks[cfg.LocalID], dog
		patient(cfg)
	})
	c.groups[0].port.timeoutNow(time.Minute)
	old := c.leader()
	disk := disks[c.groups[old].cfg.LocalID]
	disk.hung.Lock()
	data, err := sealJournal([][]byte{[]byte("lost or not")})
	require.NoError(t, err)
	hanging := c.groups[old].Propose(data)
	c.awaitOther(old)
	disk.hung.Unlock()
	_, _ = hanging.Wait(t.Context()) // either is right
	c.leader()                       // again one that commits, whichever it is
}

// patient makes the time-outs much longer than a test.
func patient(cfg *Config) {
	const long = time.Minute
	cfg.Profile.HeartbeatTimeout, cfg.Profile.ElectionTimeout, cfg.Profile.LeaderLeaseTimeout = long, long, long
}

// Neither survivor has noticed that the leader is dead, but one of them is made to
// stand. It lacks an entry, so that only the other one can win.
func TestAVoterThatRejectsAShorterLogStandsImmediately(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 0, 5)
	c.awaitSame()
	c.stop(1)
	proposeMany(t, c.groups[0], 5, 5)
	c.stop(0)
	c.stop(2)
	c.restart(1)
	c.restart(2)
	c.connect(1, 2)
	c.connect(2, 1)
	c.groups[1].port.timeoutNow(time.Minute)
	require.Equal(t, 2, c.leader())
}

// The vote request may be old when it is read, and its sender may lead by now.
func TestAReplicaThatWasStoppedOrCutOffDoesNotOutbid(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 0, 5)
	c.awaitSame()
	for i := range 3 {
		c.stop(i)
	}
	c.restart(1)
	c.restart(2)
	c.connect(2, 1)
	g := c.groups[2]
	term := g.Stats().Term
	outbid := func() raft.RaftState {
		g.outbid(&node.VoteRequest{Term: term, LeadershipTransfer: true}, &node.VoteResponse{Term: term})
		return g.current().raft.State()
	}
	g.port.silence.tick(3 * time.Minute)
	require.Equal(t, raft.Follower, outbid(), "it was cut off")
	g.port.silence.heard(term)
	now := time.Now()
	g.port.t.run.note(now.Add(-time.Minute))
	require.Equal(t, raft.Follower, outbid(), "it does not know yet that it was stopped")
	g.port.t.run.note(now)
	require.Equal(t, raft.Follower, outbid(), "it has just resumed")
	g.port.t.run = running{}
	outbid()
	require.Equal(t, 2, c.leader())
}

func TestWhetherAProcessRanSteadily(t *testing.T) {
	var r running
	now := time.Now()
	require.True(t, r.steadily(now), "not watched")
	for range 50 {
		now = now.Add(silenceTick)
		r.note(now)
	}
	require.True(t, r.steadily(now))
	now = now.Add(longestPause + silenceTick)
	require.False(t, r.steadily(now))
	r.note(now)
	require.False(t, r.steadily(now))
	for end := now.Add(resumeTime); now.Before(end); now = now.Add(silenceTick) {
		require.False(t, r.steadily(now))
		r.note(now)
	}
	now = now.Add(silenceTick)
	require.True(t, r.steadily(now))
}

func TestDeadSuccessorDelaysNothing(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 0, 0)
	c.awaitSame() // a follower that knows no leader yet would take the dead node for it
	c.stop(1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.ErrorContains(t, c.groups[0].TransferLeadership(ctx, c.voters[1].ID), "transfer leadership to")
	require.NoError(t, ctx.Err())
	proposeMany(t, c.groups[0], 1, 5)
	require.NoError(t, c.groups[0].TransferLeadership(ctx, ""))
	require.Equal(t, 2, c.leader())
}

func TestComparisonOfLogs(t *testing.T) {
	candidate := &node.VoteRequest{LastLogIndex: 10, LastLogTerm: 3}
	for _, c := range []struct {
		term, index string
		better      bool
	}{
		{"3", "10", false}, {"3", "9", false}, {"2", "20", false}, {"3", "11", true}, {"4", "1", true}, {"", "", false},
	} {
		require.Equal(t, c.better, betterLog(map[string]string{"last_log_term": c.term, "last_log_index": c.index}, candidate), "%+v", c)
	}
}

// The leader is connected and says nothing; Raft would notice after up to three minutes.
func TestASilentLeaderIsReplacedByAgreement(t *testing.T) {
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		cfg.Profile.LeaderLeaseTimeout, cfg.Profile.FailoverStep = 500*time.Millisecond, 100*time.Millisecond
		cfg.Profile.SilenceMargin = 200 * time.Millisecond
	})
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	for _, v := range c.voters[1:] {
		c.gates[0].close(requests(v))
	}
	require.Eventually(t, func() bool { return c.groups[1].IsLeader() || c.groups[2].IsLeader() }, 30*time.Second, time.Millisecond)
	for _, v := range c.voters[1:] {
		c.gates[0].open(requests(v))
	}
	c.leader()
}

// The leader and the only follower that is left lose contact for longer than the lease, as on a busy machine. Raft would
// start an election after one to two minutes.
func TestALeaderThatHadNoContactLeadsAgain(t *testing.T) {
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		cfg.Profile.LeaderLeaseTimeout = 2 * time.Second
		cfg.Profile.SilenceMargin = 200 * time.Millisecond
	})
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 1, 1)
	c.awaitSame()
	c.stop(2)
	c.gates[0].close(requests(c.voters[1]))
	require.Eventually(t, func() bool { return !c.groups[0].IsLeader() }, 30*time.Second, time.Millisecond)
	c.gates[0].open(requests(c.voters[1]))
	require.Eventually(t, func() bool { return c.groups[0].IsLeader() }, 30*time.Second, time.Millisecond)
	proposeMany(t, c.groups[0], 2, 2)
}

// slowTerms stores no number, such as a term, while slow is locked.
type slowTerms struct {
	logstore.Storage
	slow    sync.RWMutex
	waiting atomic.Int32 // calls that are under way
}

func (s *slowTerms) SetUint64(key []byte, v uint64) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	s.slow.RLock()
	defer s.slow.RUnlock()
	return s.Storage.SetUint64(key, v)
}

// A leader steps down for its successor before it has stored the new term, which takes a while. Meanwhile another replica still
// follows it. If it started an election then, it would depose its successor.
func TestALeaderDoesNotDeposeItsSuccessor(t *testing.T) {
	disks := map[raft.ServerID]*slowTerms{}
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		disks[cfg.LocalID] = &slowTerms{Storage: cfg.Storage}
		cfg.Storage = disks[cfg.LocalID]
		patient(cfg)
		cfg.Profile.SilenceMargin = 200 * time.Millisecond
	})
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 1, 1)
	c.awaitSame()
	old, s := c.groups[0].current().raft, &c.groups[0].port.silence
	term, disk := old.CurrentTerm(), disks[c.voters[0].ID]
	c.gates[1].close(requests(c.voters[2]))
	disk.slow.Lock()
	go func() { _ = c.groups[0].TransferLeadership(t.Context(), c.voters[1].ID) }()
	require.Eventually(t, func() bool { return disk.waiting.Load() > 0 }, 30*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.quiet >= 5*silenceTick
	}, 30*time.Second, time.Millisecond, "it checks whether it has stepped down")
	disk.slow.Unlock()
	require.Eventually(t, c.groups[1].IsLeader, 30*time.Second, time.Millisecond)
	c.gates[1].open(requests(c.voters[2]))
	proposeMany(t, c.groups[1], 2, 2)
	require.Equal(t, term+1, c.groups[1].current().raft.CurrentTerm())
}

// A candidate is refused its pre-vote by the leader, which then steps down because it cannot reach the candidate. Raft would
// request the next pre-vote after one to two minutes.
func TestACandidateIsElectedOnceItsVotersKnowNoLeader(t *testing.T) {
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		cfg.Profile.LeaderLeaseTimeout = 2 * time.Second
		if cfg.LocalID == cfg.Voters[1].ID {
			cfg.Profile.HeartbeatTimeout, cfg.Profile.LeaderLeaseTimeout = time.Second, time.Second
		}
	})
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 1, 1)
	c.awaitSame()
	c.stop(2)
	c.gates[0].close(requests(c.voters[1]))
	require.Eventually(t, c.groups[1].IsLeader, 30*time.Second, time.Millisecond)
	c.gates[0].open(requests(c.voters[1]))
	proposeMany(t, c.groups[1], 2, 2)
}

// A candidate has voted for itself, and the network has delayed its requests for longer than FailoverStep. A pre-vote in the
// same term would start an election in which the vote is refused. If the other candidate has the better log, it needs the
// pre-vote in the end.
func TestAVoterGrantsAPreVoteInItsOwnTermLater(t *testing.T) {
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		cfg.Profile.FailoverStep = 0
	})
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 1, 1)
	c.awaitSame()
	c.stop(2)
	c.gates[1].close(requests(c.voters[0]))
	defer c.gates[1].open(requests(c.voters[0]))
	p, r := c.groups[1].port, c.groups[1].current().raft
	term := r.CurrentTerm() + 1
	c.groups[1].stand(r)
	require.Eventually(t, func() bool { return r.State() == raft.Candidate && r.CurrentTerm() == term }, 10*time.Second, time.Millisecond)
	req := &node.VoteRequest{Header: wire.EncodeHeader(c.groups[0].port.header()), Term: term}
	require.False(t, p.mayPreVote(req))
	p.claims.mu.Lock()
	p.claims.termSince = p.claims.termSince.Add(-p.election)
	p.claims.mu.Unlock()
	require.True(t, p.mayPreVote(req))
	req.Term++
	require.True(t, p.mayPreVote(req))
}

func TestAnUnknownCandidateDoesNotPrecede(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	for _, g := range c.groups[:2] {
		require.False(t, g.precedes(g.current().raft, "unknown"))
	}
}

// A leader that one follower cannot reach continues while the others hear from it.
func TestALeaderThatOneFollowerCannotReachContinues(t *testing.T) {
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		cfg.Profile.HeartbeatTimeout, cfg.Profile.LeaderLeaseTimeout, cfg.Profile.ElectionTimeout = 2*time.Second, 2*time.Second, time.Minute
		cfg.Profile.SilenceMargin = 200 * time.Millisecond
	})
	c.groups[0].port.timeoutNow(time.Minute)
	l := c.leader()
	deaf := c.groups[(l+1)%3]
	term := deaf.Stats().Term
	c.gates[l].close(requests(c.voters[(l+1)%3]))
	require.Eventually(t, func() bool { return deaf.port.silence.lasts(&deaf.cfg.Profile) }, time.Minute, time.Millisecond)
	require.False(t, deaf.votersConfirmSilence(t.Context(), Leader{ID: c.voters[l].ID}, term))
	proposeMany(t, c.groups[l], 1, 1)
	require.Equal(t, term, c.groups[l].Stats().Term)
	c.gates[l].open(requests(c.voters[(l+1)%3]))
}

func TestSilenceIsMeasuredAgainstUsualGaps(t *testing.T) {
	p := Safe()
	s := silence{term: 1}
	usual := func() {
		for range 1000 {
			s.tick(300 * time.Millisecond)
			s.heard(1)
		}
	}
	// limit is how long the leader of term 1 may be silent; another one follows.
	limit := func() (d time.Duration) {
		for !s.lasts(&p) {
			s.tick(silenceTick)
			d += silenceTick
		}
		s.heard(2)
		s.heard(1)
		return d
	}
	usual()
	for range 2 { // the end of a leader makes no difference for the next
		d := limit()
		require.Greater(t, d, p.LeaderLeaseTimeout, "a leader without contact to its followers has stepped down")
		require.Less(t, d, p.LeaderLeaseTimeout*5/4)
	}
	s.tick(1900 * time.Millisecond)
	s.heard(1)
	require.Equal(t, p.HeartbeatTimeout, limit(), "a slow network or machine: as late as Raft itself")
	usual()
	require.Less(t, limit(), p.HeartbeatTimeout, "it has recovered")
}
