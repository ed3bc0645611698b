package stats

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// exemplarInterval is the time between the exemplars of durations of one magnitude. A histogram keeps
// the last one of each bucket, and creating one costs as much as several observations.
const exemplarInterval = 100 * time.Millisecond

// Durations is a histogram of durations, with traces as exemplars. It is safe for concurrent use.
type Durations struct {
	histogram prometheus.Observer
	// due is when the next exemplar of a magnitude is due, in nanoseconds since 1970.
	due [20]atomic.Int64
}

// NewDurations returns the durations that a histogram, in seconds, observes.
func NewDurations(histogram prometheus.Observer) *Durations { return &Durations{histogram: histogram} }

// Observe observes a duration, with the trace that it was observed in as an exemplar unless that is
// empty or one of the same magnitude was given just before.
func (d *Durations) Observe(took time.Duration, trace string) {
	if trace != "" && d.exemplar(took, time.Now().UnixNano()) {
		if with, ok := d.histogram.(prometheus.ExemplarObserver); ok {
			with.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": trace})
			return
		}
	}
	d.histogram.Observe(took.Seconds())
}

// exemplar reports whether an exemplar of a duration is due.
func (d *Durations) exemplar(took time.Duration, now int64) bool {
	due := &d.due[min(bits.Len64(uint64(max(took, 0)/time.Millisecond)), len(d.due)-1)]
	at := due.Load()
	return now >= at && due.CompareAndSwap(at, now+int64(exemplarInterval))
}
