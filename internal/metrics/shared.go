package metrics

import "github.com/prometheus/client_golang/prometheus"

// PoolUsage describes the bytes in use of a memory pool; each pool has a collector of its own.
func PoolUsage(pool string) *prometheus.Desc {
	return constDesc("memory_pool_usage_bytes",
		"Memory in use, by pool: of the payloads of attempts (invoker), of the bodies of requests and responses (bodies).", prometheus.Labels{"name": pool})
}

// PoolCapacity describes the limit of a memory pool.
func PoolCapacity(pool string) *prometheus.Desc {
	return constDesc("memory_pool_capacity_bytes",
		"Limit of a pool: worker.invoker.memory-limit, networking.body-memory-limit; 0 for none.", prometheus.Labels{"name": pool})
}

// NodeRequests describes the requests that a service of the node port has sent, by kind.
func NodeRequests(service string) *prometheus.Desc {
	return constDesc("node_requests_total",
		"Requests sent to other nodes, except those of Raft, which platform_raft_requests_total counts.", prometheus.Labels{"service": service}, "request")
}
