package tracing

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
	"platform/internal/otlp"
)

var descSpans = metrics.Desc("tracing_spans_total", "Spans by outcome: exported, failed to be exported, dropped since too many waited.", "outcome")

// Collector returns the metrics of the export, which are 0 for a nil Tracer.
func (t *Tracer) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		var n otlp.Counts
		if t != nil {
			n = t.queue.Counts()
		}
		out.Counter(descSpans, n.Exported, "exported")
		out.Counter(descSpans, n.Failed, "failed")
		out.Counter(descSpans, n.Dropped, "dropped")
	}, descSpans)
}
