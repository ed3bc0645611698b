package access

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is how a principal was authenticated.
type Kind uint8

// The kinds of principals.
const (
	KindToken       Kind = iota // a token of this server, or nothing
	KindJWT                     // a token of an identity provider
	KindCertificate             // a certificate of a client
)

// Prefixes of the names of principals that are not named by an operator: each name in the audit log, and each
// passed to handlers, refers to one principal.
const (
	jwtPrefix         = "jwt:"
	certificatePrefix = "cert:"
	sessionPrefix     = "oidc:"
)

// Administrator is the name of the principal of the token that a node has for its administrator, which
// the cluster does not store.
const Administrator = "admin"

// Reserved reports whether a name can be that of a principal that is not a token.
func Reserved(name string) bool {
	return strings.HasPrefix(name, jwtPrefix) || strings.HasPrefix(name, certificatePrefix) || strings.HasPrefix(name, sessionPrefix)
}

// SessionName returns the name of a user who has logged in at an identity provider.
func SessionName(subject string) string { return sessionPrefix + subject }

// NewJWT returns the principal of a token of an identity provider.
func NewJWT(subject string, roles []Role) *Principal {
	return &Principal{Name: jwtPrefix + subject, Kind: KindJWT, Roles: roles}
}

// Principal is the sender of a request.
type Principal struct {
	// Name identifies the principal; empty if the server does not authenticate.
	Name string
	Kind Kind
	// Token is the ID of the token that was used, if any.
	Token string
	Roles []Role
	// Services and Scopes limit the principal to these, if there are any.
	Services, Scopes []string
}

// Header contains the name of the calling principal, for handlers. Callers cannot set it.
const Header = "X-Platform-Principal"

// HeaderValue returns the value of Header: the name or, if that is not ASCII, a representation of
// it. It is empty if the server does not authenticate.
func (p *Principal) HeaderValue() string {
	reserved := Reserved(p.Name)
	switch {
	// The percent sign marks an escaped name, so names that contain it are escaped as well.
	case !strings.ContainsFunc(p.Name, func(r rune) bool { return r >= utf8.RuneSelf || reserved && r == '%' }):
		return p.Name
	case !reserved && p.Token != "":
		return p.Token
	}
	return url.PathEscape(p.Name) // of an identity provider or a certificate
}

// Anyone is the principal of clients of a server without authentication.
var Anyone = Principal{Roles: []Role{Admin}}

// Allows reports whether the principal has a permission.
func (p *Principal) Allows(permission Permission) bool {
	return permission == Public || slices.ContainsFunc(p.Roles, func(r Role) bool { return r.Allows(permission) })
}

// Grants reports whether the principal may grant roles: it must have all of their permissions.
func (p *Principal) Grants(roles ...Role) bool {
	for _, role := range roles {
		for _, permission := range role.permissionSet() {
			if !p.Allows(permission) {
				return false
			}
		}
	}
	return !p.Limited()
}

// Limited reports whether the principal may act on some services or scopes only.
func (p *Principal) Limited() bool { return len(p.Services) > 0 || len(p.Scopes) > 0 }

// AllowsTarget reports whether the limits include a service and a scope, which is empty for
// invocations without one.
func (p *Principal) AllowsTarget(service, scope string) bool {
	return p.AllowsService(service) && (len(p.Scopes) == 0 || slices.Contains(p.Scopes, scope))
}

// AllowsService reports whether the limits include a service.
func (p *Principal) AllowsService(service string) bool {
	return len(p.Services) == 0 || slices.Contains(p.Services, service)
}

type principalKey struct{}

// With returns a context with a principal.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns the principal of a context; one without permissions if there is none.
func From(ctx context.Context) *Principal {
	if p, ok := ctx.Value(principalKey{}).(*Principal); ok {
		return p
	}
	return &Principal{}
}
