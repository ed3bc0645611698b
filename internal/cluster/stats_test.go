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

func TestSeriesAreSentWhole(t *testing.T) {
	want := stats.Result{First: 2, Count: 1, Services: []stats.Series{{
		Service: "s", Started: []uint64{1}, Succeeded: []uint64{2}, Failed: []uint64{3}, Cancelled: []uint64{4}, Retries: []uint64{5},
		InFlight: []uint64{6}, Backlog: []uint64{7}, Latencies: [][stats.Buckets]uint64{{3: 8}},
	}}}
	got, err := statsFromProto(statsToProto(want), stats.Query{From: 0, To: 100, Step: 10})
	require.NoError(t, err)
	require.Equal(t, want, got)
}
