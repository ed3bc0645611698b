package stats

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestHandlersAreCountedSeparately(t *testing.T) {
	h := NewHandlers(prometheus.NewRegistry(), "p", true)
	h.Ended("A", "x", EndSuccess, time.Second)
	h.Ended("A", "x", EndFailure, -time.Second)
	h.Ended("A", "x", EndCancelled, time.Second)
	h.Ended("A", "y", EndSuccess, time.Second)
	h.Attempted("A", "x", Failed, time.Second, "")
	h.Attempted("A", "x", Failed, time.Second, "")
	require.Equal(t, 1.0, testutil.ToFloat64(h.completed.WithLabelValues("A", "x", "success")))
	require.Equal(t, 1.0, testutil.ToFloat64(h.completed.WithLabelValues("A", "x", "failure")))
	require.Equal(t, 1.0, testutil.ToFloat64(h.completed.WithLabelValues("A", "x", "cancelled")))
	require.Equal(t, 1.0, testutil.ToFloat64(h.completed.WithLabelValues("A", "y", "success")))
	require.Equal(t, 1, testutil.CollectAndCount(h.attempted)) // only outcomes that occurred
}

func TestHandlersCanBeLeftOut(t *testing.T) {
	h := NewHandlers(prometheus.NewRegistry(), "p", false)
	h.Ended("A", "x", EndSuccess, 0)
	h.Ended("A", "y", EndSuccess, 0)
	require.Equal(t, 2.0, testutil.ToFloat64(h.completed.WithLabelValues("A", "", "success")))
	require.Equal(t, 1, testutil.CollectAndCount(h.durations))
}

// TestTheNumberOfHandlersIsBounded counts those beyond the limit together.
func TestTheNumberOfHandlersIsBounded(t *testing.T) {
	h := NewHandlers(prometheus.NewRegistry(), "p", true)
	for i := range 2 * maxHandlers {
		h.Ended("S"+strconv.Itoa(i), "x", EndSuccess, 0)
		h.Attempted("S"+strconv.Itoa(i), "x", Succeeded, 0, "")
	}
	require.Equal(t, maxHandlers+1, testutil.CollectAndCount(h.durations))
	require.Equal(t, float64(maxHandlers), testutil.ToFloat64(h.completed.WithLabelValues(OtherLabel, OtherLabel, "success")))
	var none *Handlers
	none.Ended("", "", EndSuccess, 0)
	none.Attempted("", "", Failed, 0, "")
}
