package admin

import (
	"net/http"

	"platform/admin/rest"
)

const healthPath = "/health"

// admit rejects cross-site requests that pages of other origins send through the browser of an
// operator.
func (s *Server) admit(r *http.Request) error {
	// Requests with a token cannot be forged by a page. Load balancers request the health under any
	// host name.
	if s.cfg.Guard != nil && !s.cfg.Authenticator.Required && r.URL.Path != healthPath {
		if err := s.cfg.Guard.CheckHost(r); err != nil {
			return &rest.Error{Status: http.StatusForbidden, Message: err.Error()}
		}
	}
	if s.crossOrigin.Check(r) != nil {
		return &rest.Error{Status: http.StatusForbidden, Message: "a web page of another origin sent the request; to allow its requests, add the origin to admin.allowed-origins"}
	}
	return nil
}
