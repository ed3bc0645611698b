package endpoint

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// The frames of a flood would take as much of the CPU as the peer sends.
func TestAFloodOfFramesEndsTheConnection(t *testing.T) {
	for name, write := range map[string]func(p *peer, stream uint32) error{
		"empty DATA": func(p *peer, stream uint32) error { return p.framer.WriteData(stream, false, nil) },
		"padding": func(p *peer, stream uint32) error {
			return p.framer.WriteDataPadded(stream, false, nil, make([]byte, 255))
		},
		"DATA of one byte": func(p *peer, stream uint32) error { return p.framer.WriteData(stream, false, []byte("x")) },
		"PING":             func(p *peer, _ uint32) error { return p.framer.WritePing(false, [8]byte{}) },
		"SETTINGS":         func(p *peer, _ uint32) error { return p.framer.WriteSettings() },
		"PRIORITY":         func(p *peer, stream uint32) error { return p.framer.WritePriority(stream, http2.PriorityParam{}) },
		"WINDOW_UPDATE": func(p *peer, stream uint32) error {
			_ = p.framer.WriteWindowUpdate(0, 1)
			return p.framer.WriteWindowUpdate(stream, 1)
		},
		"an unknown type": func(p *peer, stream uint32) error { return p.framer.WriteRawFrame(0x77, 0, stream, []byte("xxxx")) },
	} {
		t.Run(name, func(t *testing.T) {
			a := serveFrames(t, func(_ int, p *peer) {
				p.greet()
				stream, _, ok := p.request()
				if !ok {
					return
				}
				_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200"), EndHeaders: true})
				go p.drain()
				for write(p, stream) == nil {
				}
			})
			l := listen(a)
			newClient(t, nil).Open(l).CloseWrite()
			require.ErrorContains(t, <-l.ends, errFrameFlood.Error())
		})
	}
}

// SDKs may send each message in two frames, and update windows for each few bytes that they read.
func TestOrdinaryFramesDoNotEndTheConnection(t *testing.T) {
	const responses, messages = 2000, 5 * maxFrameCredit
	connections := make(chan struct{}, responses)
	a := serveFrames(t, func(_ int, p *peer) {
		connections <- struct{}{}
		p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		_ = p.framer.WriteWindowUpdate(0, 1<<30)
		for n := 0; ; n++ {
			stream, _, ok := p.request()
			if !ok {
				return
			}
			for range 1 + n/(responses-1)*messages { // the last request is a long one
				_ = p.framer.WriteWindowUpdate(stream, 2*dataPerUpdate)
				_ = p.framer.WriteWindowUpdate(0, 2*dataPerUpdate)
			}
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200"), EndHeaders: true})
			for range 1 + n/(responses-1)*messages { // the last response is a long one
				_ = p.framer.WriteData(stream, false, make([]byte, 8))
				_ = p.framer.WriteData(stream, false, make([]byte, 1))
			}
			_ = p.framer.WriteData(stream, true, nil)
		}
	})
	c := newClient(t, nil)
	for n := range responses {
		l := listen(a)
		s := c.Open(l)
		s.Write(make([]byte, 1+n/(responses-1)*messages*2*dataPerUpdate))
		s.CloseWrite()
		require.NoError(t, <-l.ends, "response %d", n)
	}
	require.Len(t, connections, 1)
}

// Servers in Go update both windows every 4 KiB if their handlers read less at a time, as those of the SDK do.
func TestLargeInputsOfAGoServerDoNotEndTheConnection(t *testing.T) {
	const large, small, many = 32 << 20, 64 << 10, 400
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		for b := make([]byte, 1<<10); ; {
			if _, err := r.Body.Read(b); err != nil {
				break
			}
		}
		_, _ = w.Write(make([]byte, 30))
	})
	c := newClient(t, nil)
	send := func(size int) *listener {
		l := listen(a)
		s := c.Open(l)
		s.Write(make([]byte, size))
		s.CloseWrite()
		return l
	}
	require.NoError(t, <-send(large).ends)
	requests := make([]*listener, many)
	for i := range requests {
		requests[i] = send(small)
	}
	for _, l := range requests {
		require.NoError(t, <-l.ends)
	}
}
