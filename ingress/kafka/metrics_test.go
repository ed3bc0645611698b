package kafka

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

// The age of the oldest record is not known while a subscription is paused, unless there is none.
func TestTheLagOfAPausedSubscription(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	reg := prometheus.NewRegistry()
	reg.MustRegister(h.engine)
	lag := func() (found []float64) { // records and, if it is known, seconds
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if name := f.GetName(); name == "platform_subscription_lag_records" || name == "platform_subscription_lag_seconds" {
				found = append(found, f.Metric[0].Gauge.GetValue())
			}
		}
		return found
	}
	w.eventually("there are no records", func() bool { return slices.Equal(lag(), []float64{0, 0}) })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	w.eventually("it is paused", func() bool { return h.status("orders", 0).State == subscription.Paused })
	w.produce(record("orders", 0, "", "1"))
	w.eventually("a record waits", func() bool {
		h.engine.reader("sub_1").notify()
		st := h.status("orders", 0)
		return st.Lag() == 1
	})
	require.Equal(t, []float64{1}, lag())
}

// The state is known also of a subscription without topic partitions, and the metrics of a deleted
// subscription are deleted.
func TestMetricsOfSubscriptions(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.metrics = NewMetrics(prometheus.NewRegistry())
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	w.subscribe("sub_2", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) { s.Cluster = "other" })
	h := w.start().leadAll()
	reg := prometheus.NewRegistry()
	reg.MustRegister(h.engine)
	states := func() (found map[string]string) {
		families, err := reg.Gather()
		require.NoError(t, err)
		found = map[string]string{}
		for _, f := range families {
			if f.GetName() != "platform_subscription_state" {
				continue
			}
			for _, m := range f.Metric {
				found[m.Label[1].GetValue()] = m.Label[0].GetValue() // sorted by name
			}
		}
		return found
	}
	w.eventually("both have a state", func() bool {
		s := states()
		return s["sub_1"] == "running" && s["sub_2"] == "orphaned"
	})
	w.eventually("the record is counted", func() bool { return testutil.CollectAndCount(w.metrics.records) == 1 })
	w.source.remove("sub_1")
	w.eventually("it is forgotten", func() bool { return testutil.CollectAndCount(w.metrics.records) == 0 })
}
