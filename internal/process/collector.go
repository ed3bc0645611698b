package process

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// leastHeadroom is the minimum by which the heap may grow before it is collected.
const leastHeadroom = 48 << 20

// TuneCollector makes the collector run earlier while most of the heap is large payloads. By
// default it lets the heap double, because its work grows with the live heap. But payloads
// contain no pointers and cause no work, so the size of scannable memory is the better measure. The
// returned function ends the tuning.
func TuneCollector() (stop func()) {
	standard := debug.SetGCPercent(100)
	debug.SetGCPercent(standard)
	if standard <= 0 {
		return func() {} // switched off by the operator
	}
	t := &collectorTuning{standard: standard, percent: standard}
	t.await()
	return func() {
		t.stopped.Store(true)
		debug.SetGCPercent(standard)
	}
}

// collectorTuning adjusts the collector after each of its runs, which a finalizer reports; only the
// goroutine of finalizers accesses its fields.
type collectorTuning struct {
	standard, percent int
	samples           [2]metrics.Sample
	stopped           atomic.Bool
}

// await arranges for the next run of the collector to adjust it.
func (t *collectorTuning) await() {
	type sentinel struct{ self *sentinel }
	s := new(sentinel)
	s.self = nil
	runtime.SetFinalizer(s, func(*sentinel) {
		if !t.stopped.Load() {
			t.adjust()
			t.await()
		}
	})
}

func (t *collectorTuning) adjust() {
	t.samples[0].Name, t.samples[1].Name = "/gc/heap/live:bytes", "/gc/scan/total:bytes"
	metrics.Read(t.samples[:])
	percent := headroomPercent(t.samples[0].Value.Uint64(), t.samples[1].Value.Uint64(), t.standard)
	if percent != t.percent {
		t.percent = percent
		debug.SetGCPercent(percent)
	}
}

// headroomPercent returns by how much the heap may grow, in percent of the live heap, of which
// scan bytes must be scanned.
func headroomPercent(live, scan uint64, standard int) int {
	headroom := max(scan*uint64(standard)/100, leastHeadroom)
	if live == 0 || headroom >= live*uint64(standard)/100 {
		return standard
	}
	return max(int(headroom*100/live), 10)
}
