package raftgroup

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup/logstore"
)

func TestDutiesEndBeforeLeadershipIsTransferred(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		cfg.HandOver = func(context.Context) { once.Do(func() { close(asked); <-ended }) }
	})
	const from, to = 0, 1
	c.groups[from].port.timeoutNow(time.Minute)
	require.Equal(t, from, c.leader())
	term := c.groups[from].Stats().Term
	transferred := make(chan error, 1)
	go func() { transferred <- c.groups[from].TransferLeadership(t.Context(), c.voters[to].ID) }()
	select {
	case <-asked:
	case err := <-transferred:
		t.Fatalf("the leader's duties were not ended: %v", err)
	}
	_, err := c.groups[from].Propose([]byte("late")).Wait(t.Context())
	require.True(t, Definite(err), "nothing is proposed meanwhile: %v", err)
	require.True(t, c.groups[from].IsLeader())
	for _, g := range c.groups {
		require.LessOrEqual(t, g.Stats().Term, term, "there was no election") // one may not have heard of this one yet
	}
	close(ended)
	require.NoError(t, <-transferred)
	require.Equal(t, to, c.leader())
}

func TestASnapshotWaitsForTheEndOfATransfer(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		cfg.HandOver = func(context.Context) { once.Do(func() { close(begun); <-ended }) }
	})
	const from, to = 0, 1
	c.groups[from].port.timeoutNow(time.Minute)
	require.Equal(t, from, c.leader())
	proposeMany(t, c.groups[from], 0, 1)
	transferred := make(chan error, 1)
	go func() { transferred <- c.groups[from].TransferLeadership(t.Context(), c.voters[to].ID) }()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 2*snapshotRetry)
	require.ErrorIs(t, c.groups[from].Snapshot(ctx), context.DeadlineExceeded)
	cancel()
	close(ended)
	require.NoError(t, <-transferred)
	require.NoError(t, c.groups[from].Snapshot(t.Context()))
}

func TestDutiesResumeAfterAFailedHandover(t *testing.T) {
	const leader, target = 0, 1
	begun, end := make(chan uint64, 100), make(chan struct{}, 1)
	var c *testCluster
	var once sync.Once
	c = newTestClusterWith(t, 1000, func(cfg *Config) {
		const long = 4 * time.Second
		cfg.Profile.HeartbeatTimeout, cfg.Profile.ElectionTimeout, cfg.Profile.LeaderLeaseTimeout = long, long, long
		if cfg.LocalID != cfg.Voters[leader].ID {
			return
		}
		cfg.Lead = func(ctx context.Context, term uint64) error {
			begun <- term
			select {
			case <-end:
				return ErrNotLeader
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		cfg.HandOver = func(context.Context) {
			once.Do(func() { // the target has just responded; its requests are lost from now on
				c.gates[leader].close(requests(c.voters[target]))
				end <- struct{}{}
			})
		}
	})
	c.groups[leader].port.timeoutNow(time.Minute)
	require.Equal(t, leader, c.leader())
	term := <-begun
	require.ErrorContains(t, c.groups[leader].TransferLeadership(t.Context(), c.voters[target].ID), "transfer leadership to")
	require.Equal(t, term, <-begun, "it still leads")
	c.gates[leader].open(requests(c.voters[target]))
}

// TestATransferToATargetWithoutVotesHasNoEffect has a successor that receives requests, and whose
// own requests are lost. If it started an election, it would depose the leader without being elected.
func TestATransferToATargetWithoutVotesHasNoEffect(t *testing.T) {
	const leader, target = 0, 1
	c := newTestClusterWith(t, 1000, patient)
	c.groups[leader].port.timeoutNow(time.Minute)
	require.Equal(t, leader, c.leader())
	term := c.groups[leader].Stats().Term
	for _, other := range []int{leader, 2} {
		c.gates[target].close(requests(c.voters[other]))
	}
	defer c.gates[target].sever()
	require.ErrorContains(t, c.groups[leader].TransferLeadership(t.Context(), c.voters[target].ID), errNoMajority.Error())
	proposeMany(t, c.groups[leader], 0, 1)
	for _, g := range c.groups {
		require.LessOrEqual(t, g.Stats().Term, term, "there was no election")
	}
}

// hungTerm is a logstore.Storage that does not store a new term while it hangs.
type hungTerm struct {
	logstore.Storage
	hangs   atomic.Bool
	reached atomic.Bool // it hangs now
	end     chan struct{}
}

func (s *hungTerm) SetUint64(key []byte, v uint64) error {
	if s.hangs.Load() {
		s.reached.Store(true)
		<-s.end
	}
	return s.Storage.SetUint64(key, v)
}

// TestATransferToATargetThatHangsEndsSoon tells a successor to start an election that does not get to
// requesting votes. The leader must not wait for the election timeout, since it accepts no
// proposals meanwhile.
func TestATransferToATargetThatHangsEndsSoon(t *testing.T) {
	const leader, target = 0, 1
	var c *testCluster
	hung := &hungTerm{end: make(chan struct{})}
	c = newTestClusterWith(t, 1000, func(cfg *Config) {
		patient(cfg)
		if cfg.LocalID == cfg.Voters[target].ID {
			hung.Storage = cfg.Storage
			cfg.Storage = hung
		}
	})
	c.groups[leader].port.timeoutNow(time.Minute)
	require.Equal(t, leader, c.leader())
	hung.hangs.Store(true)
	defer close(hung.end)
	var begin time.Time
	require.Eventually(t, func() bool { // on a busy machine the target may be late to respond before the transfer
		begin = time.Now()
		require.Error(t, c.groups[leader].TransferLeadership(t.Context(), c.voters[target].ID))
		return hung.reached.Load()
	}, time.Minute, time.Millisecond)
	require.Less(t, time.Since(begin), 30*time.Second, "the election timeout is a minute")
	proposeMany(t, c.groups[leader], 0, 1)
}

// TestAProbeLeavesTheConfigurationUnchanged probes replicas while the group has a nonvoter:
// Raft shares the memory of its configuration with readers.
func TestAProbeLeavesTheConfigurationUnchanged(t *testing.T) {
	f := newChangingGroup(t, 1000)
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		f.start(id, t.TempDir(), "")
	}
	want := []raft.Server{f.servers("a")[0], {Suffrage: raft.Nonvoter, ID: "b", Address: f.nodes["b"].address()}, f.servers("c")[0]}
	f.reconcile(want)
	for _, n := range f.nodes {
		// c is a nonvoter before it is promoted.
		require.Eventually(t, func() bool { return sameServers(n.group.Servers(), want) }, time.Minute, time.Millisecond)
		before := slices.Clone(n.group.Servers())
		require.True(t, n.group.port.reachesMajority(t.Context(), time.Minute))
		require.Equal(t, before, n.group.Servers())
	}
}

// sameServers compares configurations whatever the order of their members.
func sameServers(a, b []raft.Server) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s raft.Server) bool { return !slices.Contains(b, s) })
}
