package node

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"platform/ingress"
	"platform/ingress/kafka"
	"platform/internal/budget"
	"platform/internal/certs"
	"platform/internal/cluster"
	"platform/internal/config"
	"platform/internal/fabric"
	"platform/internal/feature"
	"platform/internal/membership"
	"platform/internal/nodetls"
	"platform/internal/raftgroup"
	"platform/internal/replicas"
	"platform/internal/routing"
	"platform/internal/stats"
	"platform/internal/telemetry"
	"platform/invoker"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// nodeMetrics are the metrics that are created before the components that update them.
type nodeMetrics struct {
	registry *telemetry.Registry
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
	r := telemetry.NewRegistry(prometheus.Labels{"cluster_name": cfg.ClusterName, "node_name": cfg.NodeName})
	return nodeMetrics{
		registry: r, partitions: raftgroup.NewMetrics(r, "partition"), metadata: raftgroup.NewMetrics(r, "metadata"), ingress: ingress.NewMetrics(r),
		digests: partition.NewDigestMetrics(r), handlers: stats.NewHandlers(r, telemetry.Namespace, cfg.MetricsPerHandler), kafka: kafka.NewMetrics(r),
	}
}

// registerMetrics registers the metrics that are read from the node's components, which must
// exist.
func (n *Node) registerMetrics() {
	if n.metrics.registry == nil {
		return
	}
	n.metrics.registry.MustRegister(&nodeCollector{
		self: n.replica().ID, metadata: n.metadata, members: n.port.members, router: n.router, replicas: n.replicas, invoker: n.invoker,
		stats: n.stats, slots: int(n.cfg.Worker.Invoker.ConcurrentInvocationsLimit), outbox: n.outbox,
		security: n.security, certificates: map[string]*certs.Store{"node": n.security.Store(), "ingress": n.clientTLS.ingress, "admin": n.clientTLS.admin},
		tables: n.files.tables, bodies: n.bodies, bodyLimit: int64(n.cfg.Networking.BodyMemoryLimit), client: n.port.client, peers: n.port.peers, ready: n.ready.check,
	}, n.kafka, n.files.logs.Collector(), n.metadata.Collector(), n.exports.tracer.Collector())
}

// handler serves all metrics: of the runtime and the process, of partitions and tables, and
// of the cluster.
func (m *nodeMetrics) handler() http.Handler { return telemetry.MetricsHandler(m.registry) }

// nodeCollector reads metrics when they are scraped.
type nodeCollector struct {
	self      raft.ServerID
	metadata  *metadata.Store
	members   *membership.Members
	router    *routing.Router
	replicas  *replicas.Manager
	invoker   *invoker.Invoker
	stats     *stats.Counters
	slots     int // limit of open attempts
	outbox    *partition.OutboxMemory
	tables    *store.DB
	bodies    *budget.Budget
	bodyLimit int64
	client    *fabric.Client
	peers     *cluster.Peers
	ready     func() error

	security     *nodetls.Security
	certificates map[string]*certs.Store // by listener; nil without TLS
}

var (
	descPartitions   = desc("num_partitions", "Partitions with a replica on this node.")
	descLeaders      = desc("num_active_partition_leaders", "Partitions that this node leads.")
	descLeaderless   = desc("num_partitions_without_leader", "Partitions with a replica on this node that knows no leader.")
	descCommands     = desc("partition_applied_commands_total", "Log commands applied since the start.")
	descQuarantined  = desc("num_partitions_quarantined", "Replicas of this node that are quarantined because their data is damaged, incomplete or unreadable.")
	descLag          = desc("partition_replica_lag_entries", "Maximum number of log entries that a follower of a partition led by this node lacks.")
	descBehind       = desc("partition_replicas_behind", "Followers of partitions led by this node that have not caught up or do not respond.")
	descMetaLeader   = desc("metadata_has_leader", "1 if this node knows a leader of the metadata, so that changes are possible.")
	descMetaLeads    = desc("metadata_leads", "1 if this node leads the metadata.")
	descMetaApplied  = desc("metadata_applied_index", "Index up to which this node has applied the log of the metadata.")
	descLevel        = desc("cluster_feature_level", "Feature level of the cluster that this node knows: the formats that all members can read.")
	descSurvived     = desc("cluster_losses_survived", "Nodes, whichever they are, that can fail while all partitions and the metadata keep a majority: now, according to failure detection, and once all replicas are complete.", "when")
	descSupported    = desc("node_feature_level", "Highest feature level that this server supports.")
	descMembers      = desc("failure_detector_nodes_total", "Nodes of the cluster by state according to failure detection.", "state")
	descRouted       = desc("routing_requests_total", "Requests to partitions by destination: this node (local) or another one (remote).", "to")
	descRounds       = desc("routing_retries_total", "Repeated lookups of a partition's leader by requests.")
	descNoLeader     = desc("routing_no_leader_total", "Requests that found no leader of their partition in time.")
	descAsked        = desc("node_requests_total", "Requests sent to other nodes, except those of Raft, which platform_raft_requests_total counts.", "service", "request")
	descOpen         = desc("invoker_open_attempts", "Open attempts of the services with the most of them.", "service")
	descWaiting      = desc("invoker_waiting_invocations", "Invocations that are admitted and wait for a slot for an attempt, of the services with the most of them.", "service")
	descAge          = desc("invoker_waiting_age_seconds", "How long the oldest invocation that is admitted has waited for a slot for an attempt, of the services with the most of them.", "service")
	descSlots        = desc("invoker_slots", "Attempts that may be open (worker.invoker.concurrent-invocations-limit), 0 for unlimited.")
	descOutbox       = desc("outbox_memory_bytes", "Memory for messages to other partitions that are not acknowledged.")
	descSilent       = desc("invoker_silent_attempts", "Open attempts whose endpoint has sent no response headers for longer than worker.invoker.no-response-warning.")
	descSilences     = desc("invoker_silent_attempts_total", "Attempts whose endpoint sent no response headers for that long.")
	descBodies       = desc("body_memory_bytes", "Memory for bodies of requests and responses in progress that counts towards networking.body-memory-limit.")
	descBodiesFull   = desc("body_memory_refusals_total", "Requests rejected because the memory for bodies was exhausted (RT0026).")
	descPool         = desc("memory_pool_usage_bytes", "Memory in use, by pool: of the payloads of attempts (invoker), of the bodies of requests and responses (bodies).", "name")
	descPoolSize     = desc("memory_pool_capacity_bytes", "Limit of a pool: worker.invoker.memory-limit, networking.body-memory-limit; 0 for none.", "name")
	descReady        = desc("node_ready", "1 if the node is ready for requests, as reported by /health.")
	descTablesBytes  = desc("tables_disk_bytes", "Size of the tables on disk.")
	descTablesDebt   = desc("tables_compaction_debt_bytes", "Data of the tables that is due for compaction.")
	descTablesFlush  = desc("tables_flushes_total", "Flushes of the tables since the start.")
	descTablesMerges = desc("tables_compactions_total", "Compactions of the tables since the start.")
	descCertificate  = desc("certificate_expiry_timestamp_seconds", "End of the validity of the certificate of a listener, in Unix time.", "listener")
	descNodesRefused = desc("node_tls_refused_total", "Connections of nodes that were refused for lack of a valid certificate, or would be with security.node-tls.mode = require.")
	descNodesPlain   = desc("node_tls_plain_total", "Connections to and from nodes without TLS, which security.node-tls.mode = allow permits.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(telemetry.Namespace, "", name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *nodeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descPartitions, descLeaders, descLeaderless, descQuarantined, descCommands, descLag, descBehind, descMetaLeader, descMetaLeads, descMetaApplied, descLevel, descSurvived, descSupported,
		descOpen, descWaiting, descAge, descSlots, descOutbox, descSilent, descSilences, descBodies, descBodiesFull, descPool, descPoolSize, descMembers, descRouted, descRounds, descNoLeader, descAsked, descReady, descTablesBytes, descTablesDebt, descTablesFlush, descTablesMerges, descCertificate, descNodesRefused, descNodesPlain,
	} {
		out <- d
	}
}

// sink receives metrics.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s sink) counter(d *prometheus.Desc, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// Collect implements prometheus.Collector.
func (c *nodeCollector) Collect(metrics chan<- prometheus.Metric) {
	out := sink(metrics)
	c.collectPartitions(out)
	c.collectCluster(out)
	routed := c.router.Stats()
	out.counter(descRouted, routed.Local, "local")
	out.counter(descRouted, routed.Remote, "remote")
	out.counter(descRounds, routed.Rounds)
	out.counter(descNoLeader, routed.NoLeader)
	c.collectInvoker(out)
	silent, silences := c.invoker.Silent()
	out.gauge(descSilent, float64(silent))
	out.counter(descSilences, silences)
	bodies, refusals := c.bodies.Stats()
	out.gauge(descBodies, float64(bodies))
	out.counter(descBodiesFull, refusals)
	payloads, limit := c.invoker.Memory()
	out.gauge(descPool, float64(payloads), "invoker")
	out.gauge(descPoolSize, float64(limit), "invoker")
	out.gauge(descPool, float64(bodies), "bodies")
	out.gauge(descPoolSize, float64(c.bodyLimit), "bodies")
	c.collectRequests(out)
	c.collectTables(out, c.tables.Stats())
	c.collectSecurity(out)
}

// collectSecurity collects the metrics of certificates that are in use.
func (c *nodeCollector) collectSecurity(out sink) {
	for listener, store := range c.certificates {
		if store != nil {
			out.gauge(descCertificate, float64(store.Expires().Unix()), listener)
		}
	}
	if c.security != nil {
		out.counter(descNodesRefused, c.security.Refused())
		out.counter(descNodesPlain, c.security.Plain())
	}
}

// collectInvoker collects the attempts of the busiest services, and the sum of the others.
func (c *nodeCollector) collectInvoker(out sink) {
	out.gauge(descSlots, float64(c.slots))
	out.gauge(descOutbox, float64(c.outbox.Used()))
	loads := c.invoker.Load()
	for _, service := range c.stats.Services() {
		if _, busy := loads[service]; !busy {
			loads[service] = stats.Load{} // 0 rather than a gap
		}
	}
	services := slices.SortedFunc(maps.Keys(loads), func(a, b string) int {
		return cmp.Compare(loads[b].InFlight+loads[b].Waiting, loads[a].InFlight+loads[a].Waiting)
	})
	rest := stats.Load{}
	for i, service := range services {
		if load := loads[service]; i < stats.MaxServices {
			out.gauge(descOpen, float64(load.InFlight), service)
			out.gauge(descWaiting, float64(load.Waiting), service)
			out.gauge(descAge, load.Oldest.Seconds(), service)
		} else {
			rest.InFlight += load.InFlight
			rest.Waiting += load.Waiting
			rest.Oldest = max(rest.Oldest, load.Oldest)
		}
	}
	if len(services) > stats.MaxServices {
		out.gauge(descOpen, float64(rest.InFlight), stats.OtherLabel)
		out.gauge(descWaiting, float64(rest.Waiting), stats.OtherLabel)
		out.gauge(descAge, rest.Oldest.Seconds(), stats.OtherLabel)
	}
}

// collectRequests collects the requests to other nodes, except those of Raft.
func (c *nodeCollector) collectRequests(out sink) {
	for request, sent := range c.client.Requests() {
		out.counter(descAsked, sent, "partitions", request)
	}
	for method, sent := range c.peers.Sent() {
		out.counter(descAsked, sent, "cluster", strings.ToLower(method))
	}
	packets, streams := c.members.Sent()
	out.counter(descAsked, packets, "gossip", "packet")
	out.counter(descAsked, streams, "gossip", "stream")
}

func (c *nodeCollector) collectPartitions(out sink) {
	held, leading, leaderless, behind := 0, 0, 0, 0
	commands, lag := uint64(0), uint64(0)
	for p := range c.router.Replicas() {
		held++
		commands += p.Commands()
		if p.Leader().ID == "" {
			leaderless++
		}
		if !p.Leading() {
			continue
		}
		leading++
		for _, f := range p.Status().Followers {
			lag = max(lag, f.Lag)
			if !f.CaughtUp {
				behind++
			}
		}
	}
	out.gauge(descPartitions, float64(held))
	out.gauge(descLeaders, float64(leading))
	out.gauge(descLeaderless, float64(leaderless))
	out.gauge(descQuarantined, float64(c.replicas.Quarantined()))
	out.gauge(descBehind, float64(behind))
	out.gauge(descLag, float64(lag))
	out.counter(descCommands, commands)
}

// collectCluster collects the node's view of the cluster.
func (c *nodeCollector) collectCluster(out sink) {
	out.gauge(descReady, truth(c.ready() == nil))
	group := c.metadata.Group()
	out.gauge(descMetaLeader, truth(group.Leader().ID != ""))
	out.gauge(descMetaLeads, truth(group.IsLeader()))
	out.gauge(descMetaApplied, float64(c.metadata.AppliedIndex()))
	out.gauge(descLevel, float64(c.metadata.FeatureLevel()))
	out.gauge(descSupported, float64(feature.Supported()))

	now, whole := cluster.LossesSurvived(c.metadata, c.members, c.self)
	out.gauge(descSurvived, float64(now), "now")
	out.gauge(descSurvived, float64(whole), "whole")

	states := map[membership.State]int{membership.Alive: 0, membership.Dead: 0, membership.Left: 0, membership.Unknown: 0}
	for _, node := range c.metadata.Nodes() {
		states[cluster.GossipState(c.members, c.self, node)]++
	}
	for state, count := range states {
		out.gauge(descMembers, float64(count), state.String())
	}
}

func (c *nodeCollector) collectTables(out sink, s store.Stats) {
	out.gauge(descTablesBytes, float64(s.DiskBytes))
	out.gauge(descTablesDebt, float64(s.CompactionDebtBytes))
	out.counter(descTablesFlush, uint64(s.Flushes))
	out.counter(descTablesMerges, uint64(s.Compactions))
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
