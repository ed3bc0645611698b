package backend

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/partition"
)

func TestScanOfAPartitionWithoutLeader(t *testing.T) {
	q := Queried{Router: routing.New(1, fabric.DirectoryConfig{LookupTimeout: time.Millisecond})}
	_, err := q.Scan(t.Context(), 0, &partition.Scan{})
	require.EqualError(t, err, "this node finds no leader for it (see GET /cluster-health of the admin API)")
	require.ErrorIs(t, err, partition.ErrNotLeader)
}
