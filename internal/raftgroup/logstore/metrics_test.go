package logstore

import (
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// Both kinds of log are one family; the label group distinguishes them.
func TestWritesOfAllLogsAreTimed(t *testing.T) {
	reg := prometheus.NewRegistry()
	db, err := Open(t.TempDir(), Options{Logger: quiet})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	bolt, err := OpenBolt(filepath.Join(t.TempDir(), "log.db"), BoltOptions{Logger: quiet, MmapBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, bolt.Close()) }()
	reg.MustRegister(db.Collector(), bolt.Collector())
	require.NoError(t, bolt.StoreLogs(testLogs(1, 3)))
	require.NoError(t, bolt.SetUint64([]byte("CurrentTerm"), 7))
	require.NoError(t, bolt.SetUint64([]byte("CurrentTerm"), 7), "unchanged, so nothing is written")

	families, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "platform_raft_log_fsync_duration_seconds", families[0].GetName())
	writes, bounds := map[string]uint64{}, map[string][]float64{}
	for _, m := range families[0].Metric {
		group := m.Label[0].GetValue()
		writes[group] = m.Histogram.GetSampleCount()
		for _, b := range m.Histogram.Bucket {
			bounds[group] = append(bounds[group], b.GetUpperBound())
		}
	}
	require.Len(t, writes, 2)
	require.Greater(t, len(bounds["metadata"]), 15)
	require.Equal(t, bounds["metadata"], bounds["partition"], "queries add the buckets of all groups")
	require.EqualValues(t, 2, writes["metadata"])
	require.Contains(t, writes, "partition")
}

func TestCoarseBounds(t *testing.T) {
	var fine []float64
	for i := range 100 {
		fine = append(fine, float64(i)*1e6) // milliseconds in nanoseconds
	}
	require.Equal(t, []float64{0.001, 0.002, 0.004, 0.007, 0.012, 0.021, 0.036, 0.062}, coarseBounds(fine))
}
