package ingress

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/metadata"
	"platform/partition/machine"
)

// principalHeader tells handlers who called; callers cannot set it.
const principalHeader = "X-Platform-Principal"

// identify finds out who sends a request. The token is for this server: handlers get the name
// only, and it is not stored.
func (s *Server) identify(c echo.Context) {
	r := c.Request()
	delete(r.Header, principalHeader)
	p := s.cfg.Authenticator.Identify(r)
	if _, ours := access.SecretID(access.Bearer(r)); ours || p != nil && p.Token != "" {
		delete(r.Header, "Authorization")
	}
	if p == nil {
		return
	}
	name := p.Name
	switch {
	case isASCII(name):
	case p.Token != "":
		name = p.Token
	default: // of an identity provider
		name = url.PathEscape(name)
	}
	r.Header[principalHeader] = []string{name}
	c.SetRequest(r.WithContext(access.With(r.Context(), p)))
}

// authorize refuses the sender of a request if it may not call handlers. required says that it
// must have a token.
func authorize(c echo.Context, required bool) error {
	p := access.From(c.Request().Context())
	if len(p.Roles) == 0 {
		if !required {
			return nil
		}
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="platform"`)
		return &problem{status: http.StatusUnauthorized, message: access.ErrUnauthenticated.Error() + "; send one in the header Authorization: Bearer plt_…"}
	}
	if !p.Allows(access.Invoke) {
		return forbidden("the token '" + p.Name + "' does not permit calls; that requires the role " + access.RolesWith(access.Invoke))
	}
	return nil
}

// requiresToken reports whether callers of a service must present a token.
func (s *Server) requiresToken(o metadata.Options) bool {
	if o.IngressAuth != nil {
		return *o.IngressAuth != metadata.IngressNone
	}
	return s.cfg.Authenticator.Required
}

// mayRead reports whether the sender of a request may read results of a target.
func (s *Server) mayRead(c echo.Context, t machine.Target) bool {
	svc := s.registry.Schemas().Services[t.Service]
	return checkTarget(c.Request(), t) == nil && (svc == nil || authorize(c, s.requiresToken(svc.Options)) == nil)
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
