package ingress

import (
	"io"
	"net/http"
	"time"
)

// skipStream reads and drops the rest of an HTTP/2 request, for a limited time, before the request is
// rejected. The library resets a stream whose request has not ended, and clients that are still
// sending then lose the response.
func (s *Server) skipStream(w http.ResponseWriter, r *http.Request) {
	if r.Header["Expect"] != nil { // reading would request the body
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(skipBody)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, 2*s.cfg.RequestSizeLimit)
	}
}

// skipBody limits the time for which the rest of a rejected body is read.
const skipBody = time.Second

// abandonBody bounds how long the connection may take to skip what is left of the body of a rejected
// request: the standard library reads the rest of a short one, to keep the connection, and would
// wait for it indefinitely.
func (s *Server) abandonBody(w http.ResponseWriter, p *problem) {
	timeout := s.cfg.bodyTimeout
	switch p.status {
	case http.StatusRequestTimeout:
		return // its deadline has passed already
	case http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable:
		w.Header()["Connection"] = []string{"close"} // the rest is not worth reading
		timeout = skipBody
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout))
}
