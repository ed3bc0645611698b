package endpoint

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// pinged is a connection with pings every minute.
type pinged struct {
	conn   *conn
	peer   net.Conn
	frames chan string // that the peer has received
}

func newPinged(t *testing.T, timeout time.Duration) *pinged {
	near, far := net.Pipe()
	p := &pinged{conn: newConn(near, nil), peer: far, frames: make(chan string, 100)}
	go p.conn.send()
	go func() {
		for b := make([]byte, 100); ; {
			if _, err := p.conn.Read(b); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(p.frames)
		if _, err := io.ReadFull(far, make([]byte, prefaceLen)); err != nil {
			return
		}
		for framer := http2.NewFramer(far, far); ; {
			f, err := framer.ReadFrame()
			if err != nil {
				return
			}
			p.frames <- f.Header().Type.String()
		}
	}()
	t.Cleanup(func() { _, _ = p.conn.Close(), far.Close() })
	p.write(t, []byte(http2.ClientPreface))
	require.NoError(t, http2.NewFramer(far, nil).WriteSettings())
	p.conn.watchPeer(time.Minute, timeout)
	return p
}

func (p *pinged) write(t *testing.T, b []byte) {
	_, err := p.conn.Write(b)
	require.NoError(t, err)
}

// wait returns the frames that the peer received during d.
func (p *pinged) wait(d time.Duration) (frames []string) {
	time.Sleep(d)
	synctest.Wait()
	for len(p.frames) > 0 {
		frames = append(frames, <-p.frames)
	}
	return frames
}

// No frame may be sent within another one, or between those that carry the headers of one request.
func TestPingsFollowCompleteHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPinged(t, 90*time.Second)
		var b bytes.Buffer
		framer := http2.NewFramer(&b, nil)
		require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}}))
		p.write(t, b.Bytes())
		require.Equal(t, []string{"HEADERS"}, p.wait(70*time.Second))
		b.Reset()
		require.NoError(t, framer.WriteContinuation(1, true, []byte{0x88}))
		p.write(t, b.Bytes()[:5])
		p.write(t, b.Bytes()[5:])
		require.Equal(t, []string{"CONTINUATION", "PING"}, p.wait(time.Second))
	})
}

func TestPingsWhileThePeerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPinged(t, 90*time.Second)
		require.Empty(t, p.wait(59*time.Second))
		for range 10 {
			require.Equal(t, []string{"PING"}, p.wait(2*time.Second))
			require.Empty(t, p.wait(40*time.Second))
			_, err := p.peer.Write([]byte{0, 0, pingLen, framePing, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
			require.NoError(t, err)
			require.Empty(t, p.wait(59*time.Second), "it has responded")
		}
		require.Equal(t, []string{"PING"}, p.wait(2*time.Second))
		require.Empty(t, p.wait(88*time.Second))
		_, err := p.conn.Write([]byte{0})
		require.NoError(t, err)
		p.wait(2 * time.Second)
		_, err = p.conn.Write([]byte{0})
		require.ErrorIs(t, err, errLost)
	})
}

// A process that did not run for longer than the timeout may not have read the response yet.
func TestPingsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPinged(t, 90*time.Second)
		require.Equal(t, []string{"PING"}, p.wait(61*time.Second))
		p.conn.mu.Lock()
		p.conn.pings.start = p.conn.pings.start.Add(-time.Hour)
		p.conn.mu.Unlock()
		require.Equal(t, []string{"PING"}, p.wait(90*time.Second))
		p.write(t, []byte{0})
		p.wait(90 * time.Second)
		_, err := p.conn.Write([]byte{0})
		require.ErrorIs(t, err, errLost)
	})
}

// Without a timeout, each ping would close its connection before the response arrives.
func TestPingsAreDisabledWithoutATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPinged(t, 0)
		require.Empty(t, p.wait(time.Hour))
		p.write(t, []byte{0})
	})
}
