package replicas

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster"
	"platform/internal/cluster/fabric"
	"platform/metadata"
	nodepb "platform/proto/node"
)

func TestClosedForSpace(t *testing.T) {
	layout := &metadata.Layout{Nodes: []metadata.Node{{ID: 1, Name: "n1"}, {ID: 2, Name: "n2"}, {ID: 3, Name: "n3"}}}
	full := &nodepb.StatusResponse{Disk: "is full (0 B free): its replicas are closed until space is freed"}
	short := &nodepb.StatusResponse{Disk: "is nearly full (40.0 MiB free): it leads nothing if others can, and takes nothing new"}
	require.NoError(t, closedForSpace(4, []uint32{1, 2, 3}, layout, cluster.Statuses{1: full, 2: short, 3: {}}))
	require.NoError(t, closedForSpace(4, []uint32{1}, layout, cluster.Statuses{}))

	err := closedForSpace(4, []uint32{1, 2, 3}, layout, cluster.Statuses{1: full, 3: full})
	require.EqualError(t, err, "2 of the 3 replicas of partition 4 are closed until space is freed on the disk of n1, n3")
	var unserved *fabric.UnservedError
	require.ErrorAs(t, err, &unserved)
	require.Error(t, closedForSpace(4, []uint32{1}, layout, cluster.Statuses{1: full}))
}
