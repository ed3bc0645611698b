package raftgroup

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// A replica without a vote cannot know whether the voters have another leader.
func TestOnlyVotersConfirmALeader(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	term := c.groups[0].Stats().Term
	require.NoError(t, c.groups[0].ConfirmLeadership(t.Context(), term))

	learner := startNode(t, t.TempDir(), "")
	defer learner.stop()
	cfg := learner.config(1, memJournal(t))
	patient(&cfg)
	g, err := Open(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Shutdown(context.Background())) }()
	require.NoError(t, c.groups[0].AddNonvoter(t.Context(), cfg.LocalID, learner.address()))
	require.Eventually(t, func() bool { return g.Leader().ID == c.voters[0].ID }, time.Minute, time.Millisecond)

	c.stop(1)
	c.stop(2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, c.groups[0].ConfirmLeadership(ctx, term), "the leader and a replica without a vote are no majority")
}

// A leader that was cut off, or stopped, finds responses from before it was deposed
// when it continues. They must not confirm a read that arrived later.
func TestResponsesToEarlierRequestsDoNotConfirmALeader(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	old, next := c.groups[0], c.groups[1]
	old.port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	term := old.Stats().Term
	// A replica that misses the entry of the new leader cannot win the election below.
	require.Eventually(t, func() bool { return next.Stats().LastIndex == old.Stats().LastIndex }, time.Minute, time.Millisecond)

	for _, v := range c.voters[1:] {
		c.gates[0].close(answers(v))
	}
	first := make(chan error, 1)
	go func() { first <- old.ConfirmLeadership(t.Context(), term) }()
	for _, v := range c.voters[1:] {
		require.Eventually(t, func() bool { return c.gates[0].held(answers(v)) > 0 }, time.Minute, time.Millisecond)
	}
	c.gates[1].close(requests(c.voters[0]))
	c.gates[2].close(requests(c.voters[0]))
	next.port.timeoutNow(time.Minute)
	require.Eventually(t, next.IsLeader, time.Minute, time.Millisecond)
	proposeMany(t, next, 1, 1)
	require.True(t, old.IsLeader(), "it cannot know yet")

	defer func() { // so that the groups end without waiting for time-outs
		c.gates[1].open(requests(c.voters[0]))
		c.gates[2].open(requests(c.voters[0]))
	}()
	second := make(chan error, 1)
	go func() { second <- old.ConfirmLeadership(t.Context(), term) }()
	require.Eventually(t, func() bool { // it waits for another round than the first read
		old.reads.mu.Lock()
		defer old.reads.mu.Unlock()
		return old.reads.round != nil && old.reads.next != nil
	}, time.Minute, time.Millisecond)
	for _, v := range c.voters[1:] {
		c.gates[0].open(answers(v))
	}
	require.ErrorIs(t, <-second, ErrNotLeader)
	<-first // began before the election, so that either is right
}

// Raft cannot depose a leader whose main loop waits for the disk, and its heartbeats
// may continue. Its lease ends nevertheless, so that it serves no stale reads.
func TestALeaderWithAHungDiskLosesItsLease(t *testing.T) {
	disks := map[raft.ServerID]*hangingStorage{}
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		disks[cfg.LocalID] = &hangingStorage{Storage: cfg.Storage}
		cfg.Storage = disks[cfg.LocalID]
	})
	old := c.groups[c.leader()]
	term := old.Stats().Term
	require.True(t, old.HoldsLease(term))
	require.False(t, old.HoldsLease(term+1))
	disk := disks[old.cfg.LocalID]
	disk.hung.Lock()
	data, err := sealJournal([][]byte{[]byte("lost or not")})
	require.NoError(t, err)
	hanging := old.Propose(data)
	// The disk of the leader is slow and the others cannot know it: one of them is told
	// to take over, as the watchdog does.
	next := c.groups[0]
	if next == old {
		next = c.groups[1]
	}
	next.port.timeoutNow(time.Minute)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(c.groups[:], func(g *Group) bool { return g != old && g.IsLeader() })
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return !old.HoldsLease(term) }, time.Minute, time.Millisecond)
	require.True(t, old.IsLeader(), "Raft does not know")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorIs(t, old.ConfirmLeadership(ctx, term), ErrNotLeader)
	disk.hung.Unlock()
	_, _ = hanging.Wait(t.Context()) // either is right
}
