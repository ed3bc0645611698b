package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sys/unix"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// login is a session with the server, and what renews it.
type login struct {
	Issuer       string    `toml:"issuer"`
	ClientID     string    `toml:"client_id"`
	RefreshToken string    `toml:"refresh_token,omitempty"`
	ExpiresAt    time.Time `toml:"expires_at"`
}

// renewBefore is the remaining validity below which a session is renewed.
const renewBefore = time.Minute

// logInWithProvider logs in with the device flow and stores the session.
func (a *app) logInWithProvider(ctx context.Context, options client.LoginOptions) error {
	p, err := a.provider(ctx, options.OIDC.Issuer, options.OIDC.CLIClientID, options.OIDC.Scopes)
	if err != nil {
		return err
	}
	tokens, err := p.authorize(ctx, a)
	if err != nil {
		return err
	}
	session, err := a.exchange(ctx, tokens)
	if err != nil {
		return err
	}
	if err := a.store(a.credentialsOf(session, tokens, login{Issuer: options.OIDC.Issuer, ClientID: options.OIDC.CLIClientID})); err != nil {
		return err
	}
	a.print.Printf("%s Logged in to %s as %s (%s), until %s\n", a.print.Green("[OK]:"), a.profile.AdminURL, term.Clean(session.Name),
		term.Clean(strings.Join(session.Roles, ", ")), session.ExpiresAt.Local().Format(time.DateTime))
	return nil
}

// credentialsOf returns the credentials of a session.
func (a *app) credentialsOf(session client.Session, tokens *oauth2.Token, with login) credentials {
	with.RefreshToken, with.ExpiresAt = cmp.Or(tokens.RefreshToken, with.RefreshToken), session.ExpiresAt
	return credentials{AdminURL: a.profile.AdminURL, IngressURL: a.profile.IngressURL, Token: session.Token, Login: &with}
}

// store replaces the stored credentials of the environment.
func (a *app) store(c credentials) error {
	unlock, err := lockCredentials(a.profile.File)
	if err != nil {
		return err
	}
	defer unlock()
	return a.storeLocked(c)
}

// storeLocked is store while the credentials are locked.
func (a *app) storeLocked(c credentials) error {
	path := credentialsFile(a.profile.File)
	all, err := readCredentials(path)
	if err != nil {
		return err
	}
	all[a.profile.Environment] = c
	return writeCredentials(path, all)
}

// removeStored removes the stored credentials of the environment and returns them; false if there are
// none. A file that cannot be read is removed.
func (a *app) removeStored() (stored credentials, known bool, err error) {
	unlock, err := lockCredentials(a.profile.File)
	if err != nil {
		return credentials{}, false, err
	}
	defer unlock()
	path := credentialsFile(a.profile.File)
	all, err := readCredentials(path)
	if err != nil {
		return credentials{}, true, writeCredentials(path, nil)
	}
	if stored, known = all[a.profile.Environment]; !known {
		return credentials{}, false, nil
	}
	delete(all, a.profile.Environment)
	return stored, true, writeCredentials(path, all)
}

// renewSession replaces the session that is about to end, if the provider agrees. Otherwise the
// server refuses the old one.
func (a *app) renewSession(ctx context.Context) {
	if a.profile.Login == nil || a.profile.Login.RefreshToken == "" || time.Until(a.profile.Login.ExpiresAt) > renewBefore {
		return
	}
	token, err := a.renewed(ctx)
	if err != nil {
		a.say("The login has ended and could not be renewed: %s. Run `platform login`.", term.Clean(err.Error()))
		return
	}
	a.profile.Token = token
}

// renewed returns the token of a new session. Providers accept each refresh token once, so only one
// process at a time uses it.
func (a *app) renewed(ctx context.Context) (string, error) {
	unlock, err := lockCredentials(a.profile.File)
	if err != nil {
		return "", err
	}
	defer unlock()
	all, err := readCredentials(credentialsFile(a.profile.File))
	if err != nil {
		return "", err
	}
	stored := all[a.profile.Environment]
	if stored.AdminURL != a.profile.AdminURL || stored.IngressURL != a.profile.IngressURL {
		return "", errors.New("another process has logged in to another server meanwhile")
	}
	if stored.Login == nil || time.Until(stored.Login.ExpiresAt) > renewBefore {
		return stored.Token, nil // another process was faster
	}
	p, err := a.provider(ctx, stored.Login.Issuer, stored.Login.ClientID, nil)
	if err != nil {
		return "", err
	}
	tokens, err := p.refresh(ctx, stored.Login.RefreshToken)
	if err != nil {
		return "", err
	}
	session, err := a.exchange(ctx, tokens)
	if err != nil {
		// The old refresh token may be used up.
		stored.Login.RefreshToken = cmp.Or(tokens.RefreshToken, stored.Login.RefreshToken)
		_ = a.storeLocked(stored) // the first error is the reason
		return "", err
	}
	return session.Token, a.storeLocked(a.credentialsOf(session, tokens, *stored.Login))
}

// lockCredentials waits until no other process changes the credentials.
func lockCredentials(configuration string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(configuration), 0o700); err != nil {
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(filepath.Dir(configuration), ".credentials.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	return func() { _ = file.Close() }, nil // which releases the lock
}

// endSession revokes a session at the server, and its refresh token at the provider.
func (a *app) endSession(ctx context.Context, c credentials) {
	page, err := a.newClient(c.Token, 0).Logout(ctx)
	if err != nil {
		a.say("The session could not be revoked and remains valid until %s: %s", c.Login.ExpiresAt.Local().Format(time.DateTime), term.Clean(err.Error()))
	}
	if page != "" {
		a.say("The browser in which you confirmed the login may still be logged in at the identity provider. To end that: %s", term.Clean(page))
	}
	if c.Login.RefreshToken == "" {
		return
	}
	p, err := a.provider(ctx, c.Login.Issuer, c.Login.ClientID, nil)
	if err == nil {
		err = p.revoke(ctx, c.Login.RefreshToken)
	}
	if err != nil {
		a.say("The refresh token could not be revoked: %s", term.Clean(err.Error()))
	}
}
