package endpoint

import (
	"context"
	"io"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
)

// unknownLength is the length of a response that does not declare it.
const unknownLength = -1

// Sizes of the buffers for what has been received: a stream keeps one of up to keptReceive while it is
// empty; those of largeReceive are shared.
const (
	keptReceive  = 16 << 10
	largeReceive = 64 << 10
)

var largeBuffers = sync.Pool{New: func() any { return new([largeReceive]byte) }}

// h2Stream is a request and its response on an h2Conn, whose mutex guards the fields. It is the body
// of the response as well.
type h2Stream struct {
	c          *h2Conn
	id         uint32
	body       *reader // nil: there is no more to send
	change     sync.Cond
	sendWindow int
	queued     bool // it waits for the connection, see h2Conn.waiting
	sent       bool // the end of the request has been sent
	closed     bool // it is not a stream of the connection any more

	resp          *http.Response
	informational int    // bytes of informational responses
	in            []byte // what has been received and not read, from off on
	off           int
	remaining     int64 // bytes until the declared length
	recvWindow    int
	read          int   // bytes that were read and for which no window has been opened
	err           error // follows what has been received; io.EOF: the response is complete
}

// send sends what has been written to the body.
func (s *h2Stream) send() {
	s.c.mu.Lock()
	defer s.c.unlock()
	s.c.pump(s)
}

// abort resets the stream, and drops what has been received.
func (s *h2Stream) abort() {
	s.c.mu.Lock()
	defer s.c.unlock()
	s.reset(http2.ErrCodeCancel, context.Canceled)
	s.in, s.off, s.err = nil, 0, context.Canceled
}

// reset ends the stream with an error.
func (s *h2Stream) reset(code http2.ErrCode, err error) {
	if s.closed {
		return
	}
	if s.id != 0 {
		s.c.unsent = appendReset(s.c.unsent, s.id, code)
		s.c.countReset()
	}
	s.fail(err)
}

// fail ends the stream on this side.
func (s *h2Stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.remove()
}

func (s *h2Stream) remove() {
	if s.closed {
		return
	}
	s.closed = true
	s.closeBody()
	s.change.Signal()
	if s.id == 0 {
		s.c.change.Broadcast() // it may wait for room
		return
	}
	delete(s.c.streams, s.id)
	if s.c.failed == nil {
		s.c.ended()
	}
}

func (s *h2Stream) closeBody() {
	if s.body != nil {
		_ = s.body.Close()
		s.body = nil
	}
}

// endRequest sends the end of the request. It is no error that the peer has responded before: some
// SDKs end their response together with the last message, before the end of the request can reach
// them. Servers count resets, as a defense against floods of them, so this is none.
func (s *h2Stream) endRequest() {
	s.closeBody()
	if !s.sent {
		s.sent = true
		s.c.unsent = appendFrame(s.c.unsent, 0, frameData, flagEndStream, s.id)
	}
}

// complete ends the response.
func (s *h2Stream) complete() {
	if s.err == nil {
		s.err = io.EOF
		if s.remaining > 0 {
			s.err = io.ErrUnexpectedEOF
		}
	}
	s.endRequest()
	s.remove()
}

// receive keeps data until it is read. The peer cannot send more than the window.
func (s *h2Stream) receive(p []byte) {
	if s.off > 0 && len(s.in)+len(p) > cap(s.in) {
		s.in = s.in[:copy(s.in, s.in[s.off:])]
		s.off = 0
	}
	if n := len(s.in) + len(p); n > max(keptReceive, cap(s.in)) && n <= largeReceive {
		s.in = append(largeBuffers.Get().(*[largeReceive]byte)[:0], s.in...)
	}
	s.in = append(s.in, p...)
	s.change.Signal()
}

// Read returns what has been received.
func (s *h2Stream) Read(p []byte) (int, error) {
	c := s.c
	c.mu.Lock()
	defer c.unlock()
	for s.off == len(s.in) && s.err == nil {
		s.change.Wait()
	}
	n := copy(p, s.in[s.off:])
	if n == 0 && len(p) > 0 {
		return 0, s.err
	}
	if s.off += n; s.off == len(s.in) {
		s.drained()
	}
	s.open(n)
	return n, nil
}

// drained keeps the empty buffer, unless it is large.
func (s *h2Stream) drained() {
	s.in, s.off = s.in[:0], 0
	if cap(s.in) == largeReceive {
		largeBuffers.Put((*[largeReceive]byte)(s.in[:largeReceive]))
	}
	if cap(s.in) > keptReceive {
		s.in = nil
	}
}

// open lets the peer send n more bytes, once that is much.
func (s *h2Stream) open(n int) {
	if s.read += n; s.read < s.c.cfg.streamWindow()/2 || s.closed {
		return
	}
	s.c.unsent = appendWindow(s.c.unsent, s.id, s.read)
	s.recvWindow += s.read
	s.read = 0
}

// Close implements io.Closer: the rest of the response is not needed.
func (s *h2Stream) Close() error {
	s.c.mu.Lock()
	defer s.c.unlock()
	s.reset(http2.ErrCodeCancel, errBodyClosed)
	s.in, s.off = nil, 0
	return nil
}
