package raftgroup

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// gathered returns the samples of a registry by name; of a vector or of several
// kinds, their sum.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				values[f.GetName()+"_count"] += float64(m.Histogram.GetSampleCount())
				values[f.GetName()+"_sum"] += m.Histogram.GetSampleSum()
			default:
				values[f.GetName()] += m.Counter.GetValue()
			}
		}
	}
	return values
}

func TestMetricsCountWhatAGroupDoes(t *testing.T) {
	n := startNode(t, t.TempDir(), "")
	t.Cleanup(n.stop)
	reg := prometheus.NewRegistry()
	cfg := n.config(1, memJournal(t), n.voter())
	cfg.Metrics = NewMetrics(reg, "partition")
	reg.MustRegister(n.db.Collector())
	g, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	waitLeader(t, g)

	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, MaxQueueCommands: 300})
	require.NoError(t, err)
	var o outcomes
	for range 300 {
		o.expect(t, p, []byte("x"))
	}
	require.ErrorIs(t, p.Submit([]byte("one too many"), &o), ErrOverloaded)
	stop := run(t, p)
	o.wg.Wait()
	stop()
	require.NoError(t, g.Snapshot(t.Context()))
	alone, err := sealJournal([][]byte{[]byte("alone")})
	require.NoError(t, err)
	_, err = g.Propose(alone).Wait(t.Context())
	require.NoError(t, err)

	got := gathered(t, reg)
	require.EqualValues(t, 3, got["platform_raft_entry_commands_count"])
	require.EqualValues(t, 301, got["platform_raft_entry_commands_sum"])
	require.EqualValues(t, 3, got["platform_raft_commit_duration_seconds_count"])
	require.Greater(t, got["platform_raft_entry_bytes_sum"], 300.0)
	require.EqualValues(t, 1, got["platform_raft_failed_commands_total"])
	require.EqualValues(t, 1, got["platform_raft_elections_won_total"])
	require.EqualValues(t, 1, got["platform_raft_elections_started_total"])
	require.EqualValues(t, 1, got["platform_raft_snapshots_taken_total"])
	require.GreaterOrEqual(t, got["platform_raft_log_fsync_duration_seconds_count"], 2.0)
	require.Less(t, got["platform_raft_log_fsync_duration_seconds_sum"], 60.0, "it is in seconds")
	require.Eventually(t, func() bool { return gathered(t, reg)["platform_raft_leader_changes_total"] == 1 }, time.Minute, time.Millisecond)
	require.Zero(t, got["platform_raft_requests_total"], "there is no peer")
}

// Both kinds of log are one family; the label group distinguishes them.
func TestWritesOfAllLogsAreTimed(t *testing.T) {
	reg := prometheus.NewRegistry()
	n := startNode(t, t.TempDir(), "")
	t.Cleanup(n.stop)
	bolt, err := OpenBoltStorage(filepath.Join(t.TempDir(), "log.db"), BoltOptions{Logger: testLogger(t), MmapBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, bolt.Close()) }()
	reg.MustRegister(n.db.Collector(), bolt.Collector())
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

func TestWithoutMetricsNothingIsCounted(t *testing.T) {
	var m *Metrics
	m.ended(time.Time{}, 1, 1, nil)
	m.ended(time.Time{}, 1, 1, ErrStopped)
	m.leaderChanged()
	m.sentSnapshot(nil)
	require.Zero(t, testing.AllocsPerRun(10, func() { m.refused(1, ErrOverloaded) }))
}

func TestReasonsOfFailedCommands(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg, "metadata")
	for _, err := range []error{ErrOverloaded, ErrStopped, ErrNotLeader, ErrUnknownOutcome} {
		m.refused(2, err)
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	reasons := map[string]float64{}
	for _, f := range families {
		for _, s := range f.Metric {
			for _, l := range s.Label {
				if l.GetName() == "reason" {
					reasons[l.GetValue()] = s.Counter.GetValue()
				}
			}
		}
	}
	require.Equal(t, map[string]float64{"overloaded": 2, "stopped": 2, "not_leader": 2, "unknown_outcome": 2}, reasons)
}

func TestCoarseBounds(t *testing.T) {
	var fine []float64
	for i := range 100 {
		fine = append(fine, float64(i)*1e6) // milliseconds in nanoseconds
	}
	require.Equal(t, []float64{0.001, 0.002, 0.004, 0.007, 0.012, 0.021, 0.036, 0.062}, coarseBounds(fine))
}
