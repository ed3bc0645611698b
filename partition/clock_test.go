package partition

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// handClock is a clock whose machine time and monotonic time a test sets.
func handClock() (c *clock, wall *time.Time, elapsed *time.Duration) {
	wall, elapsed = new(time.Time), new(time.Duration)
	*wall = time.UnixMilli(1_700_000_000_000)
	return &clock{
		wall:    func() time.Time { return *wall },
		elapsed: func() time.Duration { return *elapsed },
		now:     *wall,
	}, wall, elapsed
}

func TestClockFollowsMonotonicTime(t *testing.T) {
	c, wall, elapsed := handClock()
	start := c.Millis()
	*elapsed += 1500 * time.Millisecond
	*wall = wall.Add(1500 * time.Millisecond)
	require.Equal(t, start+1500, c.Millis())
}

func TestClockMovesSlowlyTowardsASteppedTime(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		c, wall, elapsed := handClock()
		start := c.Millis()
		*wall = wall.Add(step)
		require.Equal(t, start, c.Millis(), "a step alone changes nothing")
		*elapsed += 10 * time.Second
		*wall = wall.Add(10 * time.Second)
		require.InDelta(t, start+10_000, c.Millis(), 101, "at most 1 in 100")
	}
}

func TestClockNeverGoesBack(t *testing.T) {
	c, wall, elapsed := handClock()
	*wall = wall.Add(-time.Hour)
	last := c.Millis()
	for range 1000 {
		*elapsed += 7 * time.Millisecond
		now := c.Millis()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

// A machine whose clock is behind leads after one whose clock was right, or ahead.
func TestClockGoesOnWhereTheLogIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour).UnixMilli()
		c := newClock(ahead, time.Now)
		time.Sleep(10 * time.Second)
		require.InDelta(t, ahead+10_000, c.Millis(), 101, "time passes all the same")
		require.Equal(t, time.Now().UnixMilli(), newClock(0, time.Now).Millis())
	})
}
