package oidc

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"platform/internal/access"
)

const (
	// maxSkew is the difference between the clocks of the provider and this server that is
	// tolerated, maxAge the age of an ID token that a login may use.
	maxSkew = 30 * time.Second
	maxAge  = 10 * time.Minute
	// maxTokenBytes bounds the ID tokens that clients send.
	maxTokenBytes = 16 << 10
)

// Account is a user who has logged in.
type Account struct {
	Name  string // that of access.SessionName
	Roles []access.Role
}

// Verify returns the account of an ID token that the command line got for its client. Errors wrap a
// *RefusedError or ErrUnavailable.
func (p *Provider) Verify(ctx context.Context, text string) (*Account, error) {
	if p.cfg.CLIClientID == "" {
		return nil, &RefusedError{Message: "security.oidc.cli-client-id is not set: the command line cannot log in with the identity provider"}
	}
	if len(text) > maxTokenBytes || strings.Count(text, ".") != 2 {
		return nil, &RefusedError{Message: "the ID token is not a signed JSON web token"}
	}
	found, err := p.found.get(ctx)
	if err != nil {
		return nil, err
	}
	token, err := p.verify(ctx, found, p.cfg.CLIClientID, text)
	if err != nil {
		return nil, err
	}
	return p.account(token, p.cfg.CLIClientID)
}

// account returns the account of a verified token of a client.
func (p *Provider) account(token *oidc.IDToken, client string) (*Account, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, p.invalid(err)
	}
	now := p.cfg.now()
	party, named := claims["azp"]
	switch {
	case token.IssuedAt.After(now.Add(maxSkew)):
		return nil, p.invalid(errors.New("it was issued in the future: the clocks differ"))
	case token.IssuedAt.Before(now.Add(-maxAge)):
		return nil, p.invalid(errors.New("it is too old for a login"))
	case named && party != client, !named && len(token.Audience) > 1:
		return nil, p.invalid(errors.New("it was issued to another client"))
	}
	subject := p.claims.Subject(claims)
	if subject == "" {
		return nil, &RefusedError{Message: "the ID token has no claim with a name that can be used; see security.oidc.subject-claim"}
	}
	account := &Account{Name: access.SessionName(subject)}
	if p.claims.Unverified(claims) {
		return nil, &RefusedError{Account: account.Name, Message: "the identity provider has not verified the e-mail address of this account"}
	}
	if account.Roles = p.claims.Roles(claims); len(account.Roles) == 0 {
		if !p.claims.Present(claims) {
			p.cfg.Log.Warn("ID token of a login has none of the claims that determine roles; see security.oidc.scopes, and which claims the provider puts into ID tokens",
				"account", account.Name, "roles_claim", p.cfg.RolesClaim)
		}
		return nil, &RefusedError{Account: account.Name, Message: "this account has no role on this server; ask an administrator to assign one (security.oidc.roles)"}
	}
	return account, nil
}

// invalid returns the error for an ID token that is not valid. The log has the reason.
func (p *Provider) invalid(err error) error {
	p.cfg.Log.Warn("ID token of a login rejected", "err", shortened(err.Error()))
	return &RefusedError{Message: "the ID token of the identity provider is not valid; the log of the server has the reason"}
}
