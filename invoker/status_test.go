package invoker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/metadata"
)

// TestStatusHoldsNoLockOfTheInvoker reads the status of an invocation while the end of a probe has all
// attempts checked, which locks the invoker after the task.
func TestStatusHoldsNoLockOfTheInvoker(t *testing.T) {
	iv := New(policy(1, metadata.Pause), &bench{schemas: testSchemas("http://nowhere/")}, nil)
	s := iv.openSession(nil)
	task := newTask(s, ids.Invocation{1}, 1)
	require.True(t, s.add(task))
	const rounds = 100_000
	ended := make(chan struct{}, 2)
	go func() {
		for range rounds {
			_, known := iv.Status(task.id)
			if !known {
				t.Error("the invocation is unknown")
			}
		}
		ended <- struct{}{}
	}()
	go func() {
		for range rounds {
			task.mu.Lock()
			iv.scanOpen(time.Now().Add(time.Hour))
			task.mu.Unlock()
		}
		ended <- struct{}{}
	}()
	for range cap(ended) {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("deadlock")
		}
	}
	s.Close()
	iv.Close()
}

// TestAttemptsThatWaitForMemoryAreNotScheduled reads the status of an attempt that has sent nothing yet:
// its endpoint cannot be silent.
func TestAttemptsThatWaitForMemoryAreNotScheduled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o := newOffline(t, memories(10_000, 8_000), func(w *wire) {
			<-release
			w.recv.(*attempt).Sent(w.length())
			w.ok()
			w.send(t, outputHi+end)
		})
		defer o.close()
		sent, first := o.shard.call(greeter, 1, string(make([]byte, 7000)))
		synctest.Wait()
		waiting, second := o.shard.call(greeter, 2, string(make([]byte, 3500)))
		synctest.Wait()
		require.Equal(t, loading, o.session.task(waiting).state)
		status, _ := o.iv.Status(waiting)
		require.True(t, status.InFlight)
		require.Zero(t, status.ActiveAt)
		require.Zero(t, status.SuspendAt)
		require.Zero(t, status.AbortAt)
		status, _ = o.iv.Status(sent)
		require.True(t, status.AbortAt.After(status.SuspendAt) && status.SuspendAt.After(status.ActiveAt))
		close(release)
		require.Nil(t, receive(t, first).Failure)
		require.Nil(t, receive(t, second).Failure)
	})
}
