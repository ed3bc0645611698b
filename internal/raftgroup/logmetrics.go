package raftgroup

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"platform/internal/metrics"
)

// logCollector exports the measurements of the log database.
type logCollector struct {
	log   *LogDB
	fsync *prometheus.Desc
}

// Collector returns the metrics of the database: the duration of syncs of its write-ahead
// log, for which every acknowledged command waits.
func (l *LogDB) Collector() prometheus.Collector {
	name := prometheus.BuildFQName(metrics.Namespace, "raft", syncName)
	return &logCollector{l, prometheus.NewDesc(name, syncHelp, nil, prometheus.Labels{"group": "partition"})}
}

// One metric family for all groups: those of partitions share a database that measures its
// syncs; others have a file each, whose synced writes are timed.
const (
	syncName = "log_fsync_duration_seconds"
	syncHelp = "Time that this node's disk takes to make a write of a replicated log durable."
)

// newSyncHistogram is for the synced writes of a group with a separate log.
func newSyncHistogram(group string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: metrics.Namespace, Subsystem: "raft", Name: syncName, Help: syncHelp, ConstLabels: prometheus.Labels{"group": group},
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18),
	})
}

// Describe implements prometheus.Collector.
func (c *logCollector) Describe(out chan<- *prometheus.Desc) { out <- c.fsync }

// Collect implements prometheus.Collector.
func (c *logCollector) Collect(out chan<- prometheus.Metric) {
	measured := c.log.db.Metrics().LogWriter.FsyncLatency
	if measured == nil {
		return
	}
	var m dto.Metric
	if err := measured.Write(&m); err != nil || m.Histogram == nil {
		return
	}
	out <- prometheus.MustNewConstHistogram(c.fsync, m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()/nanoseconds, coarse(m.Histogram.Bucket))
}

// nanoseconds per second: the unit of the database
const nanoseconds = 1e9

// coarse omits most of a hundred buckets: each bound is at least bucketGrowth times the
// previous one.
func coarse(fine []*dto.Bucket) map[float64]uint64 {
	const bucketGrowth = 1.7
	buckets, last := map[float64]uint64{}, 0.0
	for _, b := range fine {
		if bound := b.GetUpperBound(); bound > 0 && bound >= last*bucketGrowth {
			buckets[bound/nanoseconds], last = b.GetCumulativeCount(), bound
		}
	}
	return buckets
}
