package invoker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/journal"
)

// wholes calls a handler that waits for the result of a run while waits is set.
type wholes struct {
	*offline
	t     *testing.T
	calls int
	waits bool
	whole []bool // of each attempt: its request had ended before the handler began
}

func newWholes(t *testing.T, cfg Config) *wholes {
	c := &wholes{t: t}
	c.offline = newOffline(t, cfg, func(w *wire) {
		first := !c.waits || len(c.whole) == 0
		whole := w.is(&w.ended)
		c.whole = append(c.whole, whole)
		w.ok()
		if first && c.waits {
			w.send(t, beginRun+runResult)
			if whole {
				w.send(t, "0001000000000006"+"0a0101120101") // suspends until the run has a result
				return
			}
		}
		w.send(t, outputHi+end)
	})
	return c
}

// call returns whether the requests of the attempts of a call ended with the input.
func (c *wholes) call() []bool {
	c.t.Helper()
	c.whole = nil
	c.calls++
	_, ended := c.shard.callAs(ids.NewInvocation(0, [16]byte{14: byte(c.calls >> 8), 15: byte(c.calls)}), greeter, "")
	synctest.Wait()
	require.Nil(c.t, receive(c.t, ended).Failure)
	return c.whole
}

func TestRequestsEndWithTheInputOfHandlersThatWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWholes(t, DefaultConfig())
		defer c.close()
		for range firstWhole {
			require.Equal(t, []bool{false}, c.call())
		}
		require.Equal(t, []bool{true}, c.call())
		require.Equal(t, []bool{true}, c.call())

		c.waits = true
		require.Equal(t, []bool{true, false}, c.call(), "it suspends, and its next request is open")
		require.Equal(t, []bool{false}, c.call())
		c.waits = false
		for range 2 * firstWhole {
			require.Equal(t, []bool{false}, c.call())
		}
		require.Equal(t, []bool{true}, c.call())
	})
}

func TestRequestsOfHandlersThatWaitStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWholes(t, DefaultConfig())
		defer c.close()
		for range 2 * firstWhole {
			c.waits = true
			require.Equal(t, []bool{false}, c.call())
			c.waits = false
			require.Equal(t, []bool{false}, c.call())
		}
	})
}

// TestTimeoutsOfWholeRequests are the same as those of open ones.
func TestTimeoutsOfWholeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		silent := false
		o := newOffline(t, cfg, func(w *wire) {
			w.ok()
			if !silent {
				w.send(t, outputHi+end)
			}
		})
		defer o.close()
		var ended chan journal.Result
		for n := range firstWhole + 1 {
			silent = n == firstWhole
			_, ended = o.shard.call(greeter, byte(n), "")
			synctest.Wait()
		}
		w := o.wire(firstWhole)
		require.True(t, w.is(&w.ended))
		time.Sleep(cfg.Defaults.InactivityTimeout + cfg.Defaults.AbortTimeout - time.Second)
		synctest.Wait()
		require.False(t, w.is(&w.reset))
		silent = false
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.True(t, w.is(&w.reset))
		time.Sleep(time.Minute)
		require.Nil(t, receive(t, ended).Failure)
	})
}
