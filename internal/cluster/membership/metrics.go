package membership

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var descRequests = metrics.NodeRequests("gossip")

// Collector returns the metrics of packets sent and streams opened.
func (m *Members) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		out.Counter(descRequests, m.transport.sentPackets.Load(), "packet")
		out.Counter(descRequests, m.transport.openedStreams.Load(), "stream")
	}, descRequests)
}
