package partition

import (
	"context"
	"math"
	"sync"
	"time"

	"platform/internal/boottime"
)

const (
	// maxSlew is by how much the partition time approaches the time of day, per time
	// passed: 1 in 100.
	maxSlew = 100
	// leadNoise is by how much the partition time may differ from the time of day
	// before points in time have to be translated. Machines with synchronized clocks
	// stay below it.
	leadNoise = 100 * time.Millisecond
	// clockTimeout bounds how long a new leader waits for the time.
	clockTimeout = time.Second
)

// Clock is the time of day that leaders go by. It has to be right when a leadership
// begins, since everything that is due by then is fired; later errors are slowed down.
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

// clock is the partition time of a leader, which its log entries are stamped with. It
// starts at the time of day and then follows a clock that never steps and goes on
// during suspension, so that a step of the time of day neither fires timers early nor
// holds them up; it approaches a stepped time slowly. It starts no earlier than the time
// of the log so far, which does not go back: else timers would stand still until a
// machine whose clock is behind has caught up.
type clock struct {
	wall    func() time.Time     // the time of day
	elapsed func() time.Duration // since the clock was made

	mu   sync.Mutex // covers the fields below
	last time.Duration
	now  time.Time
}

// newClock returns a clock that starts no earlier than least, in milliseconds since
// 1970.
func newClock(least int64, now func() time.Time) *clock {
	c := &clock{wall: now, elapsed: boottime.Start().Elapsed, now: now().Round(0)}
	if known := time.UnixMilli(least); known.After(c.now) {
		c.now = known
	}
	return c
}

// Millis is the partition time in milliseconds since 1970. It never goes back.
func (c *clock) Millis() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.advance()
	return now.UnixMilli()
}

// advance moves the partition time on and returns it, and by how much it is ahead of
// the time of day.
func (c *clock) advance() (now time.Time, lead time.Duration) {
	elapsed := c.elapsed()
	passed := max(elapsed-c.last, 0)
	c.last = max(c.last, elapsed)
	c.now = c.now.Add(passed)
	lead = c.now.Sub(c.wall().Round(0))
	slew := min(max(-lead, -passed/maxSlew), passed/maxSlew)
	c.now = c.now.Add(slew)
	return c.now, lead + slew
}

// Lead is by how many milliseconds the partition time is ahead of the time of day, less
// than zero if it is behind, and zero if the difference is no more than noise.
func (c *clock) Lead() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, lead := c.advance()
	if lead.Abs() <= leadNoise {
		return 0
	}
	return lead.Milliseconds()
}

// translated is the partition time that is as far away as t, a time of day, when the
// partition time is ahead by lead. Times that nobody lives to see stay as they are.
func translated(t, lead int64) int64 {
	if t <= 0 || lead > 0 && t > math.MaxInt64-lead {
		return t
	}
	return max(t+lead, 1)
}
