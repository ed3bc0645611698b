package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Namespace is the first part of every metric's name.
const Namespace = "platform"

// Registry collects the metrics of a node. All series have the labels that it was made
// with.
type Registry struct {
	prometheus.Registerer
	gathered *prometheus.Registry
}

// NewRegistry returns a registry with the metrics of the Go runtime and the
// process. Each package registers its own; there is no global registry.
func NewRegistry(labels prometheus.Labels) *Registry {
	gathered := prometheus.NewRegistry()
	r := &Registry{prometheus.WrapRegistererWith(labels, gathered), gathered}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// MetricsHandler serves the registry in the formats Prometheus reads.
func MetricsHandler(registry *Registry) http.Handler {
	return promhttp.HandlerFor(registry.gathered, promhttp.HandlerOpts{Registry: registry})
}
