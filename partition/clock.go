package partition

import (
	"context"
	"math"
	"sync"
	"time"

	"platform/internal/boottime"
	"platform/internal/failpoint"
)

const (
	// maxSlew is the rate at which partition time approaches wall-clock time: 1 in 100.
	maxSlew = 100
	// ignoredOffset is the difference between partition time and wall-clock time below which
	// times are not converted. Machines with synchronized clocks stay below it.
	ignoredOffset = 100 * time.Millisecond
	// clockTimeout bounds how long a new leader waits for a reliable wall-clock time.
	clockTimeout = time.Second
)

// Clock is the wall clock of leaders. It has to be right when a leadership begins, since
// everything that is due by then is fired; later errors are corrected slowly.
type Clock interface {
	// Now returns the best estimate of the wall-clock time.
	Now() time.Time
	// AwaitNow returns once Now is as accurate as it will be, or ctx ends.
	AwaitNow(ctx context.Context)
}

// machineClock is the Clock of a node without other nodes to compare its time with.
type machineClock struct{}

func (machineClock) Now() time.Time           { return time.Now() }
func (machineClock) AwaitNow(context.Context) {}

// clock is the partition time of a leader, the timestamp of its log entries. It starts at
// wall-clock time and then follows a monotonic clock that continues during suspension, so
// that a step of the wall clock neither fires timers early nor delays them; it approaches a
// stepped wall clock slowly. It starts no earlier than the time of the log, which never
// decreases: otherwise timers would stop until a machine whose clock is behind has caught
// up.
type clock struct {
	wall    func() time.Time     // wall-clock time
	elapsed func() time.Duration // since the clock was created

	mu   sync.Mutex // covers the fields below
	last time.Duration
	now  time.Time
}

// newClock returns a clock that starts no earlier than least, in milliseconds since 1970.
func newClock(least int64, now func() time.Time) *clock {
	c := &clock{wall: now, elapsed: boottime.Start().Elapsed, now: now().Round(0)}
	if failpoint.Active(failpoint.MonotonicTimers) {
		begin := time.Now()
		c.elapsed = func() time.Duration { return time.Since(begin) }
	}
	if known := time.UnixMilli(least); known.After(c.now) {
		c.now = known
	}
	return c
}

// Millis returns the partition time in milliseconds since 1970. It never decreases.
func (c *clock) Millis() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.advance()
	return now.UnixMilli()
}

// advance advances the partition time and returns it, and how far it is ahead of wall-clock
// time.
func (c *clock) advance() (now time.Time, ahead time.Duration) {
	elapsed := c.elapsed()
	passed := max(elapsed-c.last, 0)
	c.last = max(c.last, elapsed)
	c.now = c.now.Add(passed)
	ahead = c.now.Sub(c.wall().Round(0))
	slew := min(max(-ahead, -passed/maxSlew), passed/maxSlew)
	c.now = c.now.Add(slew)
	return c.now, ahead + slew
}

// Offset returns the current offset, zero if it is below ignoredOffset.
func (c *clock) Offset() clockOffset {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ahead := c.advance()
	if ahead.Abs() <= ignoredOffset {
		return 0
	}
	return clockOffset(ahead.Milliseconds())
}

// clockOffset is by how many milliseconds partition time is ahead of wall-clock time, negative if
// it is behind. Times are converted so that their distance from now remains.
type clockOffset int64

// toPartition converts a wall-clock time to partition time. 0, which means none, and times that
// would overflow are unchanged.
func (o clockOffset) toPartition(t int64) int64 {
	if t <= 0 || o > 0 && t > math.MaxInt64-int64(o) {
		return t
	}
	return max(t+int64(o), 1)
}

// toWall converts a partition time to wall-clock time. 0, which means none, and math.MaxInt64
// are unchanged.
func (o clockOffset) toWall(t int64) int64 {
	if t == math.MaxInt64 {
		return t
	}
	return (-o).toPartition(t)
}
