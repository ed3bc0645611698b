package stats

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Unix(1_800_000_000, 0)

const second = int64(1000)

func query(steps int) Query {
	from := start.UnixMilli()
	return Query{From: from, To: from + int64(steps)*stepMillis, Step: stepMillis, Services: 20}
}

func TestHistoryHasDeltasPerStep(t *testing.T) {
	c := NewCounters(nil)
	load := map[string]Load{"A": {InFlight: 3, Waiting: 2}}
	h := NewHistory(c, func() map[string]Load { return map[string]Load{"A": load["A"]} })
	c.Started("A")
	c.Started("A")
	c.AttemptFailed("B")
	h.Record(start.Add(2 * Step))
	c.Started("A")
	c.Ended("A", "x", EndSuccess, 10*time.Millisecond)
	c.Ended("A", "x", EndFailure, 10*time.Millisecond)
	c.Ended("A", "x", EndCancelled, -time.Second) // before it was due
	h.Record(start.Add(3*Step + time.Second))
	h.Record(start.Add(3*Step + 2*time.Second)) // the step is already recorded
	require.EqualValues(t, 1, c.FailedAttempts())

	r := h.Select(query(10))
	require.Equal(t, 1, r.First)
	require.Equal(t, 2, r.Count)
	require.Len(t, r.Services, 2)
	a, b := r.Services[0], r.Services[1]
	require.Equal(t, "A", a.Service)
	require.Equal(t, []uint64{2, 1}, a.Started)
	require.Equal(t, []uint64{0, 1}, a.Succeeded)
	require.Equal(t, []uint64{0, 1}, a.Failed)
	require.Equal(t, []uint64{0, 1}, a.Cancelled)
	require.Equal(t, []uint64{3, 3}, a.InFlight)
	require.Equal(t, []uint64{2, 2}, a.Backlog)
	require.Equal(t, []uint64{1, 0}, b.Retries)
	require.Zero(t, a.Latencies[1][0])
	p50, ok := Quantile(&a.Latencies[1], 0.5)
	require.True(t, ok)
	require.InDelta(t, 10, float64(p50)/float64(time.Millisecond), 3)
	_, ok = Quantile(&a.Latencies[0], 0.5)
	require.False(t, ok, "no invocation has ended in the first step")

	// One step for both: counts add up, gauges are maxima.
	q := query(10)
	q.Step = 5 * stepMillis
	a = h.Select(q).Services[0]
	require.Equal(t, []uint64{3}, a.Started)
	require.Equal(t, []uint64{3}, a.InFlight)

	q.Service = "B"
	only := h.Select(q)
	require.Len(t, only.Services, 1)
	require.Equal(t, "B", only.Services[0].Service)

	q.Service, q.Services = "", 1
	others := h.Select(q).Services
	require.Equal(t, []string{Other, "A"}, []string{others[0].Service, others[1].Service})
	require.Equal(t, []uint64{1}, others[0].Retries)
}

func TestHistoryIsBounded(t *testing.T) {
	c := NewCounters(nil)
	h := NewHistory(c, func() map[string]Load { return nil })
	for i := range MaxServices + 10 {
		c.Started(fmt.Sprint(i))
	}
	require.Len(t, *c.services.Load(), MaxServices)
	h.Record(start)
	require.Len(t, h.steps[0].services, MaxServices+1)
	require.EqualValues(t, 10, h.steps[0].services[MaxServices].started)
	for i := range Steps + 1 {
		c.Started("7")
		h.Record(start.Add(time.Duration(i+1) * Step))
	}
	require.Len(t, h.steps, Steps)
	require.Len(t, *c.services.Load(), 1, "services without activity make room")
	require.Len(t, h.last, 2)
}

func TestMergeAddsNodes(t *testing.T) {
	result := func(first, count int, value uint64) Result {
		s := newSeries("A", count)
		for i := range count {
			s.Started[i] = value
			s.Latencies[i][3] = value
		}
		return Result{First: first, Count: count, Services: []Series{*s}}
	}
	m := Merge([]Result{result(2, 3, 1), {}, result(4, 2, 10)})
	require.Equal(t, 2, m.First)
	require.Equal(t, 4, m.Count)
	require.Equal(t, []uint64{1, 1, 11, 10}, m.Services[0].Started)
	require.EqualValues(t, 11, m.Services[0].Latencies[2][3])
	total := m.Total()
	require.Equal(t, m.Services[0].Started, total.Started)
	require.Zero(t, Merge(nil).Count)
}

func TestBuckets(t *testing.T) {
	for i, bound := range bounds {
		require.Equal(t, i, bucketOf(bound))
		require.Equal(t, i+1, bucketOf(bound+1))
	}
	require.Zero(t, bucketOf(-time.Second))
	require.Equal(t, 500*time.Microsecond, bounds[0])
	require.Greater(t, bounds[len(bounds)-1], time.Hour)
	var nothing *Counters
	nothing.Started("A")
	nothing.Ended("A", "x", EndSuccess, 0)
	nothing.AttemptFailed("A")
	require.Zero(t, nothing.FailedAttempts())
	require.EqualValues(t, 10*second, stepMillis)
}
