package endpoint

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"

	"golang.org/x/net/http2"
)

// read is the reading goroutine; it ends with the connection.
func (c *h2Conn) read() {
	err := c.readFrames()
	c.mu.Lock()
	defer c.unlock()
	switch _, network := errors.AsType[net.Error](err); {
	case c.goAway != nil && (network || errors.Is(err, io.EOF)):
		err = c.goAway
	case errors.Is(err, net.ErrClosed) && c.err != nil:
		err = c.err // of sending, which closed the connection
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	c.failLocked(err)
}

func (c *h2Conn) readFrames() error {
	greeted := false
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			reset, ok := errors.AsType[http2.StreamError](err)
			if !ok {
				return err
			}
			if reset.Cause == nil {
				reset.Cause = c.framer.ErrorDetail()
			}
			c.refuse(reset)
			continue
		}
		if _, settings := f.(*http2.SettingsFrame); !greeted && !settings {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		greeted = true
		if err := c.frame(f); err != nil {
			return err
		}
	}
}

// refuse resets a stream whose peer violates the protocol.
func (c *h2Conn) refuse(err http2.StreamError) {
	c.mu.Lock()
	defer c.unlock()
	c.alive = true
	if s := c.streams[err.StreamID]; s != nil {
		s.reset(err.Code, err)
	}
}

// frame handles a frame. An error ends the connection.
func (c *h2Conn) frame(f http2.Frame) error {
	c.mu.Lock()
	defer c.unlock()
	c.alive = true
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.data(f)
	case *http2.MetaHeadersFrame:
		return c.headers(f)
	case *http2.RSTStreamFrame:
		return c.wasReset(f)
	case *http2.WindowUpdateFrame:
		return c.window(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		c.ping(f)
	case *http2.GoAwayFrame:
		c.leave(f)
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

// stream returns the stream with an ID, nil if it has ended. It is an error if there was none.
func (c *h2Conn) stream(id uint32) (*h2Stream, error) {
	if s := c.streams[id]; s != nil {
		return s, nil
	}
	if id >= c.nextID || id%2 == 0 {
		return nil, http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil, nil
}

// violated resets a stream whose peer violates the protocol.
func (s *h2Stream) violated(code http2.ErrCode, how string) {
	s.reset(code, http2.StreamError{StreamID: s.id, Code: code, Cause: errors.New(how)})
}

func (c *h2Conn) data(f *http2.DataFrame) error {
	c.heard = true
	s, err := c.stream(f.StreamID)
	if err != nil {
		return err
	}
	// The windows of the streams bound what is not read; the one of the connection has room for
	// all of them, so it is opened at once.
	if c.received += int(f.Length); c.received > c.cfg.allWindows() {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	if c.received >= c.cfg.allWindows()/2 {
		c.unsent = appendWindow(c.unsent, 0, c.received)
		c.received = 0
	}
	switch {
	case s == nil:
		return nil
	case s.resp == nil:
		s.violated(http2.ErrCodeProtocol, "DATA before the response headers")
		return nil
	}
	if s.recvWindow -= int(f.Length); s.recvWindow < 0 {
		s.violated(http2.ErrCodeFlowControl, "more DATA than the window allows")
		return nil
	}
	p := f.Data()
	if padding := int(f.Length) - len(p); padding > 0 {
		s.open(padding)
	}
	if s.remaining >= 0 {
		if s.remaining -= int64(len(p)); s.remaining < 0 {
			s.violated(http2.ErrCodeProtocol, "more DATA than the declared content length")
			return nil
		}
	}
	if len(p) > 0 {
		s.receive(p)
	}
	if f.StreamEnded() {
		s.complete()
	}
	return nil
}

func (c *h2Conn) headers(f *http2.MetaHeadersFrame) error {
	c.heard = true
	s, err := c.stream(f.StreamID)
	switch {
	case err != nil || s == nil:
		return err
	case s.resp != nil:
		return s.trailers(f)
	}
	resp, problem := s.head(f) //nolint:bodyclose // the stream is the body, which its reader closes
	switch {
	case problem != "":
		s.violated(http2.ErrCodeProtocol, problem)
	case resp == nil: // informational
	default:
		s.resp = resp
		if s.change.Signal(); f.StreamEnded() {
			s.complete()
		}
	}
	return nil
}

// trailers handles the headers after the data, of which only the end matters.
func (s *h2Stream) trailers(f *http2.MetaHeadersFrame) error {
	if !f.StreamEnded() || len(f.PseudoFields()) > 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	s.complete()
	return nil
}

// head returns the head of the response, nil for an informational one, or how it violates the
// protocol.
func (s *h2Stream) head(f *http2.MetaHeadersFrame) (_ *http.Response, problem string) {
	if f.Truncated {
		return nil, "the response headers are longer than the advertised limit"
	}
	status, err := strconv.Atoi(f.PseudoValue("status"))
	if err != nil || status < 100 || status > 999 {
		return nil, "the response has no valid status"
	}
	if status < 200 {
		for _, field := range f.Fields {
			s.informational += int(field.Size())
		}
		switch {
		case f.StreamEnded():
			return nil, "an informational response ended the stream"
		case s.informational > s.c.cfg.MaxHeader:
			return nil, "the informational responses are longer than the advertised limit"
		}
		return nil, ""
	}
	fields := f.RegularFields()
	h := make(http.Header, len(fields))
	values := make([]string, len(fields))
	for i := range fields {
		name := textproto.CanonicalMIMEHeaderKey(fields[i].Name)
		if h[name] != nil {
			h[name] = append(h[name], fields[i].Value)
			continue
		}
		values[i] = fields[i].Value
		h[name] = values[i : i+1 : i+1]
	}
	r := &http.Response{
		Proto: "HTTP/2.0", ProtoMajor: 2, StatusCode: status, Header: h, Body: s, ContentLength: unknownLength,
	}
	if lengths := h["Content-Length"]; len(lengths) == 1 {
		if n, err := strconv.ParseInt(lengths[0], 10, 64); err == nil && n >= 0 {
			r.ContentLength, s.remaining = n, n
		}
	}
	return r, ""
}

func (c *h2Conn) wasReset(f *http2.RSTStreamFrame) error {
	s, err := c.stream(f.StreamID)
	if err != nil || s == nil {
		return err
	}
	if f.ErrCode == http2.ErrCodeProtocol {
		c.drain(errUnusable) // the peer disagrees about the state of the connection
	}
	s.fail(http2.StreamError{StreamID: s.id, Code: f.ErrCode, Cause: errFromPeer})
	return nil
}

func (c *h2Conn) window(f *http2.WindowUpdateFrame) error {
	n := int(f.Increment)
	if f.StreamID == 0 {
		if c.sendWindow += n; c.sendWindow > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.sendWaiting()
		return nil
	}
	s, err := c.stream(f.StreamID)
	if err != nil || s == nil {
		return err
	}
	if s.sendWindow += n; s.sendWindow > maxWindow {
		s.violated(http2.ErrCodeFlowControl, "the window is too large")
		return nil
	}
	c.pump(s)
	return nil
}

// room makes the reading goroutine wait while there is much to send, so that a peer that reads
// nothing cannot make this side respond without bound.
func (c *h2Conn) room() {
	for len(c.unsent) >= maxUnsent && c.failed == nil && c.err == nil {
		c.wake()
		c.change.Wait()
	}
}

func (c *h2Conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if c.acks--; c.acks < 0 {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		return nil
	}
	c.room()
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.maxStreams = int(s.Val)
		case http2.SettingMaxHeaderListSize:
			c.maxHeader = s.Val
		case http2.SettingInitialWindowSize:
			return c.resize(int(s.Val) - c.peerWindow)
		}
		return nil
	})
	if err == nil {
		c.unsent = appendFrame(c.unsent, 0, settingsFrame, flagAck, 0)
	}
	return err
}

// resize changes the sending windows of all streams, which may become negative.
func (c *h2Conn) resize(by int) error {
	c.peerWindow += by
	for _, s := range c.streams {
		if s.sendWindow += by; s.sendWindow > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.pump(s)
	}
	return nil
}

func (c *h2Conn) ping(f *http2.PingFrame) {
	switch {
	case !f.IsAck():
		c.room()
		c.unsent = appendPing(c.unsent, flagAck, f.Data)
	case f.Data[0] == pingReset && c.resetPing:
		c.resets, c.resetPing = 0, false
		c.ended()
	}
}

// goAwayError is why a peer closed the connection.
type goAwayError struct {
	code  http2.ErrCode
	debug string
}

func (e *goAwayError) Error() string {
	return fmt.Sprintf("the endpoint closed the connection with GOAWAY: %v %.200q", e.code, e.debug)
}

// leave handles GOAWAY: the peer processes only streams up to the given one.
func (c *h2Conn) leave(f *http2.GoAwayFrame) {
	if c.goAway == nil || c.goAway.code == http2.ErrCodeNo { // otherwise the first one has the reason
		c.goAway = &goAwayError{f.ErrCode, string(f.DebugData())}
	}
	for id, s := range c.streams {
		switch {
		case id <= f.LastStreamID:
		case id == 1 && c.goAway.code != http2.ErrCodeNo:
			s.fail(c.goAway) // it would fail on each connection
		default:
			s.fail(errGoAway)
		}
	}
	c.drain(errGoAway)
}

// drain accepts no further streams, and closes the connection after the last one.
func (c *h2Conn) drain(why error) {
	if c.draining == nil {
		c.draining = why
	}
	if len(c.streams)+c.reserved == 0 {
		c.failLocked(c.draining)
	}
}
