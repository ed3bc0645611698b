package replicas

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/diskspace"
	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// noNodes are nodes that do not respond.
type noNodes struct{ Nodes }

func (noNodes) Status(context.Context, metadata.Node) (*nodepb.StatusResponse, error) {
	return nil, context.DeadlineExceeded
}

// TestALeaderThatWaitsForAReplicaNoticesAFullDisk adds a replica on a node that does not respond,
// for which the leader waits. Its own disk becomes full meanwhile, so it has to be closed.
func TestALeaderThatWaitsForAReplicaNoticesAFullDisk(t *testing.T) {
	m := testReconciler(t)
	m.cfg.Nodes = noNodes{}
	m.cfg.Disk = diskspace.New("/proc", func(bool) {}, m.cfg.Log) // has no free space, which the first check notices
	layout, _ := m.cfg.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	defer func() { require.NoError(t, p.Stop(context.Background())) }()
	require.NoError(t, p.WaitLeading(t.Context()))
	other, err := m.cfg.Store.RegisterNode(t.Context(), metadata.Node{Name: "n2", Incarnation: "y", FabricAddress: "http://127.0.0.1:2", FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	layout, _ = m.cfg.Store.Layout()
	place := layout.Partitions[0]
	place.Replicas = append(place.Replicas, other.ID)
	_, err = m.cfg.Store.SetPartition(t.Context(), place)
	require.NoError(t, err)
	layout, _ = m.cfg.Store.Layout()

	done := make(chan error, 1)
	go func() { done <- m.lead(t.Context(), p, layout, new(transfers)) }()
	require.Eventually(t, func() bool { return len(p.Status().Followers) == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, diskspace.Full, m.cfg.Disk.Check())
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "the leader continues to wait")
	}
}

// A transfer that fails has blocked the partition, so further attempts are increasingly rare, until this node has lost the
// leadership. Other replicas may be tried immediately.
func TestFailedTransfersAreIncreasinglyRare(t *testing.T) {
	now := time.Unix(1000, 0)
	var next transfers
	next.observe(true, now)
	require.Equal(t, now.Add(settleTime), next.settled)
	require.True(t, next.ready("a", now))
	for _, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		next.failed("a", now)
		next.observe(true, now)
		require.False(t, next.ready("a", now.Add(pause-1)))
		require.True(t, next.ready("a", now.Add(pause)))
		require.True(t, next.ready("b", now))
	}
	for range 100 {
		next.failed("a", now)
	}
	require.False(t, next.ready("a", now.Add(transferPauseMax-1)))
	require.True(t, next.ready("a", now.Add(transferPauseMax)))
	next.observe(false, now)
	next.observe(true, now)
	require.Equal(t, transfers{settled: now.Add(settleTime)}, next)
}

// A leader that has to give up its leadership tries another replica after a failure.
func TestTheSuccessorIsTheReplicaWithTheFewestFailures(t *testing.T) {
	follower := func(id raft.ServerID, live bool) raftgroup.Follower {
		return raftgroup.Follower{Server: raft.Server{ID: id, Suffrage: raft.Voter}, Live: live, CaughtUp: live}
	}
	followers := []raftgroup.Follower{follower("a/x", false), follower("b/x", true), follower("c/x#1", true), follower("d/x", true)}
	available := map[raft.ServerID]bool{"a/x": true, "b/x": true, "c/x": true}
	var tried transfers
	for _, want := range []raft.ServerID{"b/x", "c/x#1", "b/x", "c/x#1"} {
		to, expected := tried.successor(followers, available)
		require.Equal(t, want, to)
		require.True(t, expected)
		tried.failed(to, time.Unix(1000, 0))
	}
	to, expected := tried.successor(followers[:1], available)
	require.Empty(t, to)
	require.True(t, expected)
	_, expected = tried.successor(followers[3:], available)
	require.False(t, expected)
}
