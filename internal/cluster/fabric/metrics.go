package fabric

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var descRequests = metrics.NodeRequests("partitions")

// Collector returns the metrics of requests to partitions on other nodes.
func (c *Client) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		for request, sent := range c.Requests() {
			out.Counter(descRequests, sent, request)
		}
	}, descRequests)
}
