package invoker

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
)

// Frames of a handler that sleeps for long, and of one that begins a run.
const (
	longSleep = "040c000000000009" + "0880d095ffbc315802"
	beginRun  = "0411000000000005" + "5801620172"
)

// oneSlot has one slot, which the first script's handler takes.
func oneSlot(t *testing.T, scripts ...func(*wire)) *offline {
	cfg := DefaultConfig()
	cfg.ConcurrentInvocations = 1
	return newOffline(t, cfg, scripts...)
}

func TestIdleHandlersAreSuspendedWhenSlotsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) {
			w.ok()
			w.send(t, longSleep)
		}, answers(t))
		defer o.close()
		o.shard.call(greeter, 1, "")
		synctest.Wait()
		time.Sleep(2 * idleTimeout)
		require.False(t, o.wire(0).is(&o.wire(0).ended), "no invocation waits for the slot")

		_, ended := o.shard.call(greeter, 2, "")
		time.Sleep(idleTimeout + time.Millisecond)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended), "asked to suspend")
		o.wire(0).send(t, "0001000000000006"+"0a0102120101") // it does
		require.Nil(t, receive(t, ended).Failure)
	})
}

// Timeouts may be so long that they mean none.
func TestIdleHandlersAreNotAbortedWithoutTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.ConcurrentInvocations = 1
		cfg.Defaults.InactivityTimeout, cfg.Defaults.AbortTimeout = 200*365*24*time.Hour, 200*365*24*time.Hour
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			w.send(t, longSleep)
		}, answers(t))
		defer o.close()
		o.shard.call(greeter, 1, "")
		_, ended := o.shard.call(greeter, 2, "")
		time.Sleep(2 * idleTimeout)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended), "asked to suspend")
		require.False(t, o.wire(0).is(&o.wire(0).reset))
		o.wire(0).send(t, "0001000000000006"+"0a0102120101")
		require.Nil(t, receive(t, ended).Failure)
	})
}

// The handler becomes idle when slots are short already.
func TestHandlersThatBecomeIdleAreSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) { w.ok() }, answers(t))
		defer o.close()
		o.shard.call(greeter, 1, "")
		_, ended := o.shard.call(greeter, 2, "")
		time.Sleep(idleTimeout / 2)
		o.wire(0).send(t, longSleep)
		time.Sleep(idleTimeout + time.Millisecond)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended))
		o.wire(0).send(t, "0001000000000006"+"0a0102120101")
		require.Nil(t, receive(t, ended).Failure)
	})
}

// TestOpenAttemptsAreNotScannedTooOften bounds the CPU of scans: while slots are short, some attempt
// becomes overdue all the time.
func TestOpenAttemptsAreNotScannedTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const open, waiting = 500, 100
		cfg := DefaultConfig()
		cfg.ConcurrentInvocations = open
		o := newOffline(t, cfg, idle(t))
		defer o.close()
		for n := range open + waiting {
			o.shard.callAs(ids.NewInvocation(0, [16]byte{14: byte(n >> 8), 15: byte(n)}), greeter, "")
		}
		scans, last := 0, time.Time{}
		for range time.Second / time.Millisecond {
			time.Sleep(time.Millisecond)
			synctest.Wait()
			c := &o.session.timers
			c.mu.Lock()
			if c.scanned != last {
				scans, last = scans+1, c.scanned
			}
			c.mu.Unlock()
		}
		require.Greater(t, len(o.asked()), 5*maxRoomOpenings, "they make room between scans")
		require.LessOrEqual(t, scans, int(time.Second/(open*scanPause))+1)
	})
}

func TestBusyHandlersKeepTheirSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) {
			w.ok()
			w.send(t, beginRun)
		}, func(w *wire) { w.ok() })
		defer o.close()
		o.shard.call(greeter, 1, "")
		o.shard.call(greeter, 2, "")
		time.Sleep(5 * idleTimeout)
		synctest.Wait()
		require.False(t, o.wire(0).is(&o.wire(0).ended), "it executes a run")
	})
}

// suspendsOnAwakeable is of a handler that waits for an awakeable.
const suspendsOnAwakeable = "0001000000000004" + "12021101"

// opened returns the number of attempts so far.
func (o *offline) opened() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.wires)
}

// silentHandlers returns a script that takes slots with handlers that send no command, and
// the attempts of the script so far that were asked to suspend.
func silentHandlers() (script func(*wire), asked func() []*wire) {
	var mu sync.Mutex
	var all []*wire
	script = func(w *wire) {
		w.ok()
		mu.Lock()
		defer mu.Unlock()
		all = append(all, w)
	}
	return script, func() (ended []*wire) {
		mu.Lock()
		defer mu.Unlock()
		for _, w := range all {
			if w.is(&w.ended) {
				ended = append(ended, w)
			}
		}
		return ended
	}
}

// Handlers that only wait for awakeables send nothing. While others wait for their slots
// they are asked to suspend, more of them as they do so.
func TestSilentWaitingHandlersAreSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 250
		cfg := DefaultConfig()
		cfg.ConcurrentInvocations = 100
		silent, asked := silentHandlers()
		o := newOffline(t, cfg, silent)
		defer o.close()
		for n := range count {
			o.shard.call(greeter, byte(n), "")
		}
		synctest.Wait()
		require.Empty(t, asked())
		time.Sleep(idleTimeout)
		synctest.Wait()
		require.Len(t, asked(), initialProbes, "no more until these have answered")

		begin, suspended := time.Now(), map[*wire]bool{}
		for o.opened() < count {
			for _, w := range asked() {
				if !suspended[w] {
					suspended[w] = true
					w.send(t, suspendsOnAwakeable)
				}
			}
			time.Sleep(scanGap)
			synctest.Wait()
			require.Less(t, time.Since(begin), 5*time.Second)
		}
		require.Less(t, time.Since(begin), 2*time.Second, "all have begun")
	})
}

// A handler that computes is not interrupted in favor of others of its service, except for a few
// probes.
func TestSilentHandlersThatComputeKeepTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.ConcurrentInvocations = 100
		silent, asked := silentHandlers()
		o := newOffline(t, cfg, silent)
		defer o.close()
		for n := range 150 {
			o.shard.call(greeter, byte(n), "")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, len(asked()), initialProbes+10, "one in a second")
	})
}

// Being asked early to suspend does not shorten the time after which an attempt is cut.
func TestEarlySuspensionDoesNotShortenTheAbortTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.ConcurrentInvocations = 1
		cfg.Defaults.InactivityTimeout, cfg.Defaults.AbortTimeout = time.Hour, 2*time.Second
		o := newOffline(t, cfg, func(w *wire) { w.ok() })
		defer o.close()
		o.shard.call(greeter, 1, "")
		o.shard.call(greeter, 2, "")
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended), "asked to suspend")
		require.False(t, o.wire(0).is(&o.wire(0).reset), "it may be silent for an hour")
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).reset))
	})
}

// idle is the script of a handler that sleeps for long.
func idle(t *testing.T) func(*wire) {
	return func(w *wire) {
		w.ok()
		w.send(t, longSleep)
	}
}

// asked returns the attempts so far that were asked to suspend.
func (o *offline) asked() (asked []*wire) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.wires {
		if w.is(&w.ended) {
			asked = append(asked, w)
		}
	}
	return asked
}

// Idle handlers are asked to make room only as fast as the endpoint responds to what it has been
// sent. One that does not respond gets some in each openingTime, so that others do not starve.
func TestRoomIsMadeAsFastAsTheEndpointResponds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.ConcurrentInvocations = 150
		o := newOffline(t, cfg, idle(t))
		defer o.close()
		const count = 250
		for n := range count {
			o.shard.call(greeter, byte(n), "")
		}
		time.Sleep(idleTimeout + time.Millisecond)
		synctest.Wait()
		require.Len(t, o.asked(), maxRoomOpenings, "none has suspended")
		time.Sleep(openingTime - 2*scanGap)
		synctest.Wait()
		require.Len(t, o.asked(), maxRoomOpenings)
		time.Sleep(4 * scanGap)
		synctest.Wait()
		require.Len(t, o.asked(), 2*maxRoomOpenings, "although none has suspended")

		begin, suspended := time.Now(), map[*wire]bool{}
		for o.opened() < count {
			for _, w := range o.asked() {
				if !suspended[w] {
					suspended[w] = true
					w.send(t, "0001000000000006"+"0a0102120101")
				}
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.Less(t, time.Since(begin), time.Second, "one that keeps up makes room faster")
		}
	})
}
