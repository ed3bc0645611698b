package stats

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// exemplars is a histogram that counts observations and keeps their exemplars.
type exemplars struct {
	prometheus.Observer
	plain  int
	traces []string
}

func (e *exemplars) Observe(float64) { e.plain++ }

func (e *exemplars) ObserveWithExemplar(_ float64, labels prometheus.Labels) {
	e.traces = append(e.traces, labels["trace_id"])
}

func TestDurationsOfEachMagnitudeHaveExemplars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e exemplars
		d := NewDurations(&e)
		d.Observe(time.Millisecond, "")
		d.Observe(time.Millisecond, "first")
		d.Observe(time.Millisecond, "too early")
		d.Observe(time.Second, "slow")
		d.Observe(-time.Second, "clock was set back")
		d.Observe(1000*time.Hour, "very slow")
		time.Sleep(exemplarInterval)
		d.Observe(time.Millisecond, "second")
		require.Equal(t, []string{"first", "slow", "clock was set back", "very slow", "second"}, e.traces)
		require.Equal(t, 2, e.plain)
	})
}
