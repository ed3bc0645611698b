package partition

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// handClock returns a clock whose wall clock and monotonic clock are set by the test.
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

func TestClockSlewsTowardsASteppedTime(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		c, wall, elapsed := handClock()
		start := c.Millis()
		*wall = wall.Add(step)
		require.Equal(t, start, c.Millis(), "a step alone has no effect")
		*elapsed += 10 * time.Second
		*wall = wall.Add(10 * time.Second)
		slew := c.Millis() - start - 10_000
		require.InDelta(t, step.Milliseconds()/step.Abs().Milliseconds()*100, slew, 1, "1 in 100, so that a wrong clock does not stay wrong")
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

// Whatever the partition time is, a handler sleeps for the requested duration: not shorter
// by more than the noise, and not longer by more than the slew of 1 in 100.
func TestDurationsDoNotDependOnPartitionTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, wall, elapsed := handClock()
		skew := rapid.Int64Range(-7_200_000, 7_200_000).Draw(t, "skew")
		c.now = c.now.Add(time.Duration(skew) * time.Millisecond)
		pass := func(d time.Duration) { *elapsed += d; *wall = wall.Add(d) }
		pass(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "before")) * time.Millisecond)

		asked := time.Duration(rapid.Int64Range(1, 600_000).Draw(t, "asked")) * time.Millisecond
		due := c.Offset().toPartition(wall.Add(asked).UnixMilli())
		begin := *elapsed
		if now := c.Millis(); now < due {
			// Steps of the wall clock meanwhile have no effect.
			step := rapid.SampledFrom([]time.Duration{0, time.Hour, -time.Hour}).Draw(t, "step")
			for c.Millis() < due {
				*wall = wall.Add(step)
				step = 0
				pass(time.Duration(rapid.Int64Range(1, 5000).Draw(t, "pass")) * time.Millisecond)
				if left := due - c.Millis(); left > 0 && left < 5000 { // the timer's alarm
					pass(time.Duration(left) * time.Millisecond)
				}
			}
		}
		slept := *elapsed - begin
		slack := asked/90 + ignoredOffset + 2*time.Millisecond
		require.GreaterOrEqual(t, slept, asked-slack)
		require.LessOrEqual(t, slept, asked+slack+5*time.Second)
	})
}

// Times that would overflow are unchanged.
func TestTranslationKeepsExtremeTimes(t *testing.T) {
	require.Zero(t, clockOffset(5000).toPartition(0), "zero means no time")
	require.EqualValues(t, math.MaxInt64, clockOffset(5000).toPartition(math.MaxInt64))
	require.EqualValues(t, math.MaxInt64-5, clockOffset(5).toPartition(math.MaxInt64-10))
	require.EqualValues(t, 1, clockOffset(-5000).toPartition(1000), "a time in the past must not become zero")
}

// A machine that was suspended fires its due timers when it resumes.
func TestSuspensionCounts(t *testing.T) {
	c, wall, elapsed := handClock()
	due := c.Millis() + 3_600_000
	*elapsed += 2 * time.Hour // of the clock that continues during suspension
	*wall = wall.Add(2 * time.Hour)
	require.GreaterOrEqual(t, c.Millis(), due)
	require.Zero(t, c.Offset())
}

// A machine whose clock is behind becomes leader after one whose clock was right or ahead.
func TestClockContinuesAtTheTimeOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour).UnixMilli()
		c := newClock(ahead, time.Now)
		time.Sleep(10 * time.Second)
		require.InDelta(t, ahead+10_000, c.Millis(), 101, "time advances nevertheless")
		require.Equal(t, time.Now().UnixMilli(), newClock(0, time.Now).Millis())
	})
}
