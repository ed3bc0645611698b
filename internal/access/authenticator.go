package access

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"time"
)

// ErrUnauthenticated is the reason for rejecting a request without valid credentials. It does not
// tell an unknown token from an expired one.
var ErrUnauthenticated = errors.New("the token is missing, unknown, expired or revoked")

// Grant is the authority that a token confers.
type Grant struct {
	Principal
	Hash    []byte
	Expires time.Time // zero: never
	Session bool      // of a user of an identity provider; the token may be in a cookie
}

// Authenticator identifies the sender of a request.
type Authenticator struct {
	// Required rejects requests without a valid token; otherwise such requests are unrestricted,
	// and a token only identifies the sender and limits its permissions.
	Required bool
	// Static holds the grants of tokens that are not stored in the cluster; their tokens may have
	// any form.
	Static []Grant
	// Grant returns the grant of a token by ID; false if there is none.
	Grant func(id string) (Grant, bool)
	// Verify returns the principal of a token of an identity provider, nil if it is not valid;
	// may be nil.
	Verify func(ctx context.Context, text string) *Principal
	// Certificate returns the principal of a verified certificate of a client, nil if it has none;
	// may be nil.
	Certificate func(*x509.Certificate) *Principal
	// Sessions accepts sessions of browsers; nil: cookies do not count.
	Sessions *Sessions
	// Issued reports whether tokens of the cluster exist; may be nil.
	Issued func() bool
	// Used is called on each use of a token; may be nil.
	Used func(id string, at time.Time)
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Failures counts and logs requests without valid credentials, as those of the port Port; may be
	// nil.
	Failures *Failures
	Port     string
	// Foreign reports that bearer tokens which do not have the form of one of the cluster may be meant
	// for handlers.
	Foreign bool
}

// Identify returns the principal whose token a request has; nil if it has none that is valid.
func (a *Authenticator) Identify(r *http.Request) *Principal {
	text := Bearer(r)
	_, ours := SecretID(text)
	if text != "" {
		if p := a.find(r.Context(), text); p != nil {
			return p
		}
	} else if p := a.session(r); p != nil {
		return p
	}
	// On the ingress, another bearer token may be one of the application.
	if !ours && a.Certificate != nil && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if p := a.Certificate(r.TLS.VerifiedChains[0][0]); p != nil {
			return p
		}
	}
	if text == "" && a.Sessions != nil {
		text = a.Sessions.token(r)
	}
	if text != "" && (ours || !a.Foreign) {
		a.fail(r, text)
	}
	return nil
}

// fail counts and logs a request with a token that is not valid.
func (a *Authenticator) fail(r *http.Request, text string) {
	if a.Failures == nil {
		return
	}
	f := failure{port: a.Port, reason: "it is not a token of this server"}
	id, ours := SecretID(text)
	switch {
	case !ours && a.Verify != nil:
		f.reason = "it is neither a token of this server nor a valid one of the identity provider"
	case ours:
		f.reason = "there is no such token; it may have been revoked"
		if a.Grant == nil {
			break
		}
		if grant, known := a.Grant(id); known {
			f.token, f.principal, f.reason = id, grant.Name, "the token has expired"
			if hash := Hash(text); !sameHash(hash[:], grant.Hash) {
				f.reason = "the secret of the token is wrong"
			}
		}
	}
	a.Failures.invalid(r, f)
}

// Rejected counts a request that was rejected because it has no valid credentials, unless Identify
// has counted it.
func (a *Authenticator) Rejected(r *http.Request) {
	text := Bearer(r)
	_, ours := SecretID(text)
	switch {
	case a.Failures == nil:
	case text != "" && !ours && a.Foreign:
		a.fail(r, text)
	case text == "" && (a.Sessions == nil || a.Sessions.token(r) == ""):
		a.Failures.missing(a.Port)
	}
}

// InvalidCallback counts and logs a request with a callback token that is not valid.
func (a *Authenticator) InvalidCallback(r *http.Request) {
	a.Failures.invalid(r, failure{port: a.Port, reason: "the callback token is not valid"})
}

// InUse reports whether a client could have credentials.
func (a *Authenticator) InUse() bool {
	return a.Required || len(a.Static) > 0 || a.Verify != nil || a.Certificate != nil || a.Issued != nil && a.Issued()
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
		if g := &a.Static[i]; sameHash(hash[:], g.Hash) {
			return &g.Principal
		}
	}
	id, ok := SecretID(text)
	if !ok && a.Verify != nil {
		return a.Verify(ctx, text)
	}
	if !ok {
		return nil
	}
	return a.granted(id, func(g *Grant, _ time.Time) bool { return sameHash(hash[:], g.Hash) })
}

// session returns the principal of the session of a browser.
func (a *Authenticator) session(r *http.Request) *Principal {
	if a.Sessions == nil {
		return nil
	}
	text := a.Sessions.token(r)
	id, ok := SecretID(text)
	if !ok {
		return nil
	}
	hash := Hash(text)
	return a.granted(id, func(g *Grant, _ time.Time) bool { return g.Session && sameHash(hash[:], g.Hash) })
}

// granted returns the principal of a token of the cluster if a check of its grant succeeds and the
// token is valid.
func (a *Authenticator) granted(id string, check func(*Grant, time.Time) bool) *Principal {
	if a.Grant == nil {
		return nil
	}
	now := time.Now
	if a.Now != nil {
		now = a.Now
	}
	at := now()
	grant, known := a.Grant(id)
	if !known || !check(&grant, at) || !grant.Expires.IsZero() && !at.Before(grant.Expires) {
		return nil
	}
	if a.Used != nil {
		a.Used(id, at)
	}
	return &grant.Principal
}
