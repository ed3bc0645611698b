package node

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/telemetry"
	"platform/partition/store"
)

// metricsHandler serves the figures of the node: those of the runtime and the
// process, of the partitions and of their tables.
func (n *Node) metricsHandler() http.Handler {
	registry := telemetry.NewRegistry()
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: telemetry.Namespace, Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: telemetry.Namespace, Name: name, Help: help}, value))
	}
	gauge("num_partitions", "Partitions that this node has a replica of.", func() float64 {
		held := 0
		for range n.router.replicas() {
			held++
		}
		return float64(held)
	})
	gauge("num_active_partition_leaders", "Partitions that this node leads.", func() float64 {
		leading := 0
		for p := range n.router.replicas() {
			if p.Leading() {
				leading++
			}
		}
		return float64(leading)
	})
	counter("partition_applied_commands_total", "Log commands applied since the start.", func() float64 {
		applied := uint64(0)
		for p := range n.router.replicas() {
			applied += p.Commands()
		}
		return float64(applied)
	})
	tables := func(value func(store.Stats) float64) func() float64 {
		return func() float64 { return value(n.tables.Stats()) }
	}
	gauge("tables_disk_bytes", "Size of the tables on disk.", tables(func(s store.Stats) float64 { return float64(s.DiskBytes) }))
	gauge("tables_compaction_debt_bytes", "Data of the tables that waits for compaction.", tables(func(s store.Stats) float64 { return float64(s.CompactionDebtBytes) }))
	counter("tables_flushes_total", "Flushes of the tables since the start.", tables(func(s store.Stats) float64 { return float64(s.Flushes) }))
	counter("tables_compactions_total", "Compactions of the tables since the start.", tables(func(s store.Stats) float64 { return float64(s.Compactions) }))
	return telemetry.MetricsHandler(registry)
}
