package watchdog

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// stuckWrite is an operation that ends once release is closed.
func stuckWrite(p *Probe, release <-chan struct{}) {
	defer p.Begin("store_logs").End()
	<-release
}

// lockedBuffer is a log that two goroutines may write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestWatchdogReportsSlowAndEndsHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		var slow, exits int
		var mu sync.Mutex
		count := func(n *int) func() {
			return func() {
				mu.Lock()
				defer mu.Unlock()
				*n++
			}
		}
		w := New(Config{Exit: count(&exits), Logger: slog.New(slog.NewTextHandler(&out, nil))})
		defer w.Close()
		release := make(chan struct{})
		probe := w.Probe("p7", count(&slow))
		var wg sync.WaitGroup
		wg.Go(func() { stuckWrite(probe, release) })

		expect := func(wantSlow, wantExits int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, wantSlow, slow)
			require.Equal(t, wantExits, exits)
		}
		time.Sleep(1900 * time.Millisecond)
		expect(0, 0)
		time.Sleep(600 * time.Millisecond)
		expect(1, 0)
		time.Sleep(7 * time.Second)
		expect(1, 0)
		time.Sleep(600 * time.Millisecond)
		expect(1, 1)
		require.Contains(t, out.b.String(), "group=p7")
		require.Contains(t, out.b.String(), "stuckWrite", "the stacks show who hangs")
		close(release)
		wg.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.LessOrEqual(t, exits, 2)
	})
}

// An operation may wait while the database that it writes to flushes and compacts. It hangs
// once that does not advance either.
func TestWatchdogWaitsWhileTheDatabaseAdvances(t *testing.T) {
	for _, tc := range []struct {
		kind       string
		log, state bool // which database advances
		waits      bool
	}{
		{Apply, false, true, true},
		{Apply, true, false, false},
		{"store_logs", true, false, true},
		{"store_logs", false, true, false},
	} {
		t.Run(fmt.Sprintf("%s, log %t, state %t", tc.kind, tc.log, tc.state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log, state, exits atomic.Uint64
				w := New(Config{
					LogProgress: log.Load, StateProgress: state.Load,
					Exit: func() { exits.Add(1) }, Logger: slog.New(slog.DiscardHandler), Tick: time.Second,
				})
				defer w.Close()
				op := w.Probe("p1", func() {}).Begin(tc.kind)
				defer op.End()
				for range 6 {
					time.Sleep(5 * time.Second)
					if tc.log {
						log.Add(1)
					}
					if tc.state {
						state.Add(1)
					}
				}
				synctest.Wait()
				require.Equal(t, tc.waits, exits.Load() == 0)
				time.Sleep(12 * time.Second)
				synctest.Wait()
				require.NotZero(t, exits.Load())
			})
		})
	}
}

func TestTimeInWhichTheProcessDidNotRunDoesNotCount(t *testing.T) {
	now := time.Now()
	var exits, slow int
	w := &Watchdog{
		cfg:       Config{Slow: 2 * time.Second, Hung: 10 * time.Second, Tick: 250 * time.Millisecond, Exit: func() { exits++ }, Logger: slog.New(slog.DiscardHandler)},
		ops:       map[*Operation]struct{}{},
		checkedAt: now,
	}
	op := w.Probe("p", func() { slow++ }).Begin("apply")
	defer op.End()
	now = now.Add(time.Hour) // the process was stopped
	w.check(now)
	require.Zero(t, exits)
	for range 9 * 4 {
		now = now.Add(w.cfg.Tick)
		w.check(now)
	}
	w.wg.Wait()
	require.Equal(t, 1, slow)
	require.Zero(t, exits)
	for range 2 * 4 {
		now = now.Add(w.cfg.Tick)
		w.check(now)
	}
	require.Positive(t, exits)
}
