package boottime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStopwatchIncludesSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Start()
		require.Zero(t, s.Elapsed())
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, s.Elapsed())
		s.suspended -= 10 * time.Minute // simulate suspension
		require.InDelta(t, time.Hour+10*time.Minute, s.Elapsed(), float64(noise))
	})
}

func TestReadSuspendedIsStable(t *testing.T) {
	first := readSuspended()
	for range 1000 {
		require.InDelta(t, first, readSuspended(), float64(noise))
	}
}

func BenchmarkElapsed(b *testing.B) {
	s := Start()
	for b.Loop() {
		s.Elapsed()
	}
}
