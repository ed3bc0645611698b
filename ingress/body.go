package ingress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"platform/internal/httpserver"
)

// Memory for bodies with a Content-Length up to eagerBody is allocated immediately; for longer ones
// as they arrive, so that the header alone costs nothing.
const (
	eagerBody  = 256 << 10
	pooledBody = 1 << 20
	bodyChunk  = 64 << 10
	// arrivedShare is the share of a longer body that must have arrived before memory for the rest
	// is allocated.
	arrivedShare = 4
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readInput reads the body of a request into the Input entry of the invocation; body
// is the part of payload that holds it.
func (s *Server) readInput(w http.ResponseWriter, r *http.Request, forward []string, mem *reservation) (payload, body []byte, err error) {
	in, err := newInput(r, forward)
	if err != nil {
		return nil, nil, err
	}
	if r.ContentLength > s.cfg.RequestSizeLimit {
		return nil, nil, bodyTooLarge(s.cfg.RequestSizeLimit)
	}
	if err := mem.growBody(r.ContentLength); err != nil {
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
	if r.ContentLength < 0 {
		parts, length, err := s.readParts(w, r, buf, mem)
		if err != nil {
			return nil, nil, err
		}
		payload, body = in.encode(length)
		for at := 0; len(parts) > 0; parts = parts[1:] {
			at += copy(body[at:], parts[0])
		}
		return payload, body, nil
	}
	whole, err := s.readUntil(w, r, buf, 0, r.ContentLength/arrivedShare, mem)
	if err != nil {
		return nil, nil, err
	}
	if whole {
		payload, body = in.encode(buf.Len())
		copy(body, buf.Bytes())
		return payload, body, nil
	}
	payload, body = in.encode(int(r.ContentLength))
	return payload, body, s.readFull(w, r, body[copy(body, buf.Bytes()):])
}

// readFull fills body, whose length is what the client announced.
func (s *Server) readFull(w http.ResponseWriter, r *http.Request, body []byte) error {
	stall := s.watch(w)
	defer stall.Stop()
	for part := range slices.Chunk(body, bodyChunk) {
		if _, err := io.ReadFull(r.Body, part); err != nil {
			return unreadable(r.Context(), err)
		}
		if len(body) > bodyChunk {
			stall.Reset(httpserver.StallTimeout(r.Context(), s.cfg.bodyTimeout))
		}
	}
	return nil
}

// readParts reads a body of unknown length into buf and, once that has its largest size, into further
// buffers of this size: one that grows takes up to three times the memory of its content.
func (s *Server) readParts(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, mem *reservation) (parts [][]byte, length int, _ error) {
	for {
		whole, err := s.readUntil(w, r, buf, int64(length), pooledBody, mem)
		if err != nil {
			return nil, 0, err
		}
		parts, length = append(parts, buf.Bytes()), length+buf.Len()
		if whole {
			return parts, length, nil
		}
		buf = bytes.NewBuffer(make([]byte, 0, pooledBody+bytes.MinRead))
	}
}

// readAll reads a body of any length that the limit allows.
func (s *Server) readAll(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, mem *reservation) error {
	_, err := s.readUntil(w, r, buf, 0, math.MaxInt64, mem)
	return err
}

// readUntil is readAll for what follows the first bytes of a body, but stops when enough has arrived and
// then reports false.
func (s *Server) readUntil(w http.ResponseWriter, r *http.Request, buf *bytes.Buffer, before, enough int64, mem *reservation) (whole bool, err error) {
	limit := s.cfg.RequestSizeLimit
	if r.ContentLength > limit {
		return false, bodyTooLarge(limit)
	}
	stall := s.watch(w)
	defer stall.Stop()
	rest := io.LimitReader(r.Body, limit-before+1)
	for {
		if err := mem.growBody(before + int64(buf.Len()+bodyChunk)); err != nil {
			return false, err
		}
		_, err := io.CopyN(buf, rest, bodyChunk)
		switch {
		case before+int64(buf.Len()) > limit:
			return false, bodyTooLarge(limit)
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, unreadable(r.Context(), err)
		case int64(buf.Len()) >= enough:
			return false, nil
		}
		stall.Reset(httpserver.StallTimeout(r.Context(), s.cfg.bodyTimeout))
	}
}

// watch ends the reading of a body when the client does not send for too long. A
// timer costs less than a deadline set and cleared for each request.
func (s *Server) watch(w http.ResponseWriter) *time.Timer {
	return time.AfterFunc(s.cfg.bodyTimeout, func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // without effect where the connection cannot
	})
}

// unreadable returns the problem for a body that ended early or is malformed.
func unreadable(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{status: http.StatusRequestTimeout, message: "the request body did not arrive in time"}
	case ctx.Err() != nil:
		return &problem{status: statusClientClosed, message: "the client disconnected"}
	}
	return badRequest("cannot read the request body: %v", err)
}
