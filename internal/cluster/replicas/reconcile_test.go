package replicas

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/diskspace"
	"platform/internal/feature"
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
	m := testManager(t)
	m.Nodes = noNodes{}
	m.Disk = diskspace.New("/proc", func(bool) {}, m.Log) // has no free space, which the first check notices
	layout, _ := m.Store.Layout()
	require.NoError(t, m.openReplica(t.Context(), 0, layout))
	p := m.Replica(0)
	defer func() { require.NoError(t, p.Stop(context.Background())) }()
	require.NoError(t, p.WaitLeading(t.Context()))
	other, err := m.Store.RegisterNode(t.Context(), metadata.Node{Name: "n2", Incarnation: "y", FabricAddress: "http://127.0.0.1:2", FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	layout, _ = m.Store.Layout()
	place := layout.Partitions[0]
	place.Replicas = append(place.Replicas, other.ID)
	_, err = m.Store.SetPartition(t.Context(), place)
	require.NoError(t, err)
	layout, _ = m.Store.Layout()

	done := make(chan error, 1)
	go func() { done <- m.lead(t.Context(), p, layout, new(transfers)) }()
	require.Eventually(t, func() bool { return len(p.Status().Followers) == 1 }, 30*time.Second, time.Millisecond)
	require.Equal(t, diskspace.Full, m.Disk.Check())
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		require.Fail(t, "the leader continues to wait")
	}
}

// A transfer that fails has blocked the partition, so further attempts are increasingly rare, until this node has lost the
// leadership.
func TestFailedTransfersAreIncreasinglyRare(t *testing.T) {
	now := time.Unix(1000, 0)
	var next transfers
	next.observe(true, now)
	require.Equal(t, now.Add(settleTime), next.due)
	for _, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		next.failed(now)
		next.observe(true, now)
		require.Equal(t, now.Add(pause), next.due)
	}
	for range 100 {
		next.failed(now)
	}
	require.Equal(t, now.Add(transferPauseMax), next.due)
	next.observe(false, now)
	next.observe(true, now)
	require.Equal(t, transfers{now.Add(settleTime), transferPause}, next)
}
