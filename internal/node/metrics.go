package node

import (
	"net/http"
	"strings"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"platform/ingress"
	"platform/internal/budget"
	"platform/internal/cluster"
	"platform/internal/config"
	"platform/internal/fabric"
	"platform/internal/feature"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/internal/replicas"
	"platform/internal/routing"
	"platform/internal/telemetry"
	"platform/invoker"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

// nodeMetrics are what the node counts. They are there before what they are about.
type nodeMetrics struct {
	registry *telemetry.Registry
	// Of the Raft groups of partitions, and of the metadata.
	partitions, metadata *raftgroup.Metrics
	ingress              *ingress.Metrics
	digests              *partition.DigestMetrics
}

// newMetrics returns the metrics of a node. Without them the fields are nil, and
// nothing is counted.
func newMetrics(cfg *config.Config) nodeMetrics {
	if cfg.DisablePrometheus {
		return nodeMetrics{}
	}
	r := telemetry.NewRegistry(prometheus.Labels{"cluster_name": cfg.ClusterName, "node_name": cfg.NodeName})
	return nodeMetrics{
		registry: r, partitions: raftgroup.NewMetrics(r, "partition"), metadata: raftgroup.NewMetrics(r, "metadata"), ingress: ingress.NewMetrics(r),
		digests: partition.NewDigestMetrics(r),
	}
}

// registerMetrics registers the metrics that are read from the parts of the node, once all
// of them are there.
func (n *Node) registerMetrics() {
	if n.metrics.registry == nil {
		return
	}
	n.metrics.registry.MustRegister(&nodeCollector{
		self: n.replica().ID, metadata: n.metadata, members: n.port.members, router: n.router, replicas: n.replicas, invoker: n.invoker,
		tables: n.files.tables, bodies: n.bodies, client: n.port.client, peers: n.port.peers, ready: n.ready.check,
	}, n.files.logs.Collector(), n.metadata.Collector())
}

// handler serves the metrics: those of the runtime and the process, of the partitions and
// their tables, and of the cluster as the node sees it.
func (m *nodeMetrics) handler() http.Handler { return telemetry.MetricsHandler(m.registry) }

// nodeCollector reads metrics when they are scraped.
type nodeCollector struct {
	self     raft.ServerID
	metadata *metadata.Store
	members  *membership.Members
	router   *routing.Router
	replicas *replicas.Manager
	invoker  *invoker.Invoker
	tables   *store.DB
	bodies   *budget.Budget
	client   *fabric.Client
	peers    *cluster.Peers
	ready    func() error
}

var (
	descPartitions   = desc("num_partitions", "Partitions that this node has a replica of.")
	descLeaders      = desc("num_active_partition_leaders", "Partitions that this node leads.")
	descLeaderless   = desc("num_partitions_without_leader", "Partitions with a replica here that knows of no leader.")
	descCommands     = desc("partition_applied_commands_total", "Log commands applied since the start.")
	descQuarantined  = desc("num_partitions_quarantined", "Replicas of this node that are not served because their data is damaged, incomplete or unreadable.")
	descLag          = desc("partition_replica_lag_entries", "Most log entries that a follower of a partition led here misses.")
	descBehind       = desc("partition_replicas_behind", "Followers of partitions led here that have not caught up, or do not answer.")
	descMetaLeader   = desc("metadata_has_leader", "1 if this node knows of a leader of the metadata: changes can be made.")
	descMetaLeads    = desc("metadata_leads", "1 if this node leads the metadata.")
	descMetaApplied  = desc("metadata_applied_index", "Place in the log of the metadata up to which this node has applied it.")
	descLevel        = desc("cluster_feature_level", "Feature level of the cluster as far as this node knows: what all members can read.")
	descSurvived     = desc("cluster_losses_survived", "Nodes that can be lost, whichever they are, while all partitions and the metadata keep a majority: now, by who is believed to be alive, and once the cluster is whole.", "when")
	descSupported    = desc("node_feature_level", "Highest feature level that this server supports.")
	descMembers      = desc("failure_detector_nodes_total", "Nodes of the cluster by what is believed of them.", "state")
	descRouted       = desc("routing_requests_total", "Requests to partitions by where they were sent.", "to")
	descRounds       = desc("routing_retries_total", "Times that a request had to look for the leader of its partition again.")
	descNoLeader     = desc("routing_no_leader_total", "Requests that found no leader of their partition in time.")
	descAsked        = desc("node_requests_total", "Requests sent to other nodes, but for those of Raft, which platform_raft_requests_total counts.", "service", "request")
	descSilent       = desc("invoker_silent_attempts", "Open attempts whose endpoint has sent no response head for longer than worker.invoker.no-response-warning.")
	descSilences     = desc("invoker_silent_attempts_total", "Attempts whose endpoint sent no response head for that long.")
	descBodies       = desc("body_memory_bytes", "Memory held for the bodies of requests and replies under way, as far as networking.body-memory-limit bounds it.")
	descBodiesFull   = desc("body_memory_refusals_total", "Requests that were refused for lack of memory for their body (RT0026).")
	descReady        = desc("node_ready", "1 if the node should get requests, as /health says.")
	descTablesBytes  = desc("tables_disk_bytes", "Size of the tables on disk.")
	descTablesDebt   = desc("tables_compaction_debt_bytes", "Data of the tables that waits for compaction.")
	descTablesFlush  = desc("tables_flushes_total", "Flushes of the tables since the start.")
	descTablesMerges = desc("tables_compactions_total", "Compactions of the tables since the start.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(telemetry.Namespace, "", name), help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *nodeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descPartitions, descLeaders, descLeaderless, descQuarantined, descCommands, descLag, descBehind, descMetaLeader, descMetaLeads, descMetaApplied, descLevel, descSurvived, descSupported,
		descSilent, descSilences, descBodies, descBodiesFull, descMembers, descRouted, descRounds, descNoLeader, descAsked, descReady, descTablesBytes, descTablesDebt, descTablesFlush, descTablesMerges,
	} {
		out <- d
	}
}

// sink takes figures.
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
	silent, silences := c.invoker.Silent()
	out.gauge(descSilent, float64(silent))
	out.counter(descSilences, silences)
	bodies, refusals := c.bodies.Stats()
	out.gauge(descBodies, float64(bodies))
	out.counter(descBodiesFull, refusals)
	c.collectRequests(out)
	c.collectTables(out, c.tables.Stats())
}

// collectRequests is what goes from this node to others, but for Raft.
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

// collectCluster is what the node believes of the others.
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
		states[cluster.Believed(c.members, c.self, node)]++
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
