package kafka

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
	"platform/internal/subscription"
)

// outcome is how the processing of a record ended.
type outcome uint8

const (
	delivered outcome = iota
	skipped
	deadLettered
	tombstone // left out, since it has no value
	control   // a control record of a transaction; not counted
)

var outcomeNames = [...]string{"delivered", "skipped", "dead_lettered", "tombstone"}

// Metrics count records. There are at most subscription.MaxSubscriptions subscriptions.
type Metrics struct {
	records *prometheus.CounterVec
	commits prometheus.Histogram
}

// NewMetrics registers the metrics of an engine.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metrics.Namespace, Subsystem: "subscription", Name: "records_total", Help: "Records of event subscriptions by outcome.",
		}, []string{"subscription", "outcome"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: metrics.Namespace, Subsystem: "subscription", Name: "commit_seconds", Help: "Time to store a position in a topic partition.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	reg.MustRegister(m.records, m.commits)
	return m
}

func (m *Metrics) record(subscription string, o outcome) {
	if m != nil && o != control {
		m.records.WithLabelValues(subscription, outcomeNames[o]).Inc()
	}
}

// forget deletes the metrics of a subscription.
func (m *Metrics) forget(subscription string) {
	if m != nil {
		m.records.DeletePartialMatch(prometheus.Labels{"subscription": subscription})
	}
}

func (m *Metrics) stored(d time.Duration) {
	if m != nil {
		m.commits.Observe(d.Seconds())
	}
}

var (
	descLag   = metrics.Desc("subscription_lag_records", "Records that are not delivered, of the topic partitions that this node reads.", "subscription")
	descDelay = metrics.Desc("subscription_lag_seconds", "Age of the oldest record that is not delivered, of the topic partitions that this node reads.", "subscription")
	descState = metrics.Desc("subscription_topic_partitions", "Topic partitions that this node reads, by state.", "subscription", "state")
	descWhole = metrics.Desc("subscription_state", "1 for the state of a subscription on this node: the most severe one of its own and of the topic partitions that this node reads.", "subscription", "state")
	descDead  = metrics.Desc("subscription_dead_letters", "Records that could not be delivered and that the partitions keep that this node leads.", "subscription")
)

// Describe implements prometheus.Collector.
func (e *Engine) Describe(ch chan<- *prometheus.Desc) {
	ch <- descLag
	ch <- descDelay
	ch <- descState
	ch <- descWhole
	ch <- descDead
}

// Collect implements prometheus.Collector.
func (e *Engine) Collect(ch chan<- prometheus.Metric) {
	for _, st := range e.Statuses("", false) {
		lag, delay, known, states := int64(0), 0.0, false, map[subscription.State]int{}
		for i := range st.Partitions {
			p := &st.Partitions[i]
			known = known || p.Lag() >= 0
			lag += max(0, p.Lag())
			delay = max(delay, p.LagSeconds)
			states[p.State]++
		}
		if known {
			ch <- prometheus.MustNewConstMetric(descLag, prometheus.GaugeValue, float64(lag), st.Subscription)
		}
		if known && subscription.KnowsAge(lag, delay) {
			ch <- prometheus.MustNewConstMetric(descDelay, prometheus.GaugeValue, delay, st.Subscription)
		}
		ch <- prometheus.MustNewConstMetric(descWhole, prometheus.GaugeValue, 1, st.Subscription, string(summary(st).State))
		ch <- prometheus.MustNewConstMetric(descDead, prometheus.GaugeValue, float64(st.DeadLetters), st.Subscription)
		for state, n := range states {
			ch <- prometheus.MustNewConstMetric(descState, prometheus.GaugeValue, float64(n), st.Subscription, string(state))
		}
	}
}
