package endpoint

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// An endpoint that ends each connection gets a new one for each attempt. The memory of those that have ended is released
// long before the timeout of idle connections, and before a ping would be due.
func TestConnectionsThatHaveEndedAreReleased(t *testing.T) {
	const requests = 50
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		if stream, _, ok := p.request(); ok {
			_ = p.framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		}
	})
	var opened, released atomic.Int64
	c := newClient(t, func(cfg *Config) {
		cfg.IdleTimeout, cfg.PingInterval = time.Hour, time.Hour
		cfg.MaySend = func() func() error {
			held := new([64]byte) // by the connection
			runtime.AddCleanup(held, func(struct{}) { released.Add(1) }, struct{}{})
			opened.Add(1)
			return func() error {
				runtime.KeepAlive(held)
				return nil
			}
		}
	})
	for range requests {
		l := listen(a)
		c.Open(l).CloseWrite()
		require.Error(t, <-l.ends)
	}
	require.GreaterOrEqual(t, opened.Load(), int64(requests))
	require.Eventually(t, func() bool {
		runtime.GC()
		return opened.Load()-released.Load() <= maxTries
	}, time.Minute, 50*time.Millisecond)
}

// A connection that is used again and again is not closed.
func TestUsedConnectionsAreKept(t *testing.T) {
	var connections atomic.Int64
	a := serveFrames(t, func(_ int, p *peer) {
		connections.Add(1)
		p.greet()
		for {
			stream, _, ok := p.request()
			if !ok {
				return
			}
			p.answer(stream, "x")
		}
	})
	c := newClient(t, func(cfg *Config) { cfg.IdleTimeout = time.Hour })
	for range 10 {
		l := listen(a)
		c.Open(l).CloseWrite()
		require.NoError(t, <-l.ends)
		c.sweepIdle()
	}
	require.EqualValues(t, 1, connections.Load())
}
