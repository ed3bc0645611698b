package cluster

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/datadir"
	"platform/internal/feature"
	"platform/metadata"
	"platform/partition"
)

// A replica that was down while its leader joined the partition does not know that one as a member, and neither does
// the partition table once that node is drained.
func TestALeaderlessReplicaAcceptsAnyMember(t *testing.T) {
	store := openMetadata(t)
	_, err := store.Provision(t.Context(), metadata.Cluster{Name: "c", Partitions: 1, FeatureLevel: feature.Supported()})
	require.NoError(t, err)
	for _, name := range []string{"n1", "n2"} {
		_, err = store.RegisterNode(t.Context(), metadata.Node{Name: name, Incarnation: "01A", FabricAddress: "http://127.0.0.1:1", FeatureLevel: feature.Supported()})
		require.NoError(t, err)
	}
	layout, _ := store.Layout()
	place := layout.Partitions[0]
	place.Replicas = []uint32{1}
	_, err = store.SetPartition(t.Context(), place)
	require.NoError(t, err)
	s := NewServer(ServerConfig{Self: datadir.Identity{Node: "n1", Incarnation: "01A"}, Log: slog.New(slog.DiscardHandler)})
	s.OpenMetadata(store)
	group := partition.GroupID(0)

	require.True(t, s.MayServe(group, "n1", false))
	require.False(t, s.MayServe(group, "n2", false))
	require.True(t, s.MayServe(group, "n2", true))
	require.False(t, s.MayServe(group, "n3", true), "not a member of the cluster")
	require.True(t, s.MayServe(metadata.GroupID, "n3", true))
}
