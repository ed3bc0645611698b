package admin

import (
	"net/http"
)

const healthPath = "/health"

// admit refuses what pages of other sites send through the browser of an operator.
func (s *Server) admit(r *http.Request) error {
	// A page has no token. Load balancers ask for the health under any name.
	if s.cfg.Guard != nil && !s.cfg.Authenticator.Required && r.URL.Path != healthPath {
		if err := s.cfg.Guard.CheckHost(r); err != nil {
			return &failure{status: http.StatusForbidden, message: err.Error()}
		}
	}
	if s.crossOrigin.Check(r) != nil {
		return &failure{status: http.StatusForbidden, message: "a web page of another origin sent the request; to allow its requests, add the origin to admin.allowed-origins"}
	}
	return nil
}
