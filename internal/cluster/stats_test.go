package cluster

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/stats"
	nodepb "platform/proto/node"
)

// TestSeriesOfAnotherNodeFitTheRequest requires that a node which sends nonsense is an error, and
// not the end of this one.
func TestSeriesOfAnotherNodeFitTheRequest(t *testing.T) {
	q := stats.Query{From: 0, To: 100, Step: 10}
	services := []*nodepb.ServiceStats{{Service: "s"}}
	for _, bad := range []*nodepb.StatsResponse{
		{First: -1, Steps: 1, Services: services},
		{First: 1, Steps: -1, Services: services},
		{First: 1, Steps: 11, Services: services},
		{First: math.MaxInt64, Steps: 1, Services: services},
		{First: 1, Steps: math.MaxInt64, Services: services},
		{First: 1, Steps: 10, Services: services},
	} {
		_, err := statsFromProto(bad, q)
		require.Error(t, err, "%d steps from %d on", bad.Steps, bad.First)
	}
	r, err := statsFromProto(&nodepb.StatsResponse{First: 1, Steps: 10}, q)
	require.NoError(t, err)
	require.Equal(t, stats.Result{First: 1, Count: 10}, r)
}
