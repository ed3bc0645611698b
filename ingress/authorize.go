package ingress

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/partition/machine"
)

// principalHeader tells handlers who called; callers cannot set it.
const principalHeader = "X-Platform-Principal"

// authorize identifies the sender of a request and refuses those who may not call handlers.
func (s *Server) authorize(c echo.Context) error {
	r := c.Request()
	delete(r.Header, principalHeader)
	p, err := s.cfg.Authenticator.Authenticate(r)
	// A token is for this server: handlers get the name only, and it is not stored.
	if _, ours := access.SecretID(access.Bearer(r)); ours || err == nil && p != &access.Anyone {
		delete(r.Header, "Authorization")
	}
	if err != nil {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="platform"`)
		return &problem{status: http.StatusUnauthorized, message: err.Error() + "; send one in the header Authorization: Bearer plt_…"}
	}
	if !p.Allows(access.Invoke) {
		return forbidden("the token '" + p.Name + "' does not permit calls; that requires the role " + access.RolesWith(access.Invoke))
	}
	if p == &access.Anyone {
		return nil
	}
	if isASCII(p.Name) {
		r.Header[principalHeader] = []string{p.Name}
	} else {
		r.Header[principalHeader] = []string{p.Token}
	}
	c.SetRequest(r.WithContext(access.With(r.Context(), p)))
	return nil
}

func forbidden(message string) error {
	return &problem{status: http.StatusForbidden, message: message}
}

// limitedSender returns the sender of a request if it may use some services or scopes only, else nil.
func limitedSender(r *http.Request) *access.Principal {
	if p := access.From(r.Context()); p.Limited() {
		return p
	}
	return nil
}

// checkTarget refuses a target outside the limits of the sender.
func checkTarget(r *http.Request, t machine.Target) error {
	if p := limitedSender(r); p != nil && !p.AllowsTarget(t.Service, t.Scope) {
		return forbidden("the token '" + p.Name + "' is not for this service or scope")
	}
	return nil
}

// checkUnlimited refuses requests about invocations whose target is not known to senders that
// are limited.
func checkUnlimited(r *http.Request) error {
	if p := limitedSender(r); p != nil {
		return forbidden("the token '" + p.Name + "' is limited to services or scopes; awakeables and signals need one without limits")
	}
	return nil
}
