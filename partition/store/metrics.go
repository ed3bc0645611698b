package store

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var (
	descDiskBytes   = metrics.Desc("tables_disk_bytes", "Size of the tables on disk.")
	descDebt        = metrics.Desc("tables_compaction_debt_bytes", "Data of the tables that is due for compaction.")
	descFlushes     = metrics.Desc("tables_flushes_total", "Flushes of the tables since the start.")
	descCompactions = metrics.Desc("tables_compactions_total", "Compactions of the tables since the start.")
)

// Collector returns the metrics of the database.
func (db *DB) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		s := db.stats()
		out.Gauge(descDiskBytes, float64(s.DiskBytes))
		out.Gauge(descDebt, float64(s.CompactionDebtBytes))
		out.Counter(descFlushes, uint64(s.Flushes))
		out.Counter(descCompactions, uint64(s.Compactions))
	}, descDiskBytes, descDebt, descFlushes, descCompactions)
}
