package endpoint

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peer is one connection of a server that speaks frames, under a test's control.
type peer struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
}

// serveFrames runs a script for each connection, by number from 0 on.
func serveFrames(t *testing.T, script func(n int, p *peer)) *Address {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(conn, preface); err == nil {
					script(n, &peer{t: t, conn: conn, framer: http2.NewFramer(conn, conn)})
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	a, err := ParseAddress("http://"+l.Addr().String(), false)
	require.NoError(t, err)
	return a
}

// greet sends the settings.
func (p *peer) greet(settings ...http2.Setting) { _ = p.framer.WriteSettings(settings...) }

// request reads until a request has been read to its end.
func (p *peer) request() (stream uint32, body string, ok bool) {
	var b bytes.Buffer
	for {
		f, err := p.framer.ReadFrame()
		if err != nil {
			return 0, "", false
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = p.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = p.framer.WritePing(true, f.Data)
			}
		case *http2.DataFrame:
			b.Write(f.Data())
			if f.StreamEnded() {
				return f.StreamID, b.String(), true
			}
		}
	}
}

// headers reads until a request begins.
func (p *peer) headers() (stream uint32, ok bool) {
	for {
		f, err := p.framer.ReadFrame()
		if err != nil {
			return 0, false
		}
		if h, isHeaders := f.(*http2.HeadersFrame); isHeaders {
			return h.StreamID, true
		}
	}
}

// answer sends a complete response.
func (p *peer) answer(stream uint32, body string) {
	var head bytes.Buffer
	_ = hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true})
	_ = p.framer.WriteData(stream, true, []byte(body))
}

// drain reads until the client closes the connection.
func (p *peer) drain() { _, _ = io.Copy(io.Discard, p.conn) }
