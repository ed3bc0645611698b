package raftgroup

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/logstore/logstoretest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// stuckStorage blocks in StoreLogs until it is released.
type stuckStorage struct {
	logstore.Storage
	release chan struct{}
}

func (s *stuckStorage) StoreLogs([]*raft.Log) error {
	<-s.release
	return nil
}

func (s *stuckStorage) FirstIndex() (uint64, error) { return 0, nil }
func (s *stuckStorage) LastIndex() (uint64, error)  { return 0, nil }

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
		w := NewWatchdog(WatchdogConfig{Exit: count(&exits), Logger: slog.New(slog.NewTextHandler(&out, nil))})
		defer w.Close()
		stuck := &stuckStorage{release: make(chan struct{})}
		s := newGroupStorage(stuck, 1<<10, slog.New(slog.DiscardHandler), w.probe("p7", count(&slow)), nil)

		var wg sync.WaitGroup
		wg.Go(func() { _ = s.StoreLogs(logstoretest.Logs(1, 1)) })

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
		require.Contains(t, out.b.String(), "stuckStorage", "the stacks show who hangs")
		close(stuck.release)
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
		{applyOperation, false, true, true},
		{applyOperation, true, false, false},
		{"store_logs", true, false, true},
		{"store_logs", false, true, false},
	} {
		t.Run(fmt.Sprintf("%s, log %t, state %t", tc.kind, tc.log, tc.state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log, state, exits atomic.Uint64
				w := NewWatchdog(WatchdogConfig{
					LogProgress: log.Load, StateProgress: state.Load,
					Exit: func() { exits.Add(1) }, Logger: slog.New(slog.DiscardHandler), Tick: time.Second,
				})
				defer w.Close()
				op := w.probe("p1", func() {}).begin(tc.kind)
				defer op.end()
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
