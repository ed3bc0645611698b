package tracing

import (
	"github.com/prometheus/client_golang/prometheus"
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
	e := &exporter{}
	if c.t != nil {
		e = c.t.exporter
	}
	for outcome, n := range map[string]uint64{"exported": e.exported.Load(), "failed": e.failed.Load(), "dropped": e.dropped.Load()} {
		out <- prometheus.MustNewConstMetric(spansTotal, prometheus.CounterValue, float64(n), outcome)
	}
}
