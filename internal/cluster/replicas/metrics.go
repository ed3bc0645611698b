package replicas

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
)

var (
	descPartitions  = metrics.Desc("num_partitions", "Partitions with a replica on this node.")
	descLeaders     = metrics.Desc("num_active_partition_leaders", "Partitions that this node leads.")
	descLeaderless  = metrics.Desc("num_partitions_without_leader", "Partitions with a replica on this node that knows no leader.")
	descQuarantined = metrics.Desc("num_partitions_quarantined", "Replicas of this node that are quarantined because their data is damaged, incomplete or unreadable.")
	descCommands    = metrics.Desc("partition_applied_commands_total", "Log commands applied since the start.")
	descLag         = metrics.Desc("partition_replica_lag_entries", "Maximum number of log entries that a follower of a partition led by this node lacks.")
	descBehind      = metrics.Desc("partition_replicas_behind", "Followers of partitions led by this node that have not caught up or do not respond.")
)

// Collector returns the metrics of the replicas of this node.
func (rc *Reconciler) Collector() prometheus.Collector {
	return metrics.NewCollector(rc.collect, descPartitions, descLeaders, descLeaderless, descQuarantined, descCommands, descLag, descBehind)
}

func (rc *Reconciler) collect(out metrics.Values) {
	held, leading, leaderless, behind := 0, 0, 0, 0
	commands, lag := uint64(0), uint64(0)
	for p := range rc.cfg.Router.Replicas() {
		held++
		commands += p.AppliedCommands()
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
	out.Gauge(descPartitions, float64(held))
	out.Gauge(descLeaders, float64(leading))
	out.Gauge(descLeaderless, float64(leaderless))
	out.Gauge(descQuarantined, float64(rc.quarantine.count()))
	out.Gauge(descBehind, float64(behind))
	out.Gauge(descLag, float64(lag))
	out.Counter(descCommands, commands)
}
