package kafka

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

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
