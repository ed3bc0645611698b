package tracing

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/otlp"
)

// Collector returns the metrics of the export, which are 0 for a nil Tracer.
func (t *Tracer) Collector() prometheus.Collector { return metrics{t} }

type metrics struct{ t *Tracer }

var spansTotal = prometheus.NewDesc("platform_tracing_spans_total",
	"Spans by outcome: exported, failed to be exported, dropped since too many waited.",
	[]string{"outcome"}, nil)

// Describe implements prometheus.Collector.
func (metrics) Describe(out chan<- *prometheus.Desc) { out <- spansTotal }

// Collect implements prometheus.Collector.
func (c metrics) Collect(out chan<- prometheus.Metric) {
	var n otlp.Counts
	if c.t != nil {
		n = c.t.queue.Counts()
	}
	for outcome, count := range map[string]uint64{"exported": n.Exported, "failed": n.Failed, "dropped": n.Dropped} {
		out <- prometheus.MustNewConstMetric(spansTotal, prometheus.CounterValue, float64(count), outcome)
	}
}
