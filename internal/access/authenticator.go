package access

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ErrUnauthenticated is the reason for refusing a request without valid credentials. It does not
// tell an unknown token from an expired one.
var ErrUnauthenticated = errors.New("the token is missing, unknown, expired or revoked")

// Grant is what a token stands for.
type Grant struct {
	Principal
	Hash    []byte
	Expires time.Time // zero: never
}

// Authenticator finds out who sends a request.
type Authenticator struct {
	// Required refuses requests without a valid token; otherwise their sender may do
	// everything, and a token only says who it is and what it may not do.
	Required bool
	// Static are grants of tokens that are not stored in the cluster; their tokens may have any
	// form.
	Static []Grant
	// Grant returns the grant of a token by ID; false if there is none.
	Grant func(id string) (Grant, bool)
	// Verify returns the principal of a token of an identity provider, nil if it is not valid;
	// may be nil.
	Verify func(ctx context.Context, text string) *Principal
	// Used is told of each use of a token; may be nil.
	Used func(id string, at time.Time)
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Identify returns the principal whose token a request has; nil if it has none that is valid.
func (a *Authenticator) Identify(r *http.Request) *Principal {
	if text := Bearer(r); text != "" {
		return a.find(r.Context(), text)
	}
	return nil
}

// Authenticate returns the sender of a request, or ErrUnauthenticated.
func (a *Authenticator) Authenticate(r *http.Request) (*Principal, error) {
	if p := a.Identify(r); p != nil {
		return p, nil
	}
	if a.Required {
		return nil, ErrUnauthenticated
	}
	return &Anyone, nil
}

func (a *Authenticator) find(ctx context.Context, text string) *Principal {
	hash := Hash(text)
	for i := range a.Static {
		if g := &a.Static[i]; SameHash(hash[:], g.Hash) {
			return &g.Principal
		}
	}
	id, ok := SecretID(text)
	if !ok && a.Verify != nil {
		return a.Verify(ctx, text)
	}
	if !ok || a.Grant == nil {
		return nil
	}
	grant, known := a.Grant(id)
	if !known || !SameHash(hash[:], grant.Hash) {
		return nil
	}
	now := time.Now
	if a.Now != nil {
		now = a.Now
	}
	at := now()
	if !grant.Expires.IsZero() && !at.Before(grant.Expires) {
		return nil
	}
	if a.Used != nil {
		a.Used(id, at)
	}
	return &grant.Principal
}
