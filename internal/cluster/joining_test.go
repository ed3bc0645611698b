package cluster

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/cluster/datadir"
	"platform/internal/raftgroup"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// openMetadata opens the metadata of the node n1, its only replica.
func openMetadata(t *testing.T) *metadata.Store {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	self := raft.Server{ID: "n1/01A", Address: "127.0.0.1:1"} // never dialed
	transport, err := raftgroup.NewTransport(raftgroup.TransportConfig{ClusterID: "c", NodeID: "n1", Address: self.Address, Logger: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, transport.Close()) })
	store, err := metadata.Open(metadata.Config{
		Dir: filepath.Join(t.TempDir(), "metadata"), LocalID: self.ID, Transport: transport, Voters: []raft.Server{self}, Profile: raftgroup.Test(), Logger: log,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// TestAJoiningNodeIsNotOfAnotherCluster queries a node that has not received the metadata yet,
// as the metadata leader does while nodes join.
func TestAJoiningNodeIsNotOfAnotherCluster(t *testing.T) {
	store := openMetadata(t)
	s := NewServer(ServerConfig{
		Self: datadir.Identity{Node: "n1", Incarnation: "01A"}, Log: slog.New(slog.DiscardHandler),
		Draining: func() bool { return false }, Disk: func() string { return "" },
	})
	s.OpenMetadata(store)

	status, err := s.Status(t.Context(), &nodepb.StatusRequest{ClusterId: "x", Details: true})
	require.NoError(t, err)
	require.Empty(t, status.Error)
	require.Equal(t, "n1", status.Name)
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan error, 1)
	go func() {
		_, err := s.Follow(ctx, &nodepb.FollowRequest{ClusterId: "x", Index: 1 << 40})
		followed <- err
	}()
	select {
	case err := <-followed:
		require.NoError(t, err, "it waits for the metadata")
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	require.ErrorIs(t, <-followed, context.Canceled)

	_, err = store.Provision(t.Context(), metadata.Cluster{Name: "c", Partitions: 1})
	require.NoError(t, err)
	status, err = s.Status(t.Context(), &nodepb.StatusRequest{ClusterId: "x"})
	require.NoError(t, err)
	require.Contains(t, status.Error, "another cluster")
	_, err = s.Follow(t.Context(), &nodepb.FollowRequest{ClusterId: "x"})
	require.ErrorContains(t, err, "another cluster")
}
