package raftgroup

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// crash stops a replica without handing leadership over. What waits at its gates is lost.
func (c *testCluster) crash(i int) {
	require.NoError(c.t, c.groups[i].Stop(context.Background()))
	c.gates[i].sever()
	c.nodes[i].stop()
	c.groups[i] = nil
}

// unhurried gives a test time to do something before a replica without contact to the leader acts.
func unhurried(cfg *Config) {
	const long = 2 * time.Second
	cfg.Profile.HeartbeatTimeout, cfg.Profile.ElectionTimeout, cfg.Profile.LeaderLeaseTimeout = long, long, long
}

// threeLedBy starts a group whose replica i leads.
func threeLedBy(t *testing.T, i int) (*testCluster, *Group) {
	c := newTestClusterWith(t, 1000, unhurried)
	c.groups[i].port.timeoutNow(time.Minute)
	require.Equal(t, i, c.leader())
	return c, c.groups[i]
}

// TestAPromotedReplicaIsElectedByOneThatDoesNotKnow promotes a replica, which the other
// follower does not hear of, and stops the leader. Only the promoted replica has the
// last entry, and by the other one's configuration it has no vote.
func TestAPromotedReplicaIsElectedByOneThatDoesNotKnow(t *testing.T) {
	const leader, other, promoted = 0, 1, 2
	c, g := threeLedBy(t, leader)
	require.NoError(t, g.DemoteVoter(t.Context(), c.voters[promoted].ID))
	propose(t, g, "command 1")
	c.awaitSame()
	c.gates[leader].close(requests(c.voters[other]))
	require.NoError(t, g.AddVoter(t.Context(), c.voters[promoted].ID, c.voters[promoted].Address))
	last := c.groups[promoted].Stats().LastIndex
	require.Less(t, c.groups[other].Stats().LastIndex, last)
	c.crash(leader)

	require.Eventually(t, func() bool {
		var resp raft.RequestPreVoteResponse
		p := c.groups[promoted].port
		err := p.RequestPreVote(c.voters[other].ID, c.voters[other].Address, &raft.RequestPreVoteRequest{
			RPCHeader: p.header(), Term: c.groups[promoted].Stats().Term + 1, LastLogIndex: last + 1000, LastLogTerm: 1000,
		}, &resp)
		return err == nil && resp.Granted || c.groups[promoted].IsLeader()
	}, time.Minute, time.Millisecond)
	require.Equal(t, promoted, c.leader())
	propose(t, c.groups[promoted], "command 2")
	require.Eventually(t, func() bool { return c.journals[other].Applied() == c.journals[promoted].Applied() }, time.Minute, time.Millisecond)
}

// TestAReplicaOutsideTheGroupGetsNoVote requests a vote in the name of a replica that is
// not in the group.
func TestAReplicaOutsideTheGroupGetsNoVote(t *testing.T) {
	c, g := threeLedBy(t, 0)
	p := c.groups[1].port
	header := p.header()
	header.ID = []byte("stranger")
	var resp raft.RequestVoteResponse
	require.NoError(t, p.RequestVote(c.voters[2].ID, c.voters[2].Address, &raft.RequestVoteRequest{
		RPCHeader: header, Term: g.Stats().Term + 1, LastLogIndex: 1000, LastLogTerm: 1000, LeadershipTransfer: true,
	}, &resp))
	require.False(t, resp.Granted)
}

// TestALeaderThatDemotesAndDiesIsReplaced demotes or removes a replica, which the other
// follower does not hear of, and stops the leader before the change is committed. The
// replica that was to lose its vote must not have the entry: its log would be better
// than that of the only one that can be elected.
func TestALeaderThatDemotesAndDiesIsReplaced(t *testing.T) {
	for name, change := range map[string]func(*raft.Raft, raft.ServerID) raft.IndexFuture{
		"demoted": func(r *raft.Raft, id raft.ServerID) raft.IndexFuture { return r.DemoteVoter(id, 0, 0) },
		"removed": func(r *raft.Raft, id raft.ServerID) raft.IndexFuture { return r.RemoveServer(id, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			const leader, other, leaving = 0, 1, 2
			c, withheld := leaderThatLosesAVoter(t, leader, other, leaving, change)
			for !withheld { // a replica was elected before the entry could be withheld
				c, withheld = leaderThatLosesAVoter(t, leader, other, leaving, change)
			}
			c.crash(leader)
			propose(t, c.groups[c.leader()], "command 2")
		})
	}
}

// leaderThatLosesAVoter starts a group whose leader has applied a change to a voter that it has
// sent to no other replica. It returns false if another replica was elected meanwhile: without
// the leaving one the leader reaches no majority, and its lease ends.
func leaderThatLosesAVoter(t *testing.T, leader, other, leaving int, change func(*raft.Raft, raft.ServerID) raft.IndexFuture) (*testCluster, bool) {
	c, g := threeLedBy(t, leader)
	propose(t, g, "command 1")
	c.awaitSame()
	c.gates[leader].close(requests(c.voters[other]))
	term, last := g.Stats().Term, c.groups[leaving].Stats().LastIndex
	change(g.current().raft, c.voters[leaving].ID)
	require.Eventually(t, func() bool {
		return g.port.withheld.Load() > 0 || c.groups[leaving].Stats().LastIndex > last
	}, time.Minute, time.Millisecond)
	at := c.groups[leaving].Stats()
	if at.Term != term {
		return c, false
	}
	require.Equal(t, last, at.LastIndex)
	return c, true
}

// TestWithheldEntriesArriveOnceTheyAreCommitted demotes a replica, which then has what was
// committed.
func TestWithheldEntriesArriveOnceTheyAreCommitted(t *testing.T) {
	c, g := threeLedBy(t, 0)
	c.gates[0].close(requests(c.voters[1]))
	done := make(chan error, 1)
	go func() { done <- g.DemoteVoter(t.Context(), c.voters[2].ID) }()
	require.Eventually(t, func() bool { return g.port.withheld.Load() > 0 }, time.Minute, time.Millisecond)
	c.gates[0].open(requests(c.voters[1]))
	require.NoError(t, <-done)
	propose(t, g, "command 1")
	c.awaitSame()
	require.Zero(t, g.port.withheld.Load())
}
