package boottime

import (
	"sync/atomic"
	"time"
)

const (
	// noise is the threshold below which a difference does not count as suspension, since
	// the two clocks cannot be read at the same instant.
	noise = 10 * time.Millisecond
	// validity is how long a reading is cached, since the system calls are more expensive
	// than reading Go's clock.
	validity = time.Millisecond
)

// Stopwatch measures the time since its start, including suspension. The zero value is not
// usable. It is safe for concurrent use.
type Stopwatch struct {
	start     time.Time
	suspended time.Duration // total suspension since boot, at the start
}

// Start returns a running stopwatch.
func Start() Stopwatch { return Stopwatch{time.Now(), readSuspended() + simulated()} }

// Elapsed returns the time since the start.
func (s Stopwatch) Elapsed() time.Duration {
	elapsed := time.Since(s.start)
	if d := suspended() - s.suspended; d > noise {
		elapsed += d
	}
	return elapsed
}

// last is the cached reading and the time of Go's clock at which it was taken.
var last struct{ at, suspended atomic.Int64 }

var processStart = time.Now()

func suspended() time.Duration {
	now := int64(time.Since(processStart))
	if age := now - last.at.Load(); age >= 0 && age < int64(validity) {
		return time.Duration(last.suspended.Load())
	}
	d := readSuspended() + simulated()
	last.suspended.Store(int64(d))
	last.at.Store(now)
	return d
}
