package partition

import (
	"sync"
	"time"
)

// maxSlew is by how much a leader's clock approaches the machine's, per time
// passed: 1 in 100.
const maxSlew = 100

// clock is the time a leader stamps its log entries with. It starts at the
// machine's time and then follows the monotonic clock, so that a step of the
// machine's time neither fires timers early nor holds them up; towards a stepped
// time it moves slowly. It starts no earlier than the time of the log so far, which
// does not go back: else timers would stand still until a machine whose clock is
// behind has caught up.
type clock struct {
	wall    func() time.Time     // the machine's time
	elapsed func() time.Duration // monotonic time since the clock was made

	mu   sync.Mutex // covers the fields below
	last time.Duration
	now  time.Time
}

// newClock returns a clock that starts no earlier than least, in milliseconds since
// 1970.
func newClock(least int64) *clock {
	start := time.Now()
	c := &clock{wall: time.Now, elapsed: func() time.Duration { return time.Since(start) }, now: start.Round(0)}
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
