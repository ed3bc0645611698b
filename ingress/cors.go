package ingress

import (
	"net/http"
	"slices"
)

// exposed are the response headers that pages of other origins may read.
var exposed = []string{"x-platform-id, x-restate-id, x-platform-error-source, x-restate-error-source, idempotency-expires"}

// allowOrigin lets a page of another origin read the response, if permitted.
func (s *Server) allowOrigin(h http.Header, origin string) {
	h["Vary"] = []string{"origin"}
	if allowed := s.cfg.AllowedOrigins; len(allowed) > 0 && !slices.Contains(allowed, origin) {
		return
	}
	h["Access-Control-Allow-Origin"] = []string{origin}
	h["Access-Control-Allow-Credentials"] = []string{"true"}
	h["Access-Control-Expose-Headers"] = exposed
}

// preflight answers what a browser asks before it lets a page make a request: the
// method and the headers it names are fine. What is wrong with them, if anything,
// the request itself will be told.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Allow"] = []string{"GET, POST, OPTIONS"}
	if len(h["Access-Control-Allow-Origin"]) > 0 {
		if method := r.Header["Access-Control-Request-Method"]; len(method) > 0 {
			h["Access-Control-Allow-Methods"] = method[:1]
		}
		if headers := r.Header["Access-Control-Request-Headers"]; len(headers) > 0 {
			h["Access-Control-Allow-Headers"] = headers
		}
	}
	h["Content-Length"] = []string{"0"}
	w.WriteHeader(http.StatusOK)
}
