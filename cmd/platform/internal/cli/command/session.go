package command

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

// LogInWithProvider logs in with the device flow and stores the session.
func (a *App) LogInWithProvider(ctx context.Context, options client.LoginOptions) error {
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
	if err := a.Store(a.credentialsOf(session, tokens, login{Issuer: options.OIDC.Issuer, ClientID: options.OIDC.CLIClientID})); err != nil {
		return err
	}
	a.Print.Printf("%s Logged in to %s as %s (%s), until %s\n", a.Print.Green("[OK]:"), a.Profile.AdminURL, term.Clean(session.Name),
		term.Clean(strings.Join(session.Roles, ", ")), term.LocalTime(session.ExpiresAt))
	return nil
}

// credentialsOf returns the credentials of a session.
func (a *App) credentialsOf(session client.Session, tokens *oauth2.Token, with login) Credentials {
	with.RefreshToken, with.ExpiresAt = cmp.Or(tokens.RefreshToken, with.RefreshToken), session.ExpiresAt
	return Credentials{AdminURL: a.Profile.AdminURL, IngressURL: a.Profile.IngressURL, Token: session.Token, Login: &with}
}

// Store replaces the stored credentials of the environment.
func (a *App) Store(c Credentials) error {
	unlock, err := lockFiles(a.Profile.File)
	if err != nil {
		return err
	}
	defer unlock()
	return a.storeLocked(c)
}

// storeLocked is store while the credentials are locked.
func (a *App) storeLocked(c Credentials) error {
	path := credentialsFile(a.Profile.File)
	all, err := readCredentials(path)
	if err != nil {
		return err
	}
	all[a.Profile.Environment] = c
	return writeCredentials(path, all)
}

// RemoveStored removes the stored credentials of the environment and returns them; false if there are
// none. A file that cannot be read is removed.
func (a *App) RemoveStored() (stored Credentials, known bool, err error) {
	unlock, err := lockFiles(a.Profile.File)
	if err != nil {
		return Credentials{}, false, err
	}
	defer unlock()
	path := credentialsFile(a.Profile.File)
	all, err := readCredentials(path)
	if err != nil {
		return Credentials{}, true, writeCredentials(path, nil)
	}
	if stored, known = all[a.Profile.Environment]; !known {
		return Credentials{}, false, nil
	}
	delete(all, a.Profile.Environment)
	return stored, true, writeCredentials(path, all)
}

// renewSession replaces the session that is about to end, if the provider agrees. Otherwise the
// server refuses the old one.
func (a *App) renewSession(ctx context.Context) {
	if a.Profile.Login == nil || a.Profile.Login.RefreshToken == "" || time.Until(a.Profile.Login.ExpiresAt) > renewBefore {
		return
	}
	token, err := a.renewed(ctx)
	if err != nil {
		a.Say("The login has ended and could not be renewed: %s. Run `platform login`.", term.Clean(err.Error()))
		return
	}
	a.Profile.Token = token
}

// renewed returns the token of a new session. Providers accept each refresh token once, so only one
// process at a time uses it.
func (a *App) renewed(ctx context.Context) (string, error) {
	unlock, err := lockFiles(a.Profile.File)
	if err != nil {
		return "", err
	}
	defer unlock()
	all, err := readCredentials(credentialsFile(a.Profile.File))
	if err != nil {
		return "", err
	}
	stored := all[a.Profile.Environment]
	if stored.AdminURL != a.Profile.AdminURL || stored.IngressURL != a.Profile.IngressURL {
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

// lockFiles waits until no other process changes the files beside the configuration: the credentials and
// the chosen environment.
func lockFiles(configuration string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(configuration), 0o700); err != nil {
		return nil, fmt.Errorf("lock the files of the client: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(filepath.Dir(configuration), ".credentials.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the files of the client: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock the files of the client: %w", err)
	}
	return func() { _ = file.Close() }, nil // which releases the lock
}

// EndSession revokes a session at the server, and its refresh token at the provider.
func (a *App) EndSession(ctx context.Context, c Credentials) {
	page, err := a.NewClient(c.Token, 0).Logout(ctx)
	if err != nil {
		a.Say("The session could not be revoked and remains valid until %s: %s", term.LocalTime(c.Login.ExpiresAt), term.Clean(err.Error()))
	}
	if page != "" {
		a.Say("The browser in which you confirmed the login may still be logged in at the identity provider. To end that: %s", term.Clean(page))
	}
	if c.Login.RefreshToken == "" {
		return
	}
	p, err := a.provider(ctx, c.Login.Issuer, c.Login.ClientID, nil)
	if err == nil {
		err = p.revoke(ctx, c.Login.RefreshToken)
	}
	if err != nil {
		a.Say("The refresh token could not be revoked: %s", term.Clean(err.Error()))
	}
}
