package routing

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var (
	descRouted   = metrics.Desc("routing_requests_total", "Requests to partitions by destination: this node (local) or another one (remote).", "to")
	descRounds   = metrics.Desc("routing_retries_total", "Repeated lookups of a partition's leader by requests.")
	descRelayed  = metrics.Desc("routing_relayed_total", "Requests sent through another node, because this one cannot reach the leader of the partition.")
	descNoLeader = metrics.Desc("routing_no_leader_total", "Requests that found no leader of their partition in time.")
)

// Collector returns the metrics of requests by destination.
func (r *Router) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		s := r.directory.Stats()
		out.Counter(descRouted, s.Local, "local")
		out.Counter(descRouted, s.Remote, "remote")
		out.Counter(descRounds, s.Rounds)
		out.Counter(descRelayed, s.Relayed)
		out.Counter(descNoLeader, s.NoLeader)
	}, descRouted, descRounds, descRelayed, descNoLeader)
}
