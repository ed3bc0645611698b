package invoker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNothingIsSentAfterAPauseUntilLeadershipsAreConfirmed(t *testing.T) {
	for _, answer := range []error{nil, errors.New("another leads")} {
		asked, answers := make(chan struct{}, 9), make(chan error)
		var reported []time.Duration
		var now atomic.Int64
		p := newProcessPauses(
			func(context.Context) error { asked <- struct{}{}; return <-answers },
			func(d time.Duration, _ error) { reported = append(reported, d) })
		p.elapsed = func() time.Duration { return time.Duration(now.Load()) }

		send := p.connected()
		now.Store(int64(pauseLimit))
		require.NoError(t, send(), "not long enough to be given up")
		now.Store(int64(6 * time.Second))
		var wg sync.WaitGroup
		var through atomic.Int32
		for range 3 { // concurrent senders
			wg.Go(func() {
				if err := send(); (err == nil) != (answer == nil) {
					t.Errorf("%v after %v", err, answer)
				}
				through.Add(1)
			})
		}
		<-asked
		require.Zero(t, through.Load())
		answers <- answer
		wg.Wait()
		require.Empty(t, asked, "once for all")
		require.Equal(t, []time.Duration{6 * time.Second}, reported)
		require.NoError(t, p.connected()(), "on a new connection")
	}
}

func TestARunningProcessConfirmsNoLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcessPauses(func(context.Context) error { t.Error("asked"); return nil }, nil)
		p.begin()
		send := p.connected()
		for range 100 {
			time.Sleep(70 * time.Millisecond)
			require.NoError(t, send())
		}
		p.end()
	})
}
