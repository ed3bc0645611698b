package raftgroup

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"platform/internal/telemetry"
)

// logCollector shows what the log database measures by itself.
type logCollector struct {
	log   *LogDB
	fsync *prometheus.Desc
}

// Collector returns the metrics of the database: how long it takes to sync its
// write-ahead log, which every acknowledged command waits for.
func (l *LogDB) Collector() prometheus.Collector {
	name := prometheus.BuildFQName(telemetry.Namespace, "raft", syncName)
	return &logCollector{l, prometheus.NewDesc(name, syncHelp, nil, prometheus.Labels{"group": "partition"})}
}

// One family for all groups: those of partitions share a database that measures its
// syncs; others have a file each, whose synced writes are timed.
const (
	syncName = "log_fsync_duration_seconds"
	syncHelp = "Time that this node's disk takes to make a write of a replicated log durable."
)

// newSyncHistogram is for the synced writes of a group that has a log of its own.
func newSyncHistogram(group string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: telemetry.Namespace, Subsystem: "raft", Name: syncName, Help: syncHelp, ConstLabels: prometheus.Labels{"group": group},
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

// nanoseconds of a second: what the database counts in.
const nanoseconds = 1e9

// coarse leaves out most of a hundred buckets: each bound is at least bucketGrowth
// times the one before.
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
