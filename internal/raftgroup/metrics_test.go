package raftgroup

import (
	"context"
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

	p, err := NewProposer[uint64](g, ProposerConfig{Seal: sealJournal, maxQueueCommands: 300})
	require.NoError(t, err)
	var o outcomes
	for range 300 {
		o.expect(t, p, []byte("x"))
	}
	require.ErrorIs(t, p.Submit([]byte("one too many"), 0, &o), ErrOverloaded)
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
