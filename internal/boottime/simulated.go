//go:build failpoints

package boottime

import (
	"sync/atomic"
	"time"
)

var simulatedSuspension atomic.Int64

// Suspend simulates that the machine was suspended for a duration: every Stopwatch of the
// process advances by it, and Go's clock does not.
func Suspend(d time.Duration) {
	simulatedSuspension.Add(int64(d))
	last.at.Store(-int64(validity)) // do not use the cached reading
}

// simulated returns the total time of simulated suspension.
func simulated() time.Duration { return time.Duration(simulatedSuspension.Load()) }
