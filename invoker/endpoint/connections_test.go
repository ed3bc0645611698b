package endpoint

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// However a peer ends requests, it does not get more and more connections: they would use up the file descriptors of the
// process.
func TestConnectionsToAPeerAreBounded(t *testing.T) {
	const (
		requests = 100
		most     = maxSpare + maxTries
	)
	refuse := func(p *peer, stream uint32) { _ = p.framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream) }
	for name, c := range map[string]struct {
		succeed bool
		respond func(p *peer, nth int, stream uint32) // to the nth request of a connection
	}{
		"each request is refused": {false, func(p *peer, _ int, stream uint32) { refuse(p, stream) }},
		"the first request of a connection is accepted": {true, func(p *peer, nth int, stream uint32) {
			if nth > 0 {
				refuse(p, stream)
				return
			}
			p.answer(stream, "x")
		}},
		"no stream is accepted after the first": {true, func(p *peer, _ int, stream uint32) {
			_ = p.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			p.answer(stream, "x")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var open, opened atomic.Int64
			a := serveFrames(t, func(_ int, p *peer) {
				open.Add(1)
				opened.Add(1)
				defer open.Add(-1)
				p.greet()
				for nth := 0; ; nth++ {
					stream, _, ok := p.request()
					if !ok {
						return
					}
					c.respond(p, nth, stream)
				}
			})
			client := newClient(t, nil)
			for range requests {
				l := listen(a)
				s := client.Open(l)
				s.CloseWrite()
				if err := <-l.ends; c.succeed {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, "REFUSED_STREAM")
				}
			}
			require.LessOrEqual(t, opened.Load(), int64(requests+1))
			require.Eventually(t, func() bool { return open.Load() <= most }, 10*time.Second, time.Millisecond)
		})
	}
}
