package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/ingress"
	"platform/ingress/kafka"
	"platform/internal/certs"
	"platform/internal/cluster"
	"platform/internal/config"
	"platform/internal/metrics"
	"platform/internal/raftgroup"
	"platform/internal/stats"
	"platform/partition"
)

// nodeMetrics are the metrics that are created before the components that update them.
type nodeMetrics struct {
	registry *metrics.Registry
	// Metrics of the Raft groups of partitions and of the metadata.
	partitions, metadata *raftgroup.Metrics
	ingress              *ingress.Metrics
	digests              *partition.DigestMetrics
	handlers             *stats.Handlers
	kafka                *kafka.Metrics
}

// newMetrics returns the metrics of a node. If metrics are disabled, its fields are nil.
func newMetrics(cfg *config.Config) nodeMetrics {
	if cfg.DisablePrometheus {
		return nodeMetrics{}
	}
	r := metrics.NewRegistry(prometheus.Labels{"cluster_name": cfg.ClusterName, "node_name": cfg.NodeName})
	return nodeMetrics{
		registry: r, partitions: raftgroup.NewMetrics(r, "partition"), metadata: raftgroup.NewMetrics(r, "metadata"), ingress: ingress.NewMetrics(r),
		digests: partition.NewDigestMetrics(r), handlers: stats.NewHandlers(r, metrics.Namespace, cfg.MetricsPerHandler), kafka: kafka.NewMetrics(r),
	}
}

// registerMetrics registers the metrics that are read from the components at each scrape. The
// components must exist.
func (n *Node) registerMetrics() {
	if n.metrics.registry == nil {
		return
	}
	p, f := &n.port, &n.files
	n.metrics.registry.MustRegister(
		n.ready.Collector(), n.replicas.Collector(), n.router.Collector(), n.invoker.Collector(), n.outbox.Collector(), n.census.Collector(), n.bodies.Collector(), n.kafka,
		f.tables.Collector(), f.logs.Collector(), n.metadata.Collector(), cluster.NewCollector(n.metadata, p.members, n.replica().ID, n.router.Replicas()),
		p.client.Collector(), p.peers.Collector(), p.members.Collector(), n.keys.nodes.Collector(),
		certs.NewCollector(map[string]*certs.Store{"node": n.keys.nodes.Store(), "ingress": n.keys.listeners.ingress, "admin": n.keys.listeners.admin}),
		n.exports.tracer.Collector(), n.access.failures.Collector(),
	)
}
