package invoker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
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

func TestIdleHandlersMakeRoomWhenSlotsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) {
			w.ok()
			w.send(t, longSleep)
		}, answers(t))
		defer o.close()
		o.shard.call(greeter, 1, "")
		synctest.Wait()
		time.Sleep(2 * idlerTimeout)
		require.False(t, o.wire(0).is(&o.wire(0).ended), "nobody needs the slot")

		_, ended := o.shard.call(greeter, 2, "")
		time.Sleep(idlerTimeout + time.Millisecond)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended), "asked to suspend")
		o.wire(0).send(t, "0001000000000006"+"0a0102120101") // it does
		require.Nil(t, receive(t, ended).Failure)
	})
}

// The handler becomes idle when slots are short already.
func TestHandlersThatBecomeIdleMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) { w.ok() }, answers(t))
		defer o.close()
		o.shard.call(greeter, 1, "")
		_, ended := o.shard.call(greeter, 2, "")
		time.Sleep(5 * idlerTimeout)
		synctest.Wait()
		require.False(t, o.wire(0).is(&o.wire(0).ended), "it has asked for nothing yet")
		o.wire(0).send(t, longSleep)
		time.Sleep(idlerTimeout + time.Millisecond)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended))
		o.wire(0).send(t, "0001000000000006"+"0a0102120101")
		require.Nil(t, receive(t, ended).Failure)
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
		time.Sleep(5 * idlerTimeout)
		synctest.Wait()
		require.False(t, o.wire(0).is(&o.wire(0).ended), "it executes a run")
	})
}
