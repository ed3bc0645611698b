package endpoint

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// calm resets a stream as a peer does whose connection is out of memory.
func (p *peer) calm(stream uint32) { _ = p.framer.WriteRSTStream(stream, http2.ErrCodeEnhanceYourCalm) }

// TestAnExhaustedConnectionIsRetired has the first connection reset every stream but one that was
// open before, which continues.
func TestAnExhaustedConnectionIsRetired(t *testing.T) {
	arrived := make(chan struct{})
	closed := make(chan struct{})
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	a := serveFrames(t, func(n int, p *peer) {
		p.greet()
		first := uint32(0)
		for {
			stream, got, ok := p.request()
			switch {
			case !ok:
				if n == 0 {
					close(closed)
				}
				return
			case n == 0 && first == 0:
				first = stream
				close(arrived)
			case n == 0:
				p.calm(stream)
				<-hold
				p.answer(first, "0 kept")
			default:
				p.answer(stream, fmt.Sprint(n, got))
			}
		}
	})
	c := newClient(t, nil)
	open := func() *listener {
		l := listen(a)
		s := c.Open(l)
		s.Write([]byte(" x"))
		s.CloseWrite()
		return l
	}
	kept := open()
	<-arrived
	for range 3 { // sent again on another connection, where the rest succeed on the first try
		l := open()
		require.NoError(t, <-l.ends)
		require.Equal(t, "1 x", l.got.String())
	}
	release()
	require.NoError(t, <-kept.ends)
	require.Equal(t, "0 kept", kept.got.String())
	<-closed
}

// The response has begun, so the request cannot be sent again, but others are spared.
func TestAnExhaustedConnectionIsRetiredDuringAResponse(t *testing.T) {
	a := serveFrames(t, func(n int, p *peer) {
		p.greet()
		for {
			stream, got, ok := p.request()
			if !ok {
				return
			}
			if n > 0 {
				p.answer(stream, fmt.Sprint(n, got))
				continue
			}
			var head bytes.Buffer
			_ = hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
			_ = p.framer.WriteData(stream, false, []byte("half"))
			p.calm(stream)
		}
	})
	c := newClient(t, nil)
	for n := range 3 {
		l := listen(a)
		s := c.Open(l)
		s.Write([]byte(" x"))
		s.CloseWrite()
		err := <-l.ends
		if n == 0 {
			require.ErrorContains(t, err, "ENHANCE_YOUR_CALM")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "1 x", l.got.String())
	}
}

// The connection carries no other stream whose end would have to be awaited. The raised limit of
// streams is a change of its state that the transport reports as soon as a caller requests such
// changes.
func TestAnExhaustedConnectionWithoutOtherStreamsIsClosed(t *testing.T) {
	closed := make(chan struct{})
	a := serveFrames(t, func(n int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000})
		for {
			stream, got, ok := p.request()
			switch {
			case !ok:
				if n == 0 {
					close(closed)
				}
				return
			case n == 0:
				p.calm(stream)
			default:
				p.answer(stream, fmt.Sprint(n, got))
			}
		}
	})
	c := newClient(t, nil)
	for range 3 {
		l := listen(a)
		s := c.Open(l)
		s.Write([]byte(" x"))
		s.CloseWrite()
		require.NoError(t, <-l.ends)
		require.Equal(t, "1 x", l.got.String())
	}
	<-closed
}

// A peer that is left with the rest of a response may have no memory for others.
func TestAbortingALongResponseRetiresItsConnection(t *testing.T) {
	for name, long := range map[string]bool{"long": true, "short": false} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			a := serveFrames(t, func(n int, p *peer) {
				p.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000})
				for first := n == 0; ; first = false {
					stream, got, ok := p.request()
					switch {
					case !ok:
						return
					case !first:
						p.answer(stream, fmt.Sprint(n, got))
						continue
					}
					_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200"), EndHeaders: true})
					part := make([]byte, 16<<10)
					if !long {
						part = part[:100]
					}
					_ = p.framer.WriteData(stream, false, part)
					close(begun)
				}
			})
			c := newClient(t, nil)
			cut := &cutter{listener: listen(a), data: make(chan struct{})}
			cut.stream = c.Open(cut)
			cut.stream.Write([]byte(" x"))
			cut.stream.CloseWrite()
			<-begun
			<-cut.data
			want := "0 x"
			if long {
				want = "1 x"
			}
			require.Eventually(t, func() bool {
				l := listen(a)
				s := c.Open(l)
				s.Write([]byte(" x"))
				s.CloseWrite()
				require.NoError(t, <-l.ends)
				return l.got.String() == want
			}, time.Minute, time.Millisecond)
		})
	}
}

// cutter resets its stream at the first data.
type cutter struct {
	*listener
	stream *Stream
	once   sync.Once
	data   chan struct{}
}

func (c *cutter) Data([]byte) {
	c.once.Do(func() {
		c.stream.Reset()
		close(c.data)
	})
}
