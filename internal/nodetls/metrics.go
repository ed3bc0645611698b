package nodetls

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var (
	descRefused = metrics.Desc("node_tls_refused_total", "Connections of nodes that were refused for lack of a valid certificate, or would be with security.node-tls.mode = require.")
	descPlain   = metrics.Desc("node_tls_plain_total", "Connections to and from nodes without TLS, which security.node-tls.mode = allow permits.")
)

// Collector returns the metrics of connections; there are none for a nil Security.
func (s *Security) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		if s != nil {
			out.Counter(descRefused, s.refused.Load())
			out.Counter(descPlain, s.plain.Load())
		}
	}, descRefused, descPlain)
}
