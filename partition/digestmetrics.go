package partition

import (
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
	"platform/partition/store"
)

// DigestMetrics counts digests of tables. All partitions share one; nil counts nothing.
type DigestMetrics struct {
	rows, differences, misses prometheus.Counter
	rounds                    *prometheus.CounterVec
}

// Outcomes of a round, as its leader sees it.
const (
	roundAgreed     = "agreed"     // all voters have the same result
	roundIncomplete = "incomplete" // those that responded have the same result, but not all did
	roundDiffers    = "differs"    // a voter has another result
)

// NewDigestMetrics registers the metrics.
func NewDigestMetrics(reg prometheus.Registerer) *DigestMetrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "partition", Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	m := &DigestMetrics{
		rows:        counter("digest_rows_total", "Rows of tables read to compare replicas."),
		differences: counter("digest_differences_total", "Digests of replicas here that differ from those of a majority, or of rows that cannot be read."),
		misses:      counter("digest_missed_total", "Rounds of digests that a replica here missed because the previous one was still in progress."),
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "partition", Name: "digest_rounds_total",
			Help: "Comparisons of replicas by a leader here."}, []string{"outcome"}),
	}
	reg.MustRegister(m.rounds)
	for _, outcome := range []string{roundAgreed, roundIncomplete, roundDiffers} {
		m.rounds.WithLabelValues(outcome)
	}
	return m
}

func (m *DigestMetrics) scanned(d *store.Digest) {
	if m != nil {
		m.rows.Add(float64(d.Rows))
	}
}

func (m *DigestMetrics) missed() {
	if m != nil {
		m.misses.Inc()
	}
}

func (m *DigestMetrics) differed() {
	if m != nil {
		m.differences.Inc()
	}
}

func (m *DigestMetrics) ended(outcome string) {
	if m != nil {
		m.rounds.WithLabelValues(outcome).Inc()
	}
}
