package raftgroup

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// stuckStorage blocks in StoreLogs until it is released.
type stuckStorage struct {
	Storage
	release chan struct{}
}

func (s *stuckStorage) StoreLogs([]*raft.Log) error {
	<-s.release
	return nil
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
		w := NewWatchdog(WatchdogConfig{Exit: count(&exits), Logger: slog.New(slog.NewTextHandler(&out, nil))})
		defer w.Close()
		stuck := &stuckStorage{release: make(chan struct{})}
		s := newGroupStorage(stuck, 1<<10, slog.New(slog.DiscardHandler), w.probe("p7", count(&slow)), nil)

		var wg sync.WaitGroup
		wg.Go(func() { _ = s.StoreLogs(testLogs(1, 1)) })

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
