package ingress

import (
	"net/http"
	"slices"
)

var (
	noSniff   = []string{"nosniff"}
	vary      = []string{"origin"}
	anyOrigin = []string{"*"}
)

// exposed are the response headers that pages of other origins may read.
var exposed = []string{"x-platform-id, x-restate-id, x-platform-error-source, x-restate-error-source, idempotency-expires"}

// admit rejects requests of web pages that may not send them, and permits the others to read the
// response.
func (s *Server) admit(h http.Header, r *http.Request) error {
	h["X-Content-Type-Options"] = noSniff
	// Load balancers request the health route under any name.
	if err := s.cfg.Guard.CheckHost(r); err != nil && !slices.Contains(healthPaths, r.URL.Path) {
		return &problem{status: http.StatusForbidden, message: err.Error()}
	}
	if origin := r.Header["Origin"]; len(origin) > 0 {
		s.allowOrigin(h, r, origin[0])
	}
	if r.Method == http.MethodOptions {
		return nil // without CORS headers the browser does not send the request
	}
	if err := s.cfg.Guard.CheckOrigin(r); err != nil {
		return &problem{status: http.StatusForbidden, message: err.Error()}
	}
	return nil
}

// allowOrigin lets a page of another origin read the response, if permitted. Only origins
// that are trusted by name may use the credentials of the browser.
func (s *Server) allowOrigin(h http.Header, r *http.Request, origin string) {
	h["Vary"] = vary
	switch {
	case s.cfg.Guard.TrustsOrigin(r, origin):
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Credentials"] = []string{"true"}
	case s.cfg.Guard.AllowsOrigin(r, origin):
		h["Access-Control-Allow-Origin"] = anyOrigin
	default:
		return
	}
	h["Access-Control-Expose-Headers"] = exposed
}

// preflight responds to a browser's preflight request. All methods and headers are permitted here;
// the request itself is checked later.
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
