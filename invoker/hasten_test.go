package invoker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

func (o *offline) hasten(id ids.Invocation) {
	o.session.Hasten(&machine.Hasten{ID: id, Attempt: o.shard.record(id).Attempt})
	synctest.Wait()
}

func answers(t testing.TB) func(*wire) {
	return func(w *wire) {
		w.ok()
		w.send(t, outputHi+end)
	}
}

func TestHastenEndsABackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(2, metadata.Kill), fails(t), fails(t), answers(t))
		defer o.close()
		id, ended := o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.session.Hasten(&machine.Hasten{ID: id, Attempt: o.shard.record(id).Attempt + 1})
		o.session.Hasten(&machine.Hasten{ID: ids.NewInvocation(9, [16]byte{9}), Attempt: 1})
		synctest.Wait()
		require.Empty(t, o.gaps(), "another attempt or invocation was meant")
		o.hasten(id)
		require.Equal(t, []time.Duration{0}, o.gaps())

		// The retry policy started again: otherwise the second failure would have been the last.
		st, ok := o.iv.Status(id)
		require.True(t, ok)
		require.Equal(t, 2, st.RetryCount, "what operators see goes on")
		require.False(t, st.NextRetryAt.IsZero())
		require.Nil(t, receive(t, ended).Failure)
		require.Len(t, o.gaps(), 2)
		require.GreaterOrEqual(t, o.gaps()[1], time.Second, "the first delay of the policy")
		require.Less(t, o.gaps()[1], 1300*time.Millisecond+time.Millisecond)
	})
}

// The timer of the backoff that was ended early is still set when the next, longer one
// starts.
func TestAStaleBackoffDoesNotStartAnAttemptEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := func(w *wire) {
			w.ok()
			w.send(t, frame(0x0002, "08f403"+"40b0ea01")) // wait for 30 s
		}
		o := newOffline(t, policy(0, metadata.Kill), fails(t), asks, answers(t))
		defer o.close()
		id, ended := o.shard.call(greeter, 1, "")
		synctest.Wait() // it would continue in 1 s
		o.hasten(id)
		require.Len(t, o.gaps(), 1)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Len(t, o.gaps(), 1)
		receive(t, ended)
		require.Equal(t, []time.Duration{0, 30 * time.Second}, o.gaps())
	})
}

func TestHastenOfARunningAttemptDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *offline
		var id ids.Invocation
		release := make(chan struct{})
		o = newOffline(t, policy(2, metadata.Pause), func(w *wire) {
			<-release
			fails(t)(w)
		})
		defer o.close()
		id, _ = o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.hasten(id)
		o.hasten(id)
		require.Empty(t, o.gaps())
		require.False(t, o.wire(0).is(&o.wire(0).reset))
		release <- struct{}{}
		release <- struct{}{}
		synctest.Wait()
		require.Equal(t, machine.Paused, o.shard.record(id).Status, "it gave no attempt more")
		require.Len(t, o.gaps(), 1)
	})
}

func TestHastenBeforeASlotAndAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(3, metadata.Pause)
		cfg.ConcurrentInvocations = 1
		release := make(chan struct{})
		o := newOffline(t, cfg, func(w *wire) {
			<-release
			answers(t)(w)
		})
		defer o.close()
		_, first := o.shard.call(greeter, 1, "")
		synctest.Wait()
		id, second := o.shard.call(greeter, 2, "")
		synctest.Wait()
		attempt := o.shard.record(id).Attempt
		o.hasten(id)
		o.hasten(id)
		require.Empty(t, o.gaps())
		for _, done := range []chan journal.Result{first, second} {
			release <- struct{}{}
			receive(t, done)
		}
		o.session.Hasten(&machine.Hasten{ID: id, Attempt: attempt})
		synctest.Wait()
		require.Len(t, o.gaps(), 1)
		o.iv.slots.mu.Lock()
		defer o.iv.slots.mu.Unlock()
		require.Zero(t, o.iv.slots.used)
	})
}

// An attempt that is open when a cancel comes may fail before it has stored anything. The next one
// must see the cancel, and must not wait for the delay of the policy.
func TestACancelOfAFailingAttemptIsDeliveredImmediately(t *testing.T) {
	for name, attempts := range map[string]int{"policy goes on": 0, "policy is used up": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o *offline
				var id ids.Invocation
				cfg := policy(attempts, metadata.Pause)
				cfg.Level = func() feature.Level { return feature.Newest } // like that of the log
				o = newOffline(t, cfg, func(w *wire) {
					time.Sleep(2 * time.Second)
					fails(t)(w)
				}, func(w *wire) { w.ok() })
				defer o.close()
				id, _ = o.shard.call(greeter, 1, "")
				time.Sleep(time.Second)
				o.shard.submit(&machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal)}, func(machine.Outcome, error) {})
				time.Sleep(2 * time.Second)
				synctest.Wait()
				require.Equal(t, []time.Duration{2 * time.Second}, o.gaps())
				o.wire(1).send(t, frame(0x0002, "08f403"))
				synctest.Wait()
				if attempts == 1 {
					require.Equal(t, machine.Paused, o.shard.record(id).Status, "one cancel, one attempt more")
				} else {
					require.Len(t, o.gaps(), 1, "the policy goes on")
				}
			})
		})
	}
}
