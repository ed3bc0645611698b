package invoker

import (
	"testing"
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
