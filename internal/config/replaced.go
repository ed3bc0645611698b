package config

import (
	"fmt"
	"slices"
	"strings"
)

// replacement is a key of restate-server that this server accepts but does not use.
type replacement struct {
	// path is the key, a section with everything in it, or a prefix of keys that ends with "*".
	path string
	// meaning describes what applies instead.
	meaning string
	// only are the accepted values, separated by spaces, if others would request a missing feature;
	// empty accepts every value.
	only string
}

func (r replacement) matches(path string) bool {
	if prefix, ok := strings.CutSuffix(r.path, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return path == r.path || strings.HasPrefix(path, r.path+".")
}

// replacements are the keys of restate-server 1.7 that are not keys here: those that it prints with
// --dump-config, and those that it prints only if they are set. docs/comparison.md has the same table.
var replacements = []replacement{
	{"roles", "every node has all roles", ""},
	{"location", "nodes have no location; replicas are spread over nodes", ""},
	{"force-node-id", "the cluster numbers its nodes", ""},
	{"listen-mode", noSockets, tcpOnly},
	{"ingress.listen-mode", noSockets, tcpOnly},
	{"admin.listen-mode", noSockets, tcpOnly},
	{"ingress.use-random-ports", "use-random-ports, for all ports", ""},
	{"default-thread-pool-size", threads, ""},
	{"storage-high-priority-bg-threads", threads, ""},
	{"storage-low-priority-bg-threads", threads, ""},
	{"tokio-console-bind-address", "there is no such console", ""},
	{"disable-telemetry", "no usage data is ever sent", ""},
	{"tracing-filter", "spans are selected by sampling, not by targets", ""},
	{"tracing-runtime-endpoint", "the server records spans of invocations only: tracing-endpoint", ""},
	{"tracing-json-path", "spans are sent to a collector: tracing-endpoint", ""},
	{"rocksdb-*", "the storage engine sizes itself; memory is bounded by worker.invoker.memory-limit and networking.body-memory-limit", ""},
	{"metadata-update-interval", "changes of the metadata are pushed to all nodes", ""},
	{"metadata-fetch-from-peer-timeout", "changes of the metadata are pushed to all nodes", ""},
	{"gossip-*", "the failure detector has fixed intervals; node-lost-timeout decides when replicas move", ""},
	{"hlc-max-drift", "log entries have the time of the leader, which never goes back; clocks need not agree", ""},
	{"metadata-client.type", "the metadata is replicated by the nodes themselves", "replicated"},
	{"metadata-client.connect-timeout", "networking.connect-timeout", ""},
	{"metadata-client.keep-alive-interval", "networking.http2-keep-alive-interval", ""},
	{"metadata-client.keep-alive-timeout", "networking.http2-keep-alive-timeout", ""},
	{"metadata-client.message-size-limit", "networking.message-size-limit", ""},
	{"metadata-client.backoff-policy", "changes of the metadata are retried until initialization-timeout or the deadline of the request", ""},
	{"network-error-retry-policy", "requests to other nodes are retried until their deadline", ""},
	{"invocation-yield-threshold", noYield, ""},
	{"disable-controlled-idempotent-sharding", "requests without an idempotency key get none", ""},
	{"experimental-enable-unique-random-seeds", "each invocation has a random seed of its own, which restarts keep", ""},
	{"experimental-enable-invoker-yield", noYield, ""},
	{"experimental-enable-kafka-scope", "a subscription has the scope of its invocations, or takes it from a header of the records", "false"},
	{"experimental-enable-scoped-virtual-objects", "objects can always be called within a scope", ""},
	{"experimental-enable-migrate-scoped-tables", "there are no tables of an older format", ""},
	{"experimental-enable-vqueues-migration-skip-completed", "flow control is enabled on a fresh cluster, where there is nothing to migrate", ""},
	{"worker.internal-queue-length", "queues of a partition hold up to 10,000 commands or 64 MiB", ""},
	{"worker.cleanup-interval", "results and journals expire on time, by timers", ""},
	{"worker.num-timers-in-memory-limit", "timers of the next minute are kept in memory, as far as they fit", ""},
	{"worker.durability-mode", "acknowledged requests are in a replicated log on disk", ""},
	{"worker.trim-delay-interval", "logs are compacted after snapshots, which follow the amount of data", ""},
	{"worker.data-service-memory-limit", "networking.body-memory-limit", ""},
	{"worker.rule-book-poll-interval", "changes of rules are pushed to all nodes", ""},
	{"worker.self-proposal-queue-memory-limit", "queues of a partition hold up to 10,000 commands or 64 MiB", ""},
	{"worker.storage", "the storage engine sizes itself", ""},
	{"worker.invoker.tmp-dir", "waiting invocations need no temporary files", ""},
	{"worker.invoker.in-memory-queue-length-limit", "4,096 waiting invocations are kept in memory, the others on disk", ""},
	{"worker.invoker.per-invocation-initial-memory", "memory is reserved as payloads arrive, up to worker.invoker.per-invocation-memory-limit", ""},
	{"worker.invoker.http2-keep-alive-jitter", "probes are not synchronized, since they follow the last traffic of each connection", ""},
	{"worker.snapshots", "snapshots are sent from node to node; there is no object store", ""},
	{"worker.shuffle", "messages between partitions have fixed bounds", ""},
	{"admin.heartbeat-interval", "the cluster controller acts on changes and does not poll", ""},
	{"admin.disable-cluster-controller", "the leader of the metadata is the controller", ""},
	{"admin.query-engine.tmp-dir", "queries are bounded by admin.query-engine.memory-size and write no temporary files", ""},
	{"admin.query-engine.query-parallelism", "admin.query-engine.concurrency bounds the queries at the same time", ""},
	{"admin.query-engine.datafusion-options", "queries are run by another engine, which has no such options", ""},
	{"admin.storage-accounting-update-interval", "the table state has the size of each value, for queries", ""},
	{"ingress.ingestion", "records go straight to the partitions of their targets; max_in_flight of a subscription bounds them", ""},
	{"bifrost", "each partition has a Raft log; there is no separate log service", ""},
	{"log-server", "each partition has a Raft log, synced to disk before it is acknowledged", ""},
	{"metadata-server", "the metadata is a Raft group, whose members the server chooses", ""},
	{"networking.handshake-timeout", "networking.connect-timeout", ""},
	{"networking.http2-adaptive-window", "windows of connections between nodes have a fixed size", ""},
	{"networking.data-stream-window-size", "windows of connections between nodes have a fixed size", ""},
	{"networking.disable-compression", "traffic between nodes is not compressed", ""},
	{"networking.connect-retry-policy", "connections to other nodes are retried with a backoff of up to a few seconds", ""},
}

// Meanings of several keys.
const (
	noSockets = "servers listen on TCP only, not on Unix sockets"
	tcpOnly   = "tcp all"
	threads   = "the number of threads follows the processors"
	noYield   = "an invocation that backs off occupies no slot of its node"
)

// replaced accepts a key that has a replacement. Several keys of one replacement give one warning.
func (l *loader) replaced(origin, path string, value any) bool {
	for i, r := range replacements {
		if !r.matches(path) {
			continue
		}
		if accepted := strings.Fields(r.only); r.only != "" && !slices.Contains(accepted, strings.Trim(fmt.Sprint(value), `"`)) {
			l.problem(origin, path, fmt.Sprintf("only %s is accepted: %s", strings.Join(accepted, " or "), r.meaning))
			return true
		}
		if l.warned == nil {
			l.warned = map[int]bool{}
		}
		if !l.warned[i] {
			l.warned[i] = true
			l.warnings = append(l.warnings, fmt.Sprintf("%s (%s) is accepted and has no effect; here: %s", r.path, origin, r.meaning))
		}
		return true
	}
	return false
}

const (
	// disableEagerState is the legacy form of eager-state-size-limit = 0.
	disableEagerState = "worker.invoker.disable-eager-state"
	// servicesEndpoint is tracing-endpoint: all spans are of invocations.
	servicesEndpoint = "tracing-services-endpoint"
)

// formerAddresses are keys for addresses that have other names here, and in newer releases there.
var formerAddresses = map[string]string{
	"ingress.advertised-ingress-endpoint": "ingress.advertised-address",
	"admin.advertised-admin-endpoint":     "admin.advertised-address",
}

// renamed accepts a key under its former name.
func (l *loader) renamed(origin, path string, value any) bool {
	switch path {
	case disableEagerState:
		return l.eagerStateDisabled(origin, path, value)
	case servicesEndpoint:
		l.setText(l.byPath["tracing-endpoint"], origin, strings.Trim(fmt.Sprint(value), `"`))
		return true
	}
	if now, known := formerAddresses[path]; known {
		l.setText(l.byPath[now], origin, strings.Trim(fmt.Sprint(value), `"`))
		l.warnings = append(l.warnings, fmt.Sprintf("%s (%s) is accepted; write %s", path, origin, now))
		return true
	}
	return false
}

func (l *loader) eagerStateDisabled(origin, path string, value any) bool {
	const now = "worker.invoker.eager-state-size-limit"
	switch strings.Trim(fmt.Sprint(value), `"`) {
	case "true":
		l.setText(l.byPath[now], origin, "0")
	case "false":
	default:
		l.problem(origin, path, "expected true or false")
		return true
	}
	l.warnings = append(l.warnings, fmt.Sprintf("%s (%s) is accepted; write %s = 0 instead of true", path, origin, now))
	return true
}
