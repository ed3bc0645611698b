package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// readSuspended is for how long the machine was suspended since it was booted, as far as
// the difference between two clocks tells that cannot be read at the same moment.
func readSuspended() time.Duration {
	best, closest := time.Duration(0), time.Duration(1<<63-1)
	for range 3 {
		var before, boot, after unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil ||
			unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil ||
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
			return 0 // does not happen on a kernel that runs Go
		}
		took := time.Duration(after.Nano() - before.Nano())
		if took < closest {
			best, closest = time.Duration(boot.Nano()-before.Nano()), took
		}
		if took < time.Millisecond {
			break // else the thread was not running in between
		}
	}
	return best
}
