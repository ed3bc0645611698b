package invoker

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/tokenbucket"
)

// service returns the service of an attempt.
func (w *wire) service() string { return w.recv.(*attempt).t.inv.Target.Service }

// throttledWires counts the attempts of each service that have started.
type throttledWires struct {
	*offline
	starts map[string]int // guarded by offline.mu
}

func (o *throttledWires) startsOf() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.starts)
}

func throttled(t *testing.T, starts, commands tokenbucket.Rate, script func(*wire)) *throttledWires {
	cfg := DefaultConfig()
	cfg.ConcurrentInvocations = 10_000
	cfg.StartRate, cfg.ActionRate = starts, commands
	o := &throttledWires{starts: map[string]int{}}
	o.offline = newOffline(t, cfg, func(w *wire) {
		o.mu.Lock()
		o.starts[w.service()]++
		o.mu.Unlock()
		script(w)
	})
	return o
}

func TestStartsAreThrottledAndServicesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := throttled(t, tokenbucket.Rate{Count: 10, Period: time.Second, Capacity: 5}, tokenbucket.Rate{}, func(w *wire) {
			if w.service() == "Greeter" {
				answers(t)(w)
			}
		})
		defer o.close()
		for n := range byte(100) {
			o.shard.call(greeter, n+1, "")
		}
		synctest.Wait()
		require.Equal(t, map[string]int{"Greeter": 5}, o.startsOf(), "the capacity")
		require.True(t, o.iv.Short())
		st, _ := o.iv.Status(ids.NewInvocation(ids.HashKey(""), [16]byte{15: 100}))
		require.Equal(t, time.Now(), st.ThrottledSince)

		// Counter's handlers keep their slots, but do not wait behind the other service.
		for n := range byte(20) {
			o.shard.call(counter(fmt.Sprint(n)), n+1, "")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int{"Greeter": 10, "Counter": 5}, o.startsOf())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int{"Greeter": 20, "Counter": 15}, o.startsOf())
		require.False(t, o.wire(6).is(&o.wire(6).ended), "a slot would not help, so none has to make room")
		require.Equal(t, 3*time.Second, o.iv.slots.starts.waited(time.Now()))

		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]int{"Greeter": 100, "Counter": 20}, o.startsOf())
		require.False(t, o.iv.Short())
		require.Zero(t, o.iv.slots.startsThrottled())
		require.Equal(t, 115*time.Second/10, o.iv.slots.starts.waited(time.Now()))
	})
}

// A token is not lost with an invocation that was killed while it waited.
func TestEndedInvocationsUseNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := throttled(t, tokenbucket.Rate{Count: 1, Period: time.Minute, Capacity: 1}, tokenbucket.Rate{}, answers(t))
		defer o.close()
		var waiting []ids.Invocation
		for n := range byte(5) {
			id, _ := o.shard.call(greeter, n+1, "")
			waiting = append(waiting, id)
		}
		synctest.Wait()
		for _, id := range waiting[1:4] {
			o.session.task(id).abandon()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]int{"Greeter": 2}, o.startsOf())
		require.Nil(t, o.session.task(waiting[4]), "the last one has ended")
	})
}

const setA = "0403000000000007" + "0a0161" + "1a020a00" // SetState of a to an empty value

func TestCommandsAreThrottledAndServicesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := throttled(t, tokenbucket.Rate{}, tokenbucket.Rate{Count: 10, Period: time.Second, Capacity: 10}, func(w *wire) {
			w.ok()
			if w.service() == "Greeter" {
				w.send(t, longSleep)
				return
			}
			w.send(t, strings.Repeat(setA, 20)+outputHi+end)
		})
		defer o.close()
		for n := range byte(40) {
			o.shard.call(greeter, n+1, "")
		}
		synctest.Wait()
		id, ended := o.shard.call(counter("a"), 1, "")
		time.Sleep(time.Second)
		synctest.Wait()
		st, _ := o.iv.Status(id)
		require.NotZero(t, st.ThrottledSince)
		require.Zero(t, st.AbortAt, "its timeouts do not pass")
		o.iv.actions.mu.Lock()
		require.Equal(t, 26, o.iv.actions.waiting, "25 sleeps are left, and the counter")
		o.iv.actions.mu.Unlock()
		begin := time.Now()
		require.Nil(t, receive(t, ended).Failure)
		// 21 commands, five of which had their tokens: the other service has the same share until it has none left.
		require.Equal(t, 3200*time.Millisecond, time.Since(begin))
	})
}

// An attempt that ends while it waits for a token does not keep the token, its stream or its service.
func TestAttemptsThatEndLeaveTheQueueForTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := throttled(t, tokenbucket.Rate{}, tokenbucket.Rate{Count: 1, Period: time.Hour, Capacity: 1}, func(w *wire) {
			w.ok()
			w.send(t, longSleep)
		})
		defer o.close()
		for n := range byte(50) {
			id, _ := o.shard.call(greeter, n+1, "")
			synctest.Wait()
			o.session.task(id).abandon()
			synctest.Wait()
		}
		o.iv.actions.mu.Lock()
		defer o.iv.actions.mu.Unlock()
		require.Zero(t, o.iv.actions.waiting)
		require.LessOrEqual(t, o.iv.actions.turns.len(), 1)
	})
}
