package process

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsReturnedOncePerQuietPeriod(t *testing.T) {
	collections := func() int64 {
		var s debug.GCStats
		debug.ReadGCStats(&s)
		return s.NumGC
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only explicit collections
	synctest.Test(t, func(t *testing.T) {
		var applied atomic.Uint64
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = ReturnWhenIdle(ctx, applied.Load) })
		defer wg.Wait()
		defer cancel()
		after := func(d time.Duration) int64 {
			time.Sleep(d)
			synctest.Wait()
			return collections()
		}
		before := after(time.Minute)
		require.Equal(t, before, after(time.Minute), "nothing happened yet")
		applied.Add(1)
		require.Equal(t, before, after(2*time.Second), "not quiet for long enough")
		applied.Add(1)
		require.Equal(t, before+1, after(time.Minute))
		require.Equal(t, before+1, after(time.Hour), "once")
		applied.Add(1)
		require.Equal(t, before+2, after(time.Minute))
	})
}
