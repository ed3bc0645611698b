package endpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// respond sends the head of a response.
func (p *peer) respond(stream uint32, fields ...string) {
	_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(fields...), EndHeaders: true})
}

// next returns the next frame of a type for which match holds.
func next[F http2.Frame](p *peer, match func(F) bool) (f F, ok bool) {
	for {
		read, err := p.framer.ReadFrame()
		if err != nil {
			return f, false
		}
		if f, is := read.(F); is && match(f) {
			return f, true
		}
	}
}

// TestFlowControlOfRequests has a peer with small windows, which it opens little by little.
func TestFlowControlOfRequests(t *testing.T) {
	const size = 300 << 10
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i >> 8)
	}
	got, violation := make(chan []byte, 1), make(chan string, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		window, whole, initial := 1000, 65535, 1000
		var body bytes.Buffer
		for {
			f, ok := next(p, func(f *http2.DataFrame) bool { return true })
			if !ok {
				return
			}
			body.Write(f.Data())
			window, whole = window-len(f.Data()), whole-len(f.Data())
			if window < min(0, initial-1000) && len(f.Data()) > 0 || whole < 0 || len(f.Data()) > 16<<10 {
				violation <- fmt.Sprint("windows ", window, " ", whole)
			}
			if f.StreamEnded() {
				got <- body.Bytes()
				p.respond(f.StreamID, ":status", "200")
				_ = p.framer.WriteData(f.StreamID, true, nil)
				p.drain()
				return
			}
			if window > 0 {
				continue
			}
			add := 5000 + body.Len()%20000
			_ = p.framer.WriteWindowUpdate(f.StreamID, uint32(add))
			_ = p.framer.WriteWindowUpdate(0, uint32(add))
			window, whole = window+add, whole+add
		}
	})
	l := listen(a)
	s := newClient(t, nil).Open(l)
	for part := want; len(part) > 0; part = part[min(len(part), 7001):] {
		s.Write(part[:min(len(part), 7001)])
	}
	s.CloseWrite()
	require.NoError(t, <-l.ends)
	require.True(t, bytes.Equal(want, <-got))
	require.Empty(t, violation)
}

// TestWindowsThatShrink sets an initial window that makes those of open streams negative.
func TestWindowsThatShrink(t *testing.T) {
	silent := make(chan bool, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
		f, ok := next(p, func(f *http2.DataFrame) bool { return len(f.Data()) == 100 })
		require.True(t, ok)
		stream := f.StreamID
		p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}) // now -90
		_ = p.framer.WriteWindowUpdate(stream, 90)                          // now 0
		_ = p.framer.WritePing(false, [8]byte{9})
		data := false
		for {
			f, err := p.framer.ReadFrame()
			require.NoError(t, err)
			_, isData := f.(*http2.DataFrame)
			data = data || isData
			if ping, ok := f.(*http2.PingFrame); ok && ping.IsAck() {
				break
			}
		}
		silent <- !data
		p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		_, got, ok := p.request()
		require.True(t, ok)
		p.answer(stream, fmt.Sprint(len(got)))
		p.drain()
	})
	l := listen(a)
	s := newClient(t, nil).Open(l)
	s.Write(make([]byte, 300))
	s.CloseWrite()
	require.NoError(t, <-l.ends)
	require.Equal(t, "200", l.got.String())
	require.True(t, <-silent, "data beyond the window")
}

// TestWhatAPeerMustNotSend ends a stream, or the connection, with an error.
func TestWhatAPeerMustNotSend(t *testing.T) {
	long := strings.Repeat("y", 4<<10)
	for name, c := range map[string]struct {
		send func(p *peer, stream uint32)
		want string
		gone bool // the connection ends
	}{
		"data before the head":  {func(p *peer, s uint32) { _ = p.framer.WriteData(s, false, []byte("x")) }, "PROTOCOL_ERROR; DATA before", false},
		"no status":             {func(p *peer, s uint32) { p.respond(s, "content-type", "x") }, "no valid status", false},
		"bad status":            {func(p *peer, s uint32) { p.respond(s, ":status", "2x0") }, "no valid status", false},
		"unknown pseudo header": {func(p *peer, s uint32) { p.respond(s, ":status", "200", ":x", "y") }, "PROTOCOL_ERROR", false},
		"upper case":            {func(p *peer, s uint32) { p.respond(s, ":status", "200", "X-Y", "z") }, "PROTOCOL_ERROR", false},
		"many headers":          {func(p *peer, s uint32) { p.respond(s, ":status", "200", "a", long, "b", long, "c", long) }, "advertised limit", false},
		"an end with status 100": {func(p *peer, s uint32) {
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: headers(":status", "103"), EndHeaders: true, EndStream: true})
		}, "informational response ended", false},
		"many informational responses": {func(p *peer, s uint32) {
			for range 200 {
				p.respond(s, ":status", "103", "link", strings.Repeat("x", 100))
			}
		}, "informational responses are longer", false},
		"more than the content length": {func(p *peer, s uint32) {
			p.respond(s, ":status", "200", "content-length", "1")
			_ = p.framer.WriteData(s, true, []byte("xy"))
		}, "declared content length", false},
		"less than the content length": {func(p *peer, s uint32) {
			p.respond(s, ":status", "200", "content-length", "3")
			_ = p.framer.WriteData(s, true, []byte("xy"))
		}, "unexpected EOF", false},
		"a window without bounds": {func(p *peer, s uint32) {
			_ = p.framer.WriteWindowUpdate(s, 1<<31-1)
		}, "FLOW_CONTROL_ERROR", false},
		"a window of zero": {func(p *peer, s uint32) {
			_ = p.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, s, make([]byte, 4))
		}, "PROTOCOL_ERROR", false},
		"a reset": {func(p *peer, s uint32) { _ = p.framer.WriteRSTStream(s, http2.ErrCodeInternal) }, "INTERNAL_ERROR; received from peer", false},
		"trailers without end": {func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			p.respond(s, "x", "y")
		}, "PROTOCOL_ERROR", true},
		"a pseudo header as trailer": {func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: headers(":status", "200"), EndHeaders: true, EndStream: true})
		}, "PROTOCOL_ERROR", true},
		"a stream that was not opened": {func(p *peer, s uint32) { p.respond(s+2, ":status", "200") }, "PROTOCOL_ERROR", true},
		"data of such a stream":        {func(p *peer, s uint32) { _ = p.framer.WriteData(s+2, false, nil) }, "PROTOCOL_ERROR", true},
		"a stream of the peer":         {func(p *peer, s uint32) { p.respond(s+1, ":status", "200") }, "PROTOCOL_ERROR", true},
		"a push": {func(p *peer, s uint32) {
			_ = p.framer.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, BlockFragment: headers(":path", "/"), EndHeaders: true})
		}, "PROTOCOL_ERROR", true},
		"a connection window without bounds": {func(p *peer, _ uint32) { _ = p.framer.WriteWindowUpdate(0, 1<<31-1) }, "FLOW_CONTROL_ERROR", true},
		"an initial window without bounds": {func(p *peer, _ uint32) {
			p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}, "FLOW_CONTROL_ERROR", true},
		"settings that nobody sent": {func(p *peer, _ uint32) {
			_ = p.framer.WriteSettingsAck()
			_ = p.framer.WriteSettingsAck()
		}, "PROTOCOL_ERROR", true},
		"a frame that is too large": {func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			_ = p.framer.WriteData(s, false, make([]byte, 17<<10))
		}, "frame too large", true},
	} {
		t.Run(name, func(t *testing.T) {
			conns := make(chan int, 10)
			a := serveFrames(t, func(n int, p *peer) {
				conns <- n
				p.greet()
				stream, ok := p.headers()
				if !ok {
					return
				}
				if n == 0 && stream == 1 {
					c.send(p, stream)
				}
				for {
					stream, got, ok := p.request()
					if !ok {
						return
					}
					p.answer(stream, got)
				}
			})
			client := newClient(t, func(cfg *Config) { cfg.MaxHeader = 8 << 10 })
			l := listen(a)
			client.Open(l)
			require.ErrorContains(t, <-l.ends, c.want)
			again := listen(a)
			s := client.Open(again)
			s.Write([]byte("next"))
			s.CloseWrite()
			require.NoError(t, <-again.ends)
			require.Equal(t, "next", again.got.String())
			require.Equal(t, c.gone, len(conns) > 1, "the connection")
		})
	}
}

// TestWhatAPeerMaySend are responses that are rare, but correct.
func TestWhatAPeerMaySend(t *testing.T) {
	for name, send := range map[string]func(p *peer, stream uint32){
		"trailers": func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			_ = p.framer.WriteData(s, false, []byte("body"))
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: headers("x", "y"), EndHeaders: true, EndStream: true})
		},
		"informational responses": func(p *peer, s uint32) {
			p.respond(s, ":status", "100")
			p.respond(s, ":status", "103", "link", "x")
			p.respond(s, ":status", "200")
			_ = p.framer.WriteData(s, true, []byte("body"))
		},
		"padding": func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			for range 2000 {
				_ = p.framer.WriteDataPadded(s, false, nil, make([]byte, 200))
			}
			_ = p.framer.WriteDataPadded(s, true, []byte("body"), make([]byte, 10))
		},
		"frames of unknown types": func(p *peer, s uint32) {
			_ = p.framer.WriteRawFrame(0x33, 0xff, s, []byte("x"))
			p.respond(s, ":status", "200")
			_ = p.framer.WriteRawFrame(0x34, 0, 0, nil)
			_ = p.framer.WriteData(s, true, []byte("body"))
		},
		"a head in parts": func(p *peer, s uint32) {
			block := headers(":status", "200", "a", "b", "content-length", "4")
			_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: block[:2]})
			_ = p.framer.WriteContinuation(s, false, nil)
			_ = p.framer.WriteContinuation(s, true, block[2:])
			_ = p.framer.WriteData(s, true, []byte("body"))
		},
		"an end in a frame of its own": func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			_ = p.framer.WriteData(s, false, []byte("body"))
			_ = p.framer.WriteData(s, true, nil)
		},
		"a lower limit of streams": func(p *peer, s uint32) {
			p.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			p.respond(s, ":status", "200")
			_ = p.framer.WriteData(s, true, []byte("body"))
		},
		"no error after the end": func(p *peer, s uint32) {
			p.respond(s, ":status", "200")
			_ = p.framer.WriteData(s, true, []byte("body"))
			_ = p.framer.WriteRSTStream(s, http2.ErrCodeNo)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := serveFrames(t, func(_ int, p *peer) {
				p.greet()
				if stream, ok := p.headers(); ok {
					send(p, stream)
					p.drain()
				}
			})
			l := listen(a)
			newClient(t, nil).Open(l)
			require.NoError(t, <-l.ends)
			require.Equal(t, "body", l.got.String())
			require.Equal(t, http.StatusOK, l.head.Status)
		})
	}
}

// TestAnEarlyResponseEndsTheRequest instead of resetting it.
func TestAnEarlyResponseEndsTheRequest(t *testing.T) {
	ended := make(chan http2.FrameType, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		stream, ok := p.headers()
		if !ok {
			return
		}
		p.answer(stream, "early")
		f, ok := next(p, func(f http2.Frame) bool {
			return f.Header().StreamID == stream && f.Header().Flags.Has(http2.FlagDataEndStream)
		})
		if ok {
			ended <- f.Header().Type
		}
		p.drain()
	})
	l := listen(a)
	s := newClient(t, nil).Open(l)
	require.NoError(t, <-l.ends)
	require.Equal(t, http2.FrameData, <-ended)
	s.Write([]byte("late")) // has no effect
	s.CloseWrite()
}

// TestResetsCountUntilThePeerHasReadThem keeps a peer from having more requests in progress than it
// allows, although this side has ended them.
func TestResetsCountUntilThePeerHasReadThem(t *testing.T) {
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	a := serveFrames(t, func(n int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		stream, _, ok := p.request()
		if !ok {
			return
		}
		for ok && n > 0 {
			p.answer(stream, "other")
			stream, _, ok = p.request()
		}
		if !ok {
			return
		}
		p.answer(stream, "first")
		if _, ok := p.headers(); !ok {
			return
		}
		arrived <- struct{}{}
		ping, ok := next(p, func(f *http2.PingFrame) bool { return !f.IsAck() })
		if !ok {
			return
		}
		<-answer
		_ = p.framer.WritePing(true, ping.Data)
		for {
			stream, _, ok := p.request()
			if !ok {
				return
			}
			p.answer(stream, "again")
		}
	})
	c := newClient(t, nil)
	ask := func() string {
		l := listen(a)
		c.Open(l).CloseWrite()
		require.NoError(t, <-l.ends)
		return l.got.String()
	}
	require.Equal(t, "first", ask())
	s := c.Open(listen(a))
	<-arrived
	s.Reset()
	require.Equal(t, "other", ask(), "the reset may not have arrived yet")
	close(answer)
	require.Eventually(t, func() bool { return ask() == "again" }, time.Minute, time.Millisecond)
}

// TestAPeerThatIgnoresTheWindow sends more than the window to a receiver that reads nothing.
func TestAPeerThatIgnoresTheWindow(t *testing.T) {
	release := make(chan struct{})
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		stream, ok := p.headers()
		if !ok {
			return
		}
		p.respond(stream, ":status", "200")
		for range 40 {
			_ = p.framer.WriteData(stream, false, make([]byte, 16<<10))
		}
		if _, ok := next(p, func(f *http2.RSTStreamFrame) bool { return f.ErrCode == http2.ErrCodeFlowControl }); ok {
			close(release)
		}
		p.drain()
	})
	l := listen(a)
	l.data = func([]byte) { <-release }
	newClient(t, nil).Open(l)
	require.ErrorContains(t, <-l.ends, "FLOW_CONTROL_ERROR")
}

// TestSmallMessagesOpenNoWindow sends many small messages, for which the peer needs no frame.
func TestSmallMessagesOpenNoWindow(t *testing.T) {
	frames := make(chan int, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		stream, ok := p.headers()
		if !ok {
			return
		}
		p.respond(stream, ":status", "200")
		for range 1000 {
			_ = p.framer.WriteData(stream, false, make([]byte, 100))
		}
		_ = p.framer.WriteData(stream, true, nil)
		count := 0
		for {
			f, err := p.framer.ReadFrame()
			if err != nil {
				return
			}
			if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == stream {
				count++
			}
			if f.Header().Flags.Has(http2.FlagDataEndStream) && f.Header().Type == http2.FrameData {
				break
			}
		}
		frames <- count
		p.drain()
	})
	l := listen(a)
	newClient(t, nil).Open(l)
	require.NoError(t, <-l.ends)
	require.Equal(t, 100_000, l.length())
	require.Zero(t, <-frames)
}

// TestEncodedHeads decodes heads of requests.
func TestEncodedHeads(t *testing.T) {
	for _, length := range []int{0, 1, 126, 127, 128, 254, 255, 256, 5000, 70_000} {
		value := strings.Repeat("v", length)
		r := &Request{
			Address: &Address{Scheme: "https", Authority: "h:1"}, Method: "POST", Path: "/p?q=" + value,
			Header: http.Header{"X-Upper": {value}, "list": {"a", "b"}, "user-agent": nil, "Connection": {"close"}},
		}
		b, size, err := appendHead(nil, r)
		require.NoError(t, err)
		fields, err := hpack.NewDecoder(0, nil).DecodeFull(b)
		require.NoError(t, err)
		got, want := map[string][]string{}, uint32(0)
		for _, f := range fields {
			got[f.Name] = append(got[f.Name], f.Value)
			want += f.Size()
		}
		require.Equal(t, map[string][]string{
			":authority": {"h:1"}, ":method": {"POST"}, ":path": {"/p?q=" + value}, ":scheme": {"https"}, "x-upper": {value}, "list": {"a", "b"},
		}, got)
		require.Equal(t, want, size)
		framer := http2.NewFramer(io.Discard, bytes.NewReader(appendHeaders(nil, 5, b, flagEndStream)))
		framer.ReadMetaHeaders = hpack.NewDecoder(0, nil)
		framer.MaxHeaderListSize = 1 << 20
		f, err := framer.ReadFrame()
		require.NoError(t, err)
		head := f.(*http2.MetaHeadersFrame)
		require.True(t, head.StreamEnded())
		require.Len(t, head.Fields, len(fields))
	}
	for _, bad := range []http.Header{{"a b": {"x"}}, {"a": {"x\ny"}}, {"": {"x"}}} {
		_, _, err := appendHead(nil, &Request{Address: &Address{Scheme: "http"}, Method: "GET", Path: "/", Header: bad})
		require.Error(t, err, bad)
	}
}

// TestARequestWithTooManyHeaders is not sent.
func TestARequestWithTooManyHeaders(t *testing.T) {
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 1000})
		for {
			stream, got, ok := p.request()
			if !ok {
				return
			}
			p.answer(stream, got)
		}
	})
	c := newClient(t, nil)
	l := listen(a)
	l.req.Header.Set("x", strings.Repeat("y", 1000))
	c.Open(l)
	require.ErrorIs(t, <-l.ends, errHeaderLimit)
	l = listen(a)
	c.Open(l).CloseWrite()
	require.NoError(t, <-l.ends)
}

// FuzzPeer has a peer that sends any bytes after its settings.
func FuzzPeer(f *testing.F) {
	for _, kind := range []byte{frameData, frameHeaders, frameReset, settingsFrame, 5, framePing, 7, frameWindow, frameContinuation} {
		f.Add(binary.BigEndian.AppendUint32(append(appendFrame(nil, 4, kind, 4, 1), 0x88, 0, 0, 1), 0))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		a := serveFrames(t, func(_ int, p *peer) {
			p.greet()
			if _, ok := p.headers(); ok {
				_, _ = p.conn.Write(sent)
			}
		})
		cfg := DefaultConfig()
		c := NewClient(cfg)
		defer c.Close()
		l := listen(a)
		s := c.Open(l)
		s.Write([]byte("x"))
		s.CloseWrite()
		<-l.ends
	})
}

// TestSmallReceiveWindows reads much through windows that are smaller than those of the standard.
func TestSmallReceiveWindows(t *testing.T) {
	c := newClient(t, func(cfg *Config) { cfg.MaxStreams, cfg.StreamWindow, cfg.ConnWindow = 1, 1000, 1000 })
	l := listen(serve(t, true, echoBody))
	s := c.Open(l)
	want := bytes.Repeat([]byte("0123456789"), 30_000)
	s.Write(want)
	s.CloseWrite()
	require.NoError(t, <-l.ends)
	require.True(t, bytes.Equal(want, l.got.Bytes()))
}

// TestAPeerThatLeavesCannotFloodResponses announces the end of the connection while a stream is
// open, and then sends pings without reading the responses to them.
func TestAPeerThatLeavesCannotFloodResponses(t *testing.T) {
	const flood = 64 << 20
	written := make(chan int, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet()
		id, ok := p.headers()
		if !ok {
			return
		}
		p.respond(id, ":status", "200")
		_ = p.framer.WriteGoAway(id, http2.ErrCodeNo, nil)
		pings := bytes.Repeat(appendPing(nil, 0, [8]byte{9}), 4096)
		n := 0
		for n < flood {
			_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
			k, err := p.conn.Write(pings)
			if n += k; err != nil {
				break
			}
		}
		written <- n
	})
	l := listen(a)
	newClient(t, nil).Open(l)
	require.Less(t, <-written, flood, "the client reads no more than it can respond to")
}

// TestTheTableOfFieldsIsGivenUp requires the update of its size that peers with a smaller table
// wait for.
func TestTheTableOfFieldsIsGivenUp(t *testing.T) {
	first := make(chan []byte, 1)
	a := serveFrames(t, func(_ int, p *peer) {
		p.greet(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		f, ok := next(p, func(*http2.HeadersFrame) bool { return true })
		if ok {
			first <- bytes.Clone(f.HeaderBlockFragment())
			p.answer(f.StreamID, "")
			p.drain()
		}
	})
	l := listen(a)
	s := newClient(t, nil).Open(l)
	s.CloseWrite()
	require.NoError(t, <-l.ends)
	require.EqualValues(t, 0x20, (<-first)[0])
}
