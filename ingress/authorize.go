package ingress

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/machine"
)

// identify determines the principal of a request. The token is for this server: handlers only get
// the name, and the token is not stored.
func (s *Server) identify(c echo.Context) {
	r := c.Request()
	delete(r.Header, access.Header)
	access.WithoutSession(r.Header)
	p := s.cfg.Authenticator.Identify(r)
	if _, isSecret := access.SecretID(access.Bearer(r)); isSecret || p != nil && p.Token != "" {
		delete(r.Header, "Authorization")
		c.Set(credentialsCounted, p == nil)
	}
	if p == nil {
		return
	}
	r.Header[access.Header] = []string{p.HeaderValue()}
	c.SetRequest(r.WithContext(access.With(r.Context(), p)))
}

// credentialsCounted is the key under which the context of a request says that its credentials are
// not valid and were counted as such.
const credentialsCounted = "invalid credentials counted"

// countRejected counts a request that is rejected for lack of valid credentials.
func (s *Server) countRejected(c echo.Context, err error) {
	if p, ok := errors.AsType[*problem](err); !ok || p.status != http.StatusUnauthorized {
		return
	}
	if counted, _ := c.Get(credentialsCounted).(bool); !counted {
		s.cfg.Authenticator.Rejected(c.Request())
	}
}

// authorize rejects the sender of a request without a permission, or without the credentials that
// are required. A sender with credentials needs the permission in any case.
func authorize(c echo.Context, required metadata.IngressAuth, permission access.Permission) error {
	p := access.From(c.Request().Context())
	if len(p.Roles) == 0 {
		if required == metadata.IngressNone {
			return nil
		}
		return &problem{status: http.StatusUnauthorized, message: credentialHints[required]}
	}
	if !suffices(p.Kind, required) {
		return forbidden("'" + p.Name + "' may not use this service: " + credentialHints[required])
	}
	if !p.Allows(permission) {
		return forbidden("'" + p.Name + "' may not " + actions[permission] + "; that requires the role " + access.RolesWith(permission))
	}
	return nil
}

// actions are what the permissions that requests need permit.
var actions = map[access.Permission]string{
	access.Invoke:   "call handlers, send signals or read results",
	access.Complete: "complete awakeables",
}

// credentialHints say which credentials a sender must present.
var credentialHints = map[metadata.IngressAuth]string{
	metadata.IngressToken: "a valid token is required: send it in the header Authorization: Bearer plt_…; `platform tokens create NAME --role invoker` creates one",
	metadata.IngressJWT:   "a valid token of the identity provider (security.jwt) is required: send it in the header Authorization: Bearer …",
	metadata.IngressMTLS:  "a client certificate is required that a role is mapped to (security.certificates)",
}

// suffices reports whether a kind of credentials meets the requirement of a service.
func suffices(kind access.Kind, required metadata.IngressAuth) bool {
	switch required {
	case metadata.IngressJWT:
		return kind == access.KindJWT
	case metadata.IngressMTLS:
		return kind == access.KindCertificate
	}
	return true // a token includes everything stronger
}

// defaultAuth is what callers must present to services without a setting of their own.
func (s *Server) defaultAuth() metadata.IngressAuth {
	if s.cfg.Authenticator.Required {
		return metadata.IngressToken
	}
	return metadata.IngressNone
}

// requiredAuth returns what callers of a service must present.
func (s *Server) requiredAuth(o metadata.Options) metadata.IngressAuth {
	if o.IngressAuth == nil {
		return s.defaultAuth()
	}
	if *o.IngressAuth == metadata.IngressNone && s.cfg.Strict {
		return s.defaultAuth()
	}
	if _, known := credentialHints[*o.IngressAuth]; known || *o.IngressAuth == metadata.IngressNone {
		return *o.IngressAuth
	}
	return metadata.IngressMTLS // set by a newer server: the strictest one
}

// authorizeRoute rejects senders that cannot use a route, whatever the request is about. Calls are
// authorized once their service is known, which may have its own rule, and so are awakeables with
// a callback token.
func (s *Server) authorizeRoute(c echo.Context, as kind) error {
	switch {
	case as == kindCall, as == kindSend:
		return nil
	case as != kindAwakeable:
		return authorize(c, s.defaultAuth(), access.Invoke)
	case callbackToken(c) != "":
		return nil
	}
	return authorize(c, s.defaultAuth(), access.Complete)
}

// authorizeTarget rejects the sender of a request that may not do something to invocations of a
// target. A service that is no longer registered keeps the requirement that an operator has set; that of
// others is not known: if clients can have credentials, they are required.
func (s *Server) authorizeTarget(c echo.Context, t machine.Target, permission access.Permission) error {
	required := s.defaultAuth()
	schemas := s.registry.Schemas()
	if svc := schemas.Services[t.Service]; svc != nil {
		required = s.requiredAuth(svc.Options)
	} else {
		if kept := schemas.Kept[t.Service]; kept != nil {
			required = s.requiredAuth(*kept)
		}
		if required == metadata.IngressNone && s.cfg.Authenticator.InUse() {
			required = metadata.IngressToken
		}
	}
	if err := authorize(c, required, permission); err != nil {
		return err
	}
	return checkTarget(access.From(c.Request().Context()), t)
}

// maySee reports whether the sender of a request may learn that a service exists; nil is one without
// credentials.
func (s *Server) maySee(p *access.Principal, svc *metadata.Service) bool {
	if p == nil {
		return s.requiredAuth(svc.Options) == metadata.IngressNone
	}
	return p.AllowsService(svc.Name)
}

// mayRead reports whether the sender of a request may read results of a target.
func (s *Server) mayRead(c echo.Context, t machine.Target) bool {
	return s.authorizeTarget(c, t, access.Invoke) == nil
}

// authorizeInvocation rejects the sender of a request that may not do something to an invocation,
// whose target is looked up if the answer depends on it. It is routing.ErrNotFound if there is no
// such invocation: one that is created in the meantime must not be reached.
func (s *Server) authorizeInvocation(c echo.Context, id ids.Invocation, permission access.Permission) error {
	if err := authorize(c, s.defaultAuth(), permission); err != nil {
		return err
	}
	if p := access.From(c.Request().Context()); !p.Limited() && !s.rejectedBySome(p) {
		return nil
	}
	found, err := s.find(c, id)
	if err != nil {
		return err
	}
	return s.authorizeTarget(c, found.Target, permission)
}

// authorizeResult is authorizeInvocation for reading a result, which may belong to another principal.
func (s *Server) authorizeResult(c echo.Context, id ids.Invocation) error {
	p := access.From(c.Request().Context())
	if p.Name == "" && !s.cfg.Authenticator.InUse() {
		return s.authorizeInvocation(c, id, access.Invoke)
	}
	if err := authorize(c, s.defaultAuth(), access.Invoke); err != nil {
		return err
	}
	found, err := s.find(c, id)
	if err != nil {
		return err
	}
	if !owns(p, &found) {
		return routing.ErrNotFound
	}
	return s.authorizeTarget(c, found.Target, access.Invoke)
}

// find looks up an invocation, whose result may not exist yet.
func (s *Server) find(c echo.Context, id ids.Invocation) (routing.Response, error) {
	ctx := c.Request().Context()
	response, err := s.invocations.Output(ctx, id)
	if err != nil && !errors.Is(err, routing.ErrNotReady) && !errors.Is(err, routing.ErrNotFound) {
		return response, invocationProblem(ctx, err, id, true)
	}
	if errors.Is(err, routing.ErrNotReady) {
		err = nil
	}
	response.ID = id
	return response, err
}

// rejectedBySome reports whether some services may reject a principal that the ingress accepts.
func (s *Server) rejectedBySome(p *access.Principal) bool {
	anonymous := len(p.Roles) == 0
	if anonymous && s.cfg.Authenticator.InUse() {
		return true
	}
	rejects := func(o metadata.Options) bool {
		required := s.requiredAuth(o)
		return !suffices(p.Kind, required) || anonymous && required != metadata.IngressNone
	}
	schemas := s.registry.Schemas()
	for _, svc := range schemas.Services {
		if rejects(svc.Options) {
			return true
		}
	}
	for _, kept := range schemas.Kept {
		if rejects(*kept) {
			return true
		}
	}
	return false
}

func forbidden(message string) error {
	return &problem{status: http.StatusForbidden, message: message}
}

// checkTarget rejects a target outside the limits of the sender.
func checkTarget(p *access.Principal, t machine.Target) error {
	if p.Limited() && !p.AllowsTarget(t.Service, t.Scope) {
		return outsideLimits(p)
	}
	return nil
}

func outsideLimits(p *access.Principal) error {
	return forbidden("'" + p.Name + "' is limited to other services or scopes")
}

// callbackParameter is the query parameter with a callback token.
const callbackParameter = "callback_token"

func callbackToken(c echo.Context) string { return c.QueryParam(callbackParameter) }

// authorizeAwakeable rejects the sender of a request that may not complete an awakeable.
func (s *Server) authorizeAwakeable(c echo.Context, text string, id ids.Invocation) error {
	token := callbackToken(c)
	if token == "" {
		return s.authorizeInvocation(c, id, access.Complete)
	}
	p := s.cfg.Authenticator.Callback(token, text)
	if p == nil {
		s.cfg.Authenticator.InvalidCallback(c.Request())
		c.Set(credentialsCounted, true)
		return &problem{status: http.StatusUnauthorized, message: "the callback token is not for this awakeable, or it has expired or the token that it was made from was revoked"}
	}
	// It proves the same as the token that it was made from, and no more.
	c.SetRequest(c.Request().WithContext(access.With(c.Request().Context(), p)))
	return s.authorizeInvocation(c, id, access.Complete)
}
