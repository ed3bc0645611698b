package endpoint

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Request is the head of a request. Header names are in lower case, which saves
// the transport a conversion.
type Request struct {
	Address *Address
	Method  string
	Path    string // with query, as Address.Path makes it
	Header  http.Header
}

// Head is the head of a response.
type Head struct {
	Status int
	Header http.Header
	HTTP1  bool // the response came over HTTP/1
	HTTP10 bool // and that was 1.0
}

// Receiver learns what happens on a stream. Calls come one after the other, on the
// stream's goroutine; one that blocks holds up this stream only. After Finish and
// Reset there is no further call, except one that was already under way.
type Receiver interface {
	// Begin is the first call. It returns the request, or nil to give the stream up,
	// which is then the last call. The request's body is written with the stream's
	// methods, before or after Begin returns.
	Begin() *Request
	// Response is called at most once, before Data.
	Response(Head)
	// Data hands over bytes of the body, valid during the call only. While it blocks
	// the peer can send no more than the stream's window.
	Data([]byte)
	// End is the last call. A nil error says that the response is complete.
	End(error)
}

// Sender is a receiver that wants to know what of the request is still held.
type Sender interface {
	// Sent says that n bytes that were written are not held any more: they have been
	// sent and will not be sent again. It must not block.
	Sent(n int)
}

// Stream is one request and its response. One goroutine carries it, beside those
// of the HTTP transport. Methods may be called concurrently, also by the receiver;
// none of them blocks.
type Stream struct {
	client *Client
	recv   Receiver
	body   body
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below
	discard bool       // nobody listens any more
	since   time.Time  // when it was discarded
}

// Open starts a request on a goroutine of its own. If there is no connection, the
// stream makes one, and if that fails the receiver learns at the end.
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
		s.cut()
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
	resp, err := s.client.roundTrip(req.Address, s.request(ctx, req), b)
	if err != nil {
		return err
	}
	s.body.settle()
	if err := s.receive(resp); err != nil {
		resp.Body.Close()
		return err
	}
	// The transport may be about to send the end of the request. To close the response
	// or to cancel now would make a reset of that.
	s.body.finish()
	if resp.ProtoMajor < 2 {
		resp.Body.Close()
		s.cut()
	}
	return nil
}

// receive hands over the response, up to its end.
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
		// Opaque saves the transport from escaping a path that needs none.
		URL: &url.URL{Scheme: a.Scheme, Host: a.Authority, Opaque: req.Path},
	}
	if a.HTTP11 && a.Scheme == "http" && s.client.dialer.proxied(a) {
		r.URL.Opaque = "//" + a.Authority + req.Path // proxies want the whole address
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

// Finish ends the request body and takes no further interest in the response,
// whose rest is read in the background, for a bounded time.
func (s *Stream) Finish() {
	if s.ignore() {
		s.body.finish()
		s.client.drain(s)
	}
}

// Reset gives the request up at once and tells the peer.
func (s *Stream) Reset() {
	s.ignore()
	s.cut()
}

// cut ends the request. The HTTP/1.1 transport waits for a read of the body that
// is under way, so that has to end too.
func (s *Stream) cut() {
	s.cancel()
	s.body.abort()
}

// ignore ends calls of the receiver; false if they had ended already.
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
