package boottime

import (
	"sync/atomic"
	"time"
)

const (
	// noise is below what counts as suspension: the clocks are read one after the other.
	noise = 10 * time.Millisecond
	// validity is how long a reading is used again, since system calls cost more than a
	// look at Go's clock.
	validity = time.Millisecond
)

// Stopwatch is the time since it was started, suspension included. The zero value is
// not usable. It may be used concurrently.
type Stopwatch struct {
	start     time.Time
	suspended time.Duration // since boot, when it was started
}

// Start returns a running stopwatch.
func Start() Stopwatch { return Stopwatch{time.Now(), readSuspended()} }

// Elapsed is the time since the start.
func (s Stopwatch) Elapsed() time.Duration {
	elapsed := time.Since(s.start)
	if d := suspended() - s.suspended; d > noise {
		elapsed += d
	}
	return elapsed
}

// last is the latest reading and when it was taken, by Go's clock.
var last struct{ at, suspended atomic.Int64 }

var processStart = time.Now()

func suspended() time.Duration {
	now := int64(time.Since(processStart))
	if age := now - last.at.Load(); age >= 0 && age < int64(validity) {
		return time.Duration(last.suspended.Load())
	}
	d := readSuspended()
	last.suspended.Store(int64(d))
	last.at.Store(now)
	return d
}
