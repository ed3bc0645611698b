package endpoint

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// serveLimited is a server that accepts a limited number of streams per connection.
func serveLimited(t *testing.T, limit int, secure bool, handler http.HandlerFunc) (*Address, func(*Config)) {
	s := httptest.NewUnstartedServer(handler)
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: limit}
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	t.Cleanup(s.Close)
	a, err := ParseAddress(s.URL, false)
	require.NoError(t, err)
	return a, func(cfg *Config) {
		if secure {
			cfg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
		}
	}
}

// TestStreamsBeyondTheLimitOfThePeer opens streams of which none ends before all have arrived, like
// calls that wait for each other.
func TestStreamsBeyondTheLimitOfThePeer(t *testing.T) {
	const streams = 60
	for limit := 1; limit <= 10; limit++ {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %t", limit, secure), func(t *testing.T) {
				var mu sync.Mutex
				open, most := map[string]int{}, 0
				arrived, all := 0, make(chan struct{})
				a, change := serveLimited(t, limit, secure, func(_ http.ResponseWriter, r *http.Request) {
					mu.Lock()
					open[r.RemoteAddr]++
					most = max(most, open[r.RemoteAddr])
					if arrived++; arrived == streams {
						close(all)
					}
					mu.Unlock()
					select {
					case <-all:
					case <-r.Context().Done():
					}
				})
				c := newClient(t, change)
				var ends []*listener
				for range streams {
					l := listen(a)
					c.Open(l).CloseWrite()
					ends = append(ends, l)
				}
				for _, l := range ends {
					select {
					case err := <-l.ends:
						require.NoError(t, err)
					case <-time.After(20 * time.Second):
						require.Fail(t, "a stream hangs", "%d of %d arrived", arrived, streams)
					}
				}
				require.Equal(t, limit, most)
				require.LessOrEqual(t, len(open), streams)
			})
		}
	}
}

func TestAPeerThatAcceptsNoStreams(t *testing.T) {
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
		p.drain()
	})
	l := listen(a)
	newClient(t, nil).Open(l)
	require.ErrorIs(t, <-l.ends, errNoRoom)
}

func TestAPeerThatSendsNoSettings(t *testing.T) {
	quick := func(cfg *Config) { cfg.ConnectTimeout = 50 * time.Millisecond }
	l := listen(serveFrames(t, func(_ int, p *peer) { p.drain() }))
	newClient(t, quick).Open(l)
	require.ErrorIs(t, <-l.ends, ErrSilent)

	l = listen(serveFrames(t, func(_ int, p *peer) {
		for range 2 { // what the client begins with, so that nothing is left unread
			_, _ = p.framer.ReadFrame()
		}
	}))
	newClient(t, nil).Open(l)
	require.ErrorIs(t, <-l.ends, errNoGreeting)
}

// TestAnUnprocessedRequestIsSentAgain closes or resets after much of the
// body has been sent.
func TestAnUnprocessedRequestIsSentAgain(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 100)
	for name, refuse := range map[string]func(*peer, uint32){
		"graceful GOAWAY": func(p *peer, _ uint32) {
			_ = p.framer.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			_ = p.framer.WriteGoAway(0, http2.ErrCodeNo, nil)
			p.drain()
		},
		"GOAWAY and close": func(p *peer, _ uint32) { _ = p.framer.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"refused stream": func(p *peer, stream uint32) {
			_ = p.framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
			stream, got, ok := p.request()
			require.True(t, ok)
			p.answer(stream, got)
			p.drain()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := serveFrames(t, func(n int, p *peer) {
				p.greet()
				if n == 0 {
					stream, _, ok := p.request()
					require.True(t, ok)
					refuse(p, stream)
					return
				}
				for {
					stream, got, ok := p.request()
					if !ok {
						return
					}
					p.answer(stream, got)
				}
			})
			l := listen(a)
			s := newClient(t, nil).Open(l)
			s.Write(body[:300])
			s.Write(body[300:])
			s.CloseWrite()
			require.NoError(t, <-l.ends)
			require.Equal(t, string(body), l.got.String())
		})
	}
}

func TestAPeerThatRefusesEverything(t *testing.T) {
	var asked atomic.Int32
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		for {
			stream, ok := p.headers()
			if !ok {
				return
			}
			asked.Add(1)
			_ = p.framer.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		}
	})
	l := listen(a)
	newClient(t, nil).Open(l)
	require.ErrorContains(t, <-l.ends, "REFUSED_STREAM")
	require.EqualValues(t, sharedTries+1, asked.Load())
}

func TestStreamsBelowTheGOAWAYLimitContinue(t *testing.T) {
	a := serveFrames(t, func(n int, p *peer) {
		p.greet()
		stream, got, ok := p.request()
		if !ok {
			return
		}
		_ = p.framer.WriteGoAway(stream, http2.ErrCodeNo, nil)
		p.answer(stream, fmt.Sprint(n, got))
		p.drain()
	})
	c := newClient(t, nil)
	for n := range 3 {
		l := listen(a)
		s := c.Open(l)
		s.Write([]byte("x"))
		s.CloseWrite()
		require.NoError(t, <-l.ends)
		require.Equal(t, fmt.Sprint(n, "x"), l.got.String(), "each on a connection of its own")
	}
}

// TestAServerThatKeepsClosingConnections makes a real server send GOAWAY after nearly every
// response while other requests are in flight.
func TestAServerThatKeepsClosingConnections(t *testing.T) {
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Connection", "close")
		_, _ = w.Write(b)
	})
	c := newClient(t, nil)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 50 {
				l := listen(a)
				s := c.Open(l)
				s.Write([]byte("some"), []byte(" body"))
				s.CloseWrite()
				if err := <-l.ends; err != nil || l.got.String() != "some body" {
					t.Errorf("got %q, %v", l.got.String(), err)
				}
			}
		})
	}
	work.Wait()
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{}, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		stream, _, ok := p.request()
		if !ok {
			return // idle for too long before the request came: on a busy machine that may be
		}
		p.answer(stream, "")
		p.drain()
		closed <- struct{}{}
	})
	l := listen(a)
	newClient(t, func(cfg *Config) { cfg.IdleTimeout = 200 * time.Millisecond }).Open(l).CloseWrite()
	require.NoError(t, <-l.ends)
	<-closed
}

func TestAPeerThatDoesNotRespondToPings(t *testing.T) {
	pinged := make(chan struct{})
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		for {
			f, err := p.framer.ReadFrame()
			if err != nil {
				return
			}
			if f.Header().Type == http2.FramePing {
				close(pinged)
				p.drain()
				return
			}
		}
	})
	l := listen(a)
	newClient(t, func(cfg *Config) {
		cfg.PingInterval, cfg.PingTimeout = 20*time.Millisecond, 20*time.Millisecond
	}).Open(l)
	<-pinged
	require.ErrorIs(t, <-l.ends, errLost)
}
