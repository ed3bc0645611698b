package budget

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var (
	descBodies   = metrics.Desc("body_memory_bytes", "Memory for bodies of requests and responses in progress that counts towards networking.body-memory-limit.")
	descRefused  = metrics.Desc("body_memory_refusals_total", "Requests rejected because the memory for bodies was exhausted (RT0026).")
	descPool     = metrics.PoolUsage("bodies")
	descPoolSize = metrics.PoolCapacity("bodies")
)

// Collector returns the metrics of the budget.
func (b *Budget) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		used, refused := b.Stats()
		out.Gauge(descBodies, float64(used))
		out.Counter(descRefused, refused)
		out.Gauge(descPool, float64(used))
		out.Gauge(descPoolSize, float64(b.limit))
	}, descBodies, descRefused, descPool, descPoolSize)
}
