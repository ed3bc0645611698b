package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Namespace is the first part of every metric's name.
const Namespace = "platform"

// Registry collects the metrics of a node. All series carry the labels passed to
// NewRegistry.
type Registry struct {
	prometheus.Registerer
	prometheus.Gatherer
	registry *prometheus.Registry
}

// NewRegistry returns a registry with the metrics of the Go runtime and the
// process. Each package registers its own; there is no global registry.
func NewRegistry(labels prometheus.Labels) *Registry {
	registry := prometheus.NewRegistry()
	r := &Registry{prometheus.WrapRegistererWith(labels, registry), registry, registry}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// Handler serves the registry in the Prometheus exposition formats; OpenMetrics contains
// exemplars.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{Registry: r, EnableOpenMetrics: true})
}
