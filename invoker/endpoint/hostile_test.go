package endpoint

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// headers is an encoded block of response headers.
func headers(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

// flood repeats a write until the connection ends or has had a great many.
func flood(write func() error) {
	for range 20_000 {
		if write() != nil {
			return
		}
	}
}

// hostile are peers that break a connection or its streams after a request.
var hostile = map[string]func(p *peer, stream uint32){
	"never answers": func(*peer, uint32) {},
	"SETTINGS flood": func(p *peer, _ uint32) {
		flood(func() error {
			return p.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
		})
	},
	"PING flood": func(p *peer, _ uint32) { flood(func() error { return p.framer.WritePing(false, [8]byte{}) }) },
	"GOAWAY at each request": func(p *peer, stream uint32) {
		_ = p.framer.WriteGoAway(stream, http2.ErrCodeEnhanceYourCalm, nil)
	},
	"1xx flood": func(p *peer, stream uint32) {
		flood(func() error {
			return p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "103", "link", "x"), EndHeaders: true})
		})
	},
	"endless head": func(p *peer, stream uint32) {
		_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200")})
		flood(func() error { return p.framer.WriteContinuation(stream, false, headers("x", "y")) })
	},
	"endless trailers": func(p *peer, stream uint32) {
		_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200"), EndHeaders: true})
		_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers("t", "1"), EndStream: true})
		flood(func() error { return p.framer.WriteContinuation(stream, false, headers("x", "y")) })
	},
	"empty frames": func(p *peer, stream uint32) {
		_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200"), EndHeaders: true})
		flood(func() error { return p.framer.WriteData(stream, false, nil) })
	},
	"RST_STREAM at each request": func(p *peer, stream uint32) {
		_ = p.framer.WriteRSTStream(stream, http2.ErrCodeInternal)
	},
	"RST_STREAM flood": func(p *peer, stream uint32) {
		flood(func() error { return p.framer.WriteRSTStream(stream, http2.ErrCodeCancel) })
	},
	"response without end": func(p *peer, stream uint32) { // neither END_STREAM nor trailers
		_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers(":status", "200", "trailer", "t"), EndHeaders: true})
		_ = p.framer.WriteData(stream, false, []byte("x"))
	},
	"large header": func(p *peer, stream uint32) {
		block := headers(":status", "200", "large", strings.Repeat("x", 1<<20))
		first := true
		for part := range slices.Chunk(block, 16<<10) {
			if first {
				_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: part})
				first = false
			} else if p.framer.WriteContinuation(stream, false, part) != nil {
				return
			}
		}
		_ = p.framer.WriteContinuation(stream, true, nil)
	},
	"shrinking window": func(p *peer, _ uint32) {
		_ = p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	},
}

// Whatever one peer does, streams to another peer are not delayed, and streams to the
// hostile one can be aborted.
func TestAHostilePeerDoesNotAffectOthers(t *testing.T) {
	for name, act := range hostile {
		t.Run(name, func(t *testing.T) {
			acted := make(chan struct{}, 1)
			bad := serveFrames(t, func(_ int, p *peer) {
				p.greet()
				for {
					stream, ok := p.headers() // and no window is ever opened
					if !ok {
						return
					}
					act(p, stream)
					select {
					case acted <- struct{}{}:
					default:
					}
				}
			})
			good := serveFrames(t, func(_ int, p *peer) {
				p.greet()
				for {
					stream, got, ok := p.request()
					if !ok {
						return
					}
					p.answer(stream, got)
				}
			})
			c := newClient(t, nil)
			var open []*Stream
			for range 20 {
				s := c.Open(listen(bad))
				s.Write(make([]byte, 100<<10))
				s.CloseWrite()
				open = append(open, s)
			}
			<-acted
			for range 20 {
				l := listen(good)
				s := c.Open(l)
				s.Write([]byte(" x"))
				s.CloseWrite()
				select {
				case err := <-l.ends:
					require.NoError(t, err)
				case <-time.After(30 * time.Second):
					t.Fatal("another peer's stream is held up")
				}
			}
			for _, s := range open {
				s.Reset()
			}
		})
	}
}
