package raftgroup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// The timeouts are much longer than the test, so peers cannot detect by themselves that a
// replica has failed while its process is running.
func TestAQuarantinedLeaderTransfersLeadership(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	c.groups[0].port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, c.groups[0], 1, 3)
	c.groups[0].Quarantine(errors.New("its tables differ from the others'"))
	c.awaitOther(0)
	<-c.groups[0].Done()
	c.crash(1) // no transfer target is left
	c.crash(2)
}

// A leader with a damaged entry cannot bring its followers up to date, so that Raft's own
// transfer does not end.
func TestALeaderWithADamagedEntryTransfersLeadership(t *testing.T) {
	disks := map[raft.ServerID]*damagedStorage{}
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		disks[cfg.LocalID] = &damagedStorage{Storage: cfg.Storage}
		cfg.Storage, cfg.Profile.LogCacheBytes = disks[cfg.LocalID], 1
		patient(cfg)
	})
	g := c.groups[0]
	g.port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, g, 1, 3)
	disks[g.cfg.LocalID].at.Store(g.Stats().LastIndex + 1)
	data, err := sealJournal([][]byte{[]byte("command 4")})
	require.NoError(t, err)
	damaged := g.Propose(data)
	c.awaitOther(0)
	<-g.Done()
	require.ErrorIs(t, g.Err(), ErrQuarantined)
	_, err = damaged.Wait(t.Context())
	require.Error(t, err)
	c.crash(1) // no transfer target is left
	c.crash(2)
}

// A leader whose disk hangs cannot transfer leadership as Raft does, because Raft waits for the
// disk: its successor is told to start an election.
func TestALeaderThatWaitsForItsDiskTransfersLeadership(t *testing.T) {
	disks := map[raft.ServerID]*hangingStorage{}
	ended := make(chan struct{}, 100)
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		disks[cfg.LocalID] = &hangingStorage{Storage: cfg.Storage}
		cfg.Storage = disks[cfg.LocalID]
		cfg.HandOver = func(context.Context) { ended <- struct{}{} }
		patient(cfg)
	})
	g := c.groups[0]
	g.port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	disk := disks[g.cfg.LocalID]
	disk.hung.Lock()
	data, err := sealJournal([][]byte{[]byte("command 1")})
	require.NoError(t, err)
	hanging := g.Propose(data)
	require.Eventually(t, func() bool { return disk.waiting.Load() > 0 }, time.Minute, time.Millisecond)
	g.resign()
	c.awaitOther(0)
	require.NotEmpty(t, ended, "its duties ended before")
	disk.hung.Unlock()
	_, _ = hanging.Wait(t.Context()) // either is right
}

// A successor that responds late is probed again: the leader serves meanwhile.
func TestATransferToASuccessorThatRespondsLateIsRetried(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	g := c.groups[0]
	g.port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	require.NoError(t, g.Barrier(t.Context()))
	require.Eventually(t, func() bool { return c.groups[1].Stats().LastIndex == g.Stats().LastIndex }, time.Minute, time.Millisecond)
	c.gates[0].close(answers(c.voters[1]))
	transferred := make(chan error, 1)
	go func() { transferred <- g.TransferLeadership(t.Context(), c.voters[1].ID) }()
	time.AfterFunc(probeTimeout+50*time.Millisecond, func() { c.gates[0].open(answers(c.voters[1])) })
	require.NoError(t, <-transferred)
	c.awaitOther(0)
}

// TestAStopDoesNotWaitForAnUnreachableSuccessor holds up all that the others send to the
// leader, so that it never learns of the next leader.
func TestAStopDoesNotWaitForAnUnreachableSuccessor(t *testing.T) {
	c := newTestClusterWith(t, 1000, patient)
	g := c.groups[0]
	g.port.timeoutNow(time.Minute)
	require.Zero(t, c.leader())
	proposeMany(t, g, 1, 3)
	for _, i := range []int{1, 2} {
		c.gates[i].close(requests(c.voters[0]))
	}
	begin := time.Now()
	require.NoError(t, g.Shutdown(t.Context()))
	require.Less(t, time.Since(begin), 30*time.Second, "the election time-out is a minute")
	for _, i := range []int{1, 2} {
		c.gates[i].open(requests(c.voters[0]))
	}
	c.awaitOther(0)
	c.crash(1) // it has no transfer target
	c.crash(2)
}
