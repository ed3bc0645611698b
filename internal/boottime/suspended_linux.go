package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// readSuspended returns the total time of suspension since boot: the difference between
// CLOCK_BOOTTIME and CLOCK_MONOTONIC. It uses the closest of up to three pairs of readings.
func readSuspended() time.Duration {
	best, closest := time.Duration(0), time.Duration(1<<63-1)
	for range 3 {
		var before, boot, after unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil ||
			unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil ||
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
			return 0 // impossible on kernels supported by Go
		}
		took := time.Duration(after.Nano() - before.Nano())
		if took < closest {
			best, closest = time.Duration(boot.Nano()-before.Nano()), took
		}
		if took < time.Millisecond {
			break // otherwise the thread was preempted in between
		}
	}
	return best
}
