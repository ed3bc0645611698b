package cluster

import (
	"iter"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/cluster/membership"
	"platform/internal/feature"
	"platform/internal/metrics"
	"platform/metadata"
	"platform/partition"
)

var (
	descRequests    = metrics.NodeRequests("cluster")
	descMetaLeader  = metrics.Desc("metadata_has_leader", "1 if this node knows a leader of the metadata, so that changes are possible.")
	descMetaLeads   = metrics.Desc("metadata_leads", "1 if this node leads the metadata.")
	descMetaApplied = metrics.Desc("metadata_applied_index", "Index up to which this node has applied the log of the metadata.")
	descLevel       = metrics.Desc("cluster_feature_level", "Feature level of the cluster that this node knows: the formats that all members can read.")
	descSurvived    = metrics.Desc("cluster_losses_survived", "Nodes, whichever they are, that can fail while all partitions and the metadata keep a majority: now, according to failure detection and to the partitions that this node leads, and once all replicas are complete. Use the minimum over all nodes.", "when")
	descSupported   = metrics.Desc("node_feature_level", "Highest feature level that this server supports.")
	descMembers     = metrics.Desc("failure_detector_nodes_total", "Nodes of the cluster by state according to failure detection.", "state")
)

// Collector returns the metrics of requests about the cluster to other nodes.
func (p *Peers) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		for method, sent := range p.Sent() {
			out.Counter(descRequests, sent, strings.ToLower(method))
		}
	}, descRequests)
}

// NewCollector returns the metrics of the cluster as known to node self, which has the replicas.
func NewCollector(store *metadata.Store, members *membership.Members, self raft.ServerID, replicas iter.Seq[*partition.Partition]) prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		group := store.Group()
		out.Bool(descMetaLeader, group.Leader().ID != "")
		out.Bool(descMetaLeads, group.IsLeader())
		out.Gauge(descMetaApplied, float64(store.AppliedIndex()))
		out.Gauge(descLevel, float64(store.FeatureLevel()))
		out.Gauge(descSupported, float64(feature.Supported()))

		leads := map[uint32]partition.Status{}
		for p := range replicas {
			if p.Leading() {
				leads[p.ID()] = p.Status()
			}
		}
		layout, _ := store.Layout()
		now, whole := lossesSurvived(layout, group.Servers(), leads, func(id raft.ServerID) bool {
			return slices.ContainsFunc(layout.Nodes, func(n metadata.Node) bool {
				return n.ServerID() == id && gossipState(members, self, n) == membership.Alive
			})
		})
		out.Gauge(descSurvived, float64(now), "now")
		out.Gauge(descSurvived, float64(whole), "whole")

		states := map[membership.State]int{membership.Alive: 0, membership.Dead: 0, membership.Left: 0, membership.Unknown: 0}
		for _, node := range store.Nodes() {
			states[gossipState(members, self, node)]++
		}
		for state, count := range states {
			out.Gauge(descMembers, float64(count), state.String())
		}
	}, descMetaLeader, descMetaLeads, descMetaApplied, descLevel, descSurvived, descSupported, descMembers)
}
