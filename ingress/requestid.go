package ingress

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"

	"platform/internal/ids"
	"platform/internal/tracing"
)

// headerRequestID is the header by which clients and proxies name a request in their logs and ours.
const headerRequestID = "X-Request-Id"

// maxRequestID bounds a request ID, since it is logged and returned.
const maxRequestID = 128

// returnRequestID copies the ID that the client gave a request to the response, if it is valid.
func returnRequestID(response, request http.Header) {
	if id, has := first(request[headerRequestID]); has && validRequestID(id) {
		response[headerRequestID] = []string{id}
	}
}

// validRequestID reports whether an ID consists of visible ASCII characters.
func validRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' })
}

// requestLog returns the logger for a request that fails because of the server. A request without an
// ID gets one, so that the client can refer to the log.
func (s *Server) requestLog(w http.ResponseWriter, r *http.Request, id ids.Invocation) *slog.Logger {
	h := w.Header()
	request, has := first(h[headerRequestID])
	if !has {
		request = rand.Text()
		h[headerRequestID] = []string{request}
	}
	log := s.log.With("path", r.URL.Path, "request_id", request)
	if trace := tracing.TraceID(traceparentOf(w, r)); trace != "" {
		log = log.With("trace_id", trace)
	}
	if !id.IsZero() {
		log = log.With("invocation_id", id)
	}
	return log
}

// traceparentOf returns the trace context of a request: of its span, or else of the client.
func traceparentOf(w http.ResponseWriter, r *http.Request) string {
	for {
		if e, counted := w.(*exchange); counted && e.trace != "" {
			return e.trace
		}
		inner, wrapped := w.(interface{ Unwrap() http.ResponseWriter })
		if !wrapped {
			return traceOf(r.Header).Parent
		}
		w = inner.Unwrap()
	}
}
