package certs

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var descExpiry = metrics.Desc("certificate_expiry_timestamp_seconds", "End of the validity of the certificate of a listener, in Unix time.", "listener")

// NewCollector returns the metrics of certificates by listener; nil stands for none.
func NewCollector(listeners map[string]*Store) prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		for listener, store := range listeners {
			if store != nil {
				out.Gauge(descExpiry, float64(store.Expires().Unix()), listener)
			}
		}
	}, descExpiry)
}
