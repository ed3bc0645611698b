package endpoint

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Request is the head of a request. Header names are in lower case, which saves the
// transport a conversion.
type Request struct {
	Address *Address
	Method  string
	Path    string // with query, as returned by Address.Path
	Header  http.Header
}

// Head is the head of a response.
type Head struct {
	Status int
	Header http.Header
	HTTP1  bool // the response came over HTTP/1
	HTTP10 bool // the response came over HTTP/1.0
}

// Receiver receives the events of a stream. Calls are sequential, on the stream's
// goroutine; one that blocks delays only this stream. After Finish and Reset there are no
// further calls, except one in progress.
type Receiver interface {
	// Begin is the first call. It returns the request, or nil to abandon the stream; then
	// it is also the last call. The request's body is written with the stream's methods,
	// before or after Begin returns.
	Begin() *Request
	// Response is called at most once, before Data.
	Response(Head)
	// Data delivers bytes of the body, valid only during the call. While it blocks the peer
	// can send no more than the stream's window.
	Data([]byte)
	// End is the last call. A nil error means that the response is complete.
	End(error)
}

// Sender is a Receiver that is notified when request data is released.
type Sender interface {
	// Sent reports that n written bytes have been sent and will not be sent again. It must
	// not block.
	Sent(n int)
}

// Stream is one request and its response. It has one goroutine, in addition to those of the
// HTTP transport. Methods may be called concurrently, also by the receiver; none of them
// blocks.
type Stream struct {
	client *Client
	recv   Receiver
	body   body
	cancel context.CancelFunc

	mu      sync.Mutex // covers the fields below
	discard bool       // the receiver is no longer called
	since   time.Time  // when it was discarded
}

// Open starts a request on a new goroutine. If connecting fails, the receiver gets the
// error by End.
func (c *Client) Open(recv Receiver) *Stream {
	ctx, cancel := context.WithCancel(context.Background()) // lives as long as the stream, see Close
	s := &Stream{client: c, recv: recv, cancel: cancel}
	s.body.init()
	if sender, ok := recv.(Sender); ok {
		s.body.sent = sender.Sent
	}
	open := c.begin(s)
	go s.run(ctx, open)
	return s
}

func (s *Stream) run(ctx context.Context, open bool) {
	if open {
		defer s.client.end(s)
	}
	req := s.recv.Begin()
	if req == nil {
		s.cancel()
		return
	}
	err := ErrClosed
	if open {
		err = s.exchange(ctx, req)
	}
	if err != nil {
		s.abort()
	}
	if s.listening() {
		s.recv.End(err)
	}
}

// exchange sends the request and reads the response.
func (s *Stream) exchange(ctx context.Context, req *Request) error {
	b := &s.body
	if req.Method == http.MethodGet {
		b = nil
	}
	m, ok := s.recv.(Memory)
	if !ok {
		m = unboundedMemory{}
	}
	resp, err := s.client.roundTrip(req.Address, s.request(ctx, req), b, m)
	if err != nil {
		return err
	}
	s.body.settle()
	if err := s.receive(resp); err != nil {
		resp.Body.Close()
		return err
	}
	// The transport may be about to send the end of the request. Closing the response or
	// canceling now would replace it by a reset.
	s.body.finish()
	if resp.ProtoMajor < 2 {
		resp.Body.Close()
		s.abort()
	}
	return nil
}

// receive delivers the response up to its end.
func (s *Stream) receive(resp *http.Response) error {
	if s.listening() {
		s.recv.Response(Head{Status: resp.StatusCode, Header: resp.Header, HTTP1: resp.ProtoMajor < 2, HTTP10: resp.ProtoMajor == 1 && resp.ProtoMinor == 0})
	}
	buf := s.client.buffers.Get().(*[]byte)
	defer s.client.buffers.Put(buf)
	for {
		n, err := resp.Body.Read(*buf)
		if n > 0 && s.listening() {
			s.recv.Data((*buf)[:n])
		}
		if err == io.EOF { //nolint:errorlint // a reader returns io.EOF itself
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *Stream) request(ctx context.Context, req *Request) *http.Request {
	a := req.Address
	r := &http.Request{
		Method: req.Method, Header: req.Header, Host: a.Authority,
		// Opaque avoids escaping of the path, which needs none.
		URL: &url.URL{Scheme: a.Scheme, Host: a.Authority, Opaque: req.Path},
	}
	if a.HTTP11 && a.Scheme == "http" && s.client.dialer.proxied(a) {
		r.URL.Opaque = "//" + a.Authority + req.Path // proxies require the absolute form
	}
	if req.Method != http.MethodGet {
		r.ContentLength = -1
	}
	return r.WithContext(ctx)
}

func (s *Stream) listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.discard
}

// Write sends the chunks in order; they must not be modified afterwards.
func (s *Stream) Write(chunks ...[]byte) { s.body.write(chunks) }

// CloseWrite ends the request body after what was written.
func (s *Stream) CloseWrite() { s.body.finish() }

// Finish ends the request body and discards the response, whose rest is read in the
// background, for a bounded time.
func (s *Stream) Finish() {
	if s.ignore() {
		s.body.finish()
		s.client.drain(s)
	}
}

// Reset aborts the request with a reset of the stream.
func (s *Stream) Reset() {
	s.ignore()
	s.abort()
}

// abort ends the request. The HTTP/1.1 transport waits for a pending read of the body, so
// that is ended as well.
func (s *Stream) abort() {
	s.cancel()
	s.body.abort()
}

// ignore stops calls of the receiver. It returns false if they were stopped before.
func (s *Stream) ignore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.discard {
		return false
	}
	s.discard = true
	s.since = time.Now()
	return true
}
