package ingress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// Bodies of announced length up to eagerBody get their memory at once; longer ones
// as they arrive, so that an announcement alone costs nothing.
const (
	eagerBody  = 256 << 10
	pooledBody = 1 << 20
	bodyChunk  = 64 << 10
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readInput reads the body of a request into the Input entry of the invocation; body
// is the part of payload that holds it.
func (s *Server) readInput(w http.ResponseWriter, r *http.Request) (payload, body []byte, err error) {
	in, err := newInput(r)
	if err != nil {
		return nil, nil, err
	}
	if n := r.ContentLength; n >= 0 && n <= min(eagerBody, s.cfg.RequestSizeLimit) {
		payload, body = in.encode(int(n))
		if n > 0 {
			err = s.readFull(w, r, body)
		}
		return payload, body, err
	}
	buf := bodies.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= pooledBody {
			buf.Reset()
			bodies.Put(buf)
		}
	}()
	if err := s.readAll(w, r, buf); err != nil {
		return nil, nil, err
	}
	payload, body = in.encode(buf.Len())
	copy(body, buf.Bytes())
	return payload, body, nil
}

// readFull fills body, whose length is what the client announced.
func (s *Server) readFull(w http.ResponseWriter, r *http.Request, body []byte) error {
	stall := s.watch(w)
	defer stall.Stop()
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return unreadable(r.Context(), err)
	}
	return nil
}

// readAll reads a body of any length that the limit allows.
func (s *Server) readAll(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer) error {
	limit := s.cfg.RequestSizeLimit
	if r.ContentLength > limit {
		return bodyTooLarge(limit)
	}
	stall := s.watch(w)
	defer stall.Stop()
	rest := io.LimitReader(r.Body, limit+1)
	for {
		_, err := io.CopyN(buf, rest, bodyChunk)
		switch {
		case int64(buf.Len()) > limit:
			return bodyTooLarge(limit)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unreadable(r.Context(), err)
		}
		stall.Reset(s.cfg.BodyTimeout)
	}
}

// watch ends the reading of a body when the client does not send for too long. A
// timer costs less than a deadline set and cleared for each request.
func (s *Server) watch(w http.ResponseWriter) *time.Timer {
	return time.AfterFunc(s.cfg.BodyTimeout, func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // without effect where the connection cannot
	})
}

// unreadable is the answer to a body that ended early or is malformed.
func unreadable(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{status: http.StatusRequestTimeout, message: "the request body did not arrive in time"}
	case ctx.Err() != nil:
		return &problem{status: statusClientClosed, message: "the client has gone"}
	}
	return badRequest("cannot read the request body: %v", err)
}
