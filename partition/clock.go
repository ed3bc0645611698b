package partition

import (
	"context"
	"sync"
	"time"
)

// maxSlew is by how much a leader's clock approaches the machine's, per time
// passed: 1 in 100.
const maxSlew = 100

// clockPatience bounds how long a new leader waits for the time.
const clockPatience = time.Second

// Clock is the time that leaders go by. It has to be right when a leadership begins,
// since everything that is due by then is fired; later errors are slowed down.
type Clock interface {
	// Now is the best guess at the time.
	Now() time.Time
	// AwaitNow returns once Now is as good as it gets, or ctx ends.
	AwaitNow(ctx context.Context)
}

// machineClock is the Clock of a node that has nobody to compare its time with.
type machineClock struct{}

func (machineClock) Now() time.Time           { return time.Now() }
func (machineClock) AwaitNow(context.Context) {}

// clock is the time a leader stamps its log entries with. It starts at the time of
// its Clock and then follows the monotonic clock, so that a step of the
// machine's time neither fires timers early nor holds them up; towards a stepped
// time it moves slowly. It starts no earlier than the time of the log so far, which
// does not go back: else timers would stand still until a machine whose clock is
// behind has caught up.
type clock struct {
	wall    func() time.Time     // the time to follow
	elapsed func() time.Duration // monotonic time since the clock was made

	mu   sync.Mutex // covers the fields below
	last time.Duration
	now  time.Time
}

// newClock returns a clock that starts no earlier than least, in milliseconds since
// 1970.
func newClock(least int64, now func() time.Time) *clock {
	start := time.Now()
	c := &clock{wall: now, elapsed: func() time.Duration { return time.Since(start) }, now: now().Round(0)}
	if known := time.UnixMilli(least); known.After(c.now) {
		c.now = known
	}
	return c
}

// Millis is the leader's time in milliseconds since 1970. It never goes back.
func (c *clock) Millis() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := c.elapsed()
	passed := max(elapsed-c.last, 0)
	c.last = elapsed
	c.now = c.now.Add(passed)
	gap := c.wall().Round(0).Sub(c.now)
	c.now = c.now.Add(min(max(gap, -passed/maxSlew), passed/maxSlew))
	return c.now.UnixMilli()
}
