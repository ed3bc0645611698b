package access

import (
	"context"
	"slices"
)

// Principal is who sends a request.
type Principal struct {
	// Name says who it is; empty if the server does not ask.
	Name string
	// Token is the ID of the token that was used, if any.
	Token string
	Roles []Role
	// Services and Scopes limit the principal to these, if there are any.
	Services, Scopes []string
}

// Anyone is a client of a server that does not ask who it is.
var Anyone = Principal{Roles: []Role{Admin}}

// Allows reports whether the principal has a permission.
func (p *Principal) Allows(permission Permission) bool {
	return permission == Public || slices.ContainsFunc(p.Roles, func(r Role) bool { return r.Allows(permission) })
}

// Limited reports whether the principal may act on some services or scopes only.
func (p *Principal) Limited() bool { return len(p.Services) > 0 || len(p.Scopes) > 0 }

// AllowsTarget reports whether the limits include a service and a scope, which is empty for
// invocations without one.
func (p *Principal) AllowsTarget(service, scope string) bool {
	return (len(p.Services) == 0 || slices.Contains(p.Services, service)) &&
		(len(p.Scopes) == 0 || slices.Contains(p.Scopes, scope))
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
