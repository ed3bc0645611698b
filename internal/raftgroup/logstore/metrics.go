package logstore

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"platform/internal/metrics"
)

// logCollector exports the measurements of the log database.
type logCollector struct {
	log   *DB
	fsync *prometheus.Desc
}

// Collector returns the metrics of the database: the duration of syncs of its write-ahead
// log, for which every acknowledged command waits.
func (l *DB) Collector() prometheus.Collector {
	name := prometheus.BuildFQName(metrics.Namespace, "raft", syncName)
	return &logCollector{l, prometheus.NewDesc(name, syncHelp, nil, prometheus.Labels{"group": "partition"})}
}

// One metric family for all groups: those of partitions share a database that measures its
// syncs; others have a file each, whose synced writes are timed.
const (
	syncName = "log_fsync_duration_seconds"
	syncHelp = "Time that this node's disk takes to make a write of a replicated log durable."
)

// syncBounds are the bounds of the buckets, in seconds: those that the database measures with, since
// queries add the buckets of all groups, which requires the same bounds.
var syncBounds = coarseBounds(pebble.FsyncLatencyBuckets)

// newSyncHistogram is for the synced writes of a group with a separate log.
func newSyncHistogram(group string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: metrics.Namespace, Subsystem: "raft", Name: syncName, Help: syncHelp, ConstLabels: prometheus.Labels{"group": group},
		Buckets: syncBounds,
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
	buckets := map[float64]uint64{}
	for _, b := range m.Histogram.Bucket {
		if bound := b.GetUpperBound() / nanoseconds; slices.Contains(syncBounds, bound) {
			buckets[bound] = b.GetCumulativeCount()
		}
	}
	out <- prometheus.MustNewConstHistogram(c.fsync, m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum()/nanoseconds, buckets)
}

// nanoseconds per second: the unit of the database
const nanoseconds = 1e9

// coarseBounds omits most of a hundred bounds: each one is at least boundGrowth times the previous one.
func coarseBounds(fine []float64) (bounds []float64) {
	const boundGrowth = 1.7
	last := 0.0
	for _, bound := range fine {
		if bound > 0 && bound >= last*boundGrowth {
			bounds, last = append(bounds, bound/nanoseconds), bound
		}
	}
	return bounds
}
