package otlp

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var descExports = metrics.Desc("otlp_exports_total", "Log records and collections of metrics by outcome: exported, failed to be exported, dropped since too many waited.", "signal", "outcome")

// NewCollector returns the metrics of the exports of log records and metrics, which may be nil.
func NewCollector(logs *LogExport, collections *MetricExport) prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		for signal, n := range map[Signal]Counts{Logs: logs.Counts(), Metrics: collections.Counts()} {
			out.Counter(descExports, n.Exported, string(signal), "exported")
			out.Counter(descExports, n.Failed, string(signal), "failed")
			out.Counter(descExports, n.Dropped, string(signal), "dropped")
		}
	}, descExports)
}
