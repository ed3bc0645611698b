package admin

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/stats"
	"platform/metadata"
)

// atLevel4 is a server whose cluster has feature level 4.
func atLevel4(t *testing.T) *testServer {
	w := newTestServer(t, nil)
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, Replication: 1, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	return w
}

func TestStatsAddUpNodes(t *testing.T) {
	w := atLevel4(t)
	counters := stats.NewCounters(nil)
	history := stats.NewHistory(counters, func() map[string]stats.Load { return map[string]stats.Load{"A": {InFlight: 4}} })
	now := time.Now()
	for range 10 {
		counters.Started("A")
		counters.Ended("A", "x", stats.EndSuccess, 20*time.Millisecond)
	}
	counters.Ended("B", "x", stats.EndFailure, time.Millisecond)
	counters.Ended("B", "x", stats.EndCancelled, time.Millisecond)
	history.Record(now)
	step := stats.Step.Milliseconds()
	to := now.UnixMilli() / step * step
	result := history.Select(stats.Query{From: to - 6*step, To: to + step, Step: step, Services: 1})
	w.cluster.stats = []NodeStats{{ID: 1, Name: "n1", Result: result}, {ID: 2, Name: "n2", Result: result}, {ID: 3, Name: "n3", Reason: "its server is too old"}}

	var view struct {
		StepMS   int64 `json:"step_ms"`
		Series   *seriesView
		Services map[string]*seriesView
		Complete bool
		Nodes    []statsNodeView
	}
	body := requireStatus(t, http.StatusOK, w.ask(t, "GET", "/stats?range=1m&step=10s&services=1", ""))
	require.NoError(t, json.Unmarshal([]byte(body), &view))
	require.Equal(t, step, view.StepMS)
	require.Len(t, view.Series.Started, 6)
	last := result.First
	require.Nil(t, view.Series.Started[0], "no data")
	require.EqualValues(t, 20, *view.Series.Started[last])
	require.EqualValues(t, 2, *view.Series.Failed[last])
	require.EqualValues(t, 2, *view.Series.Cancelled[last])
	require.EqualValues(t, 8, *view.Series.InFlight[last])
	require.EqualValues(t, 20, *view.Services["A"].Succeeded[last])
	require.InDelta(t, 20, *view.Services["A"].P99[last], 6)
	require.EqualValues(t, 2, *view.Services["(other)"].Failed[last])
	require.False(t, view.Complete)
	require.Equal(t, "its server is too old", view.Nodes[2].Reason)
	require.Equal(t, 6*step, w.cluster.statsQuery.To-w.cluster.statsQuery.From)
}

func TestStatsParameters(t *testing.T) {
	w := atLevel4(t)
	for query, says := range map[string]string{
		"?range=x": "'range' is invalid", "?range=5s": "less than 10s", "?range=4h": "more than 3h", "?step=15s": "not a multiple",
		"?range=1m&step=2m": "not a multiple", "?services=51": "'services' is invalid", "?services=-1": "'services' is invalid",
		"?servic=x": "did you mean 'service'",
	} {
		require.Contains(t, requireStatus(t, http.StatusBadRequest, w.ask(t, "GET", "/stats"+query, "")), says, query)
	}
	requireStatus(t, http.StatusOK, w.ask(t, "GET", "/stats?range=3h", ""))
	require.EqualValues(t, 30_000, w.cluster.statsQuery.Step)
	require.Equal(t, defaultStatsServices, w.cluster.statsQuery.Services)
}

func TestStatsNeedTheirFeatureLevel(t *testing.T) {
	w := newTestServer(t, nil)
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "GET", "/stats", "")), "needs feature level 4")
}
