package tokens

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/access/oidc"
	"platform/metadata"
)

const (
	// startPath begins a login in a browser.
	startPath = "/login/start"
	// loginTimeout is the time that a user has to log in at the identity provider.
	loginTimeout = 10 * time.Minute
	// loginRate bounds the logins of an address, which cause requests to the identity provider.
	loginRate = 5
	// chooseParameter is the query parameter of the start of a login in which the user chooses an
	// account.
	chooseParameter = "choose"
)

// loginView contains the ways to log in other than with a token.
type loginView struct {
	OIDC *oidcView `json:"oidc,omitempty"`
}

type oidcView struct {
	Issuer string `json:"issuer"`
	// StartURL begins a login in a browser; empty if browsers cannot log in.
	StartURL string `json:"start_url,omitempty"`
	// CLIClientID is the client for the device flow; empty if the command line cannot log in.
	CLIClientID string   `json:"cli_client_id,omitempty"`
	Scopes      []string `json:"scopes"`
}

func (s *Server) loginOptions(c echo.Context) error {
	view := loginView{}
	if p := s.cfg.Login; p != nil {
		view.OIDC = &oidcView{Issuer: p.Issuer(), CLIClientID: p.CLIClientID(), Scopes: p.Scopes()}
		if p.Origin() != "" {
			view.OIDC.StartURL = p.Origin() + startPath
		}
	}
	return rest.Respond(c, http.StatusOK, view)
}

var (
	errNoLogin = &rest.Error{Status: http.StatusNotFound, Message: "users cannot log in with an identity provider here: security.oidc is not configured; log in with a token"}
	errLogins  = &rest.Error{Status: http.StatusTooManyRequests, Retry: true, After: time.Second, Message: "there are too many logins from this address; retry in a few seconds"}
)

// admitLogin returns an error if an identity provider is not configured, or if the address of the
// client has started too many logins.
func (s *Server) admitLogin(c echo.Context, configured bool) error {
	if !configured {
		return errNoLogin
	}
	if exceeded, _ := s.logins.Admit(c.Request()); exceeded != "" {
		return errLogins
	}
	return nil
}

func (s *Server) browsersLogIn() bool { return s.cfg.Login != nil && s.cfg.Login.Origin() != "" }

// startLogin sends a browser to the identity provider.
func (s *Server) startLogin(c echo.Context) error {
	err := s.admitLogin(c, s.browsersLogIn())
	if err != nil {
		return s.loginFailed(c, err)
	}
	address, attempt, err := s.cfg.Login.Begin(c.Request().Context(), c.QueryParam("return"), c.QueryParam(chooseParameter) != "")
	if err != nil {
		return s.loginFailed(c, err)
	}
	// The provider sends the browser back from another site, so the cookie cannot be strict.
	s.setCookie(c, access.LoginCookie, attempt.Encode(), loginTimeout, http.SameSiteLaxMode)
	return redirect(c, address)
}

// finishLogin creates the session of a user after the identity provider has redirected the browser
// back.
func (s *Server) finishLogin(c echo.Context) error {
	if err := s.admitLogin(c, s.browsersLogIn()); err != nil {
		return s.loginFailed(c, err)
	}
	text := ""
	if cookie, err := c.Cookie(s.cfg.Authenticator.Sessions.Cookie(access.LoginCookie)); err == nil {
		text = cookie.Value
	}
	s.setCookie(c, access.LoginCookie, "", -1, http.SameSiteLaxMode) // each attempt counts once
	attempt, err := oidc.ParseAttempt(text)
	if err != nil {
		return s.loginRefused(c, err)
	}
	account, err := s.cfg.Login.Finish(c.Request().Context(), attempt, c.QueryParams())
	if err != nil {
		return s.loginRefused(c, err)
	}
	secret, _, err := s.createSession(c, account)
	if err != nil {
		return s.loginFailed(c, err)
	}
	s.setCookie(c, access.SessionCookie, secret.Text, s.cfg.SessionLifetime, http.SameSiteStrictMode)
	return redirect(c, attempt.Return)
}

// loginRefused records a refused login, and shows why.
func (s *Server) loginRefused(c echo.Context, err error) error {
	s.recordRefusedLogin(c, err)
	return s.loginFailed(c, err)
}

// exchangeRequest is the body of POST /login/token.
type exchangeRequest struct {
	IDToken string `json:"id_token"`
}

// sessionView is a new session with its token, which is shown only once.
type sessionView struct {
	Token     string         `json:"token"`
	Name      string         `json:"name"`
	Roles     []access.Role  `json:"roles"`
	ExpiresAt rest.Timestamp `json:"expires_at"`
}

// exchangeToken creates the session of a user of the command line.
func (s *Server) exchangeToken(c echo.Context) error {
	var r exchangeRequest
	if err := s.cfg.Bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	if err := s.admitLogin(c, s.cfg.Login != nil); err != nil {
		return err
	}
	account, err := s.cfg.Login.Verify(c.Request().Context(), r.IDToken)
	if err != nil {
		s.recordRefusedLogin(c, err)
		if f := loginFailure(err); f != nil {
			return f
		}
		return err
	}
	secret, expires, err := s.createSession(c, account)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return rest.Respond(c, http.StatusCreated, sessionView{secret.Text, account.Name, account.Roles, rest.TimestampOf(expires)})
}

// createSession creates a session, even if the client already has one, and records the login in the
// audit log.
func (s *Server) createSession(c echo.Context, account *oidc.Account) (access.Secret, time.Time, error) {
	action := s.loginAction(c)
	action.Principal = account.Name
	secret := access.NewSecret()
	action.Token = secret.ID
	token := metadata.Token{
		ID: secret.ID, Name: account.Name, Hash: secret.Hash[:], CreatedBy: s.cfg.Login.Issuer(), Session: true,
		ExpiresAt: s.cfg.Now().Add(s.cfg.SessionLifetime).Truncate(time.Millisecond).UTC(),
	}
	for _, role := range account.Roles {
		token.Roles = append(token.Roles, string(role))
	}
	ctx, _ := metadata.WithAction(c.Request().Context(), action)
	if _, err := s.registry.CreateToken(ctx, token); err != nil {
		return access.Secret{}, time.Time{}, tokenError(err)
	}
	return secret, token.ExpiresAt, nil
}

// loginAction is the audit record of a login. Its query contains a code of the provider, which the
// record must not contain.
func (s *Server) loginAction(c echo.Context) metadata.Action {
	r := c.Request()
	return metadata.Action{Address: rest.RemoteAddress(r), Node: s.cfg.Node, Action: r.Method + " " + c.Path(), Object: c.Path()}
}

// recordRefusedLogin adds an audit record for a login that was refused, at a bounded rate.
func (s *Server) recordRefusedLogin(c echo.Context, err error) {
	refused, ok := errors.AsType[*oidc.RefusedError](err)
	if !ok {
		return
	}
	s.log.Info("login refused", "account", refused.Account, "address", rest.RemoteAddress(c.Request()), "reason", refused.Message)
	action := s.loginAction(c)
	action.Principal, action.Status, action.Outcome = refused.Account, uint32(loginFailure(err).Status), refused.Message
	s.cfg.RecordRejected(c, action)
}

// loggedOut is the response to a logout.
type loggedOut struct {
	// Revoked reports that the client had a session.
	Revoked bool `json:"revoked"`
	// LogoutURL is the page of the identity provider at which a user can end the session there, too;
	// empty if the provider announces none.
	LogoutURL string `json:"logout_url,omitempty"`
}

// logout revokes the session of the client, if it has one, and removes its cookie.
func (s *Server) logout(c echo.Context) error {
	ctx := c.Request().Context()
	revoked := false
	if t, known := s.registry.Token(access.From(ctx).Token); known && t.Session {
		action := s.loginAction(c)
		action.Principal, action.Token = t.Name, t.ID
		ctx, _ := metadata.WithAction(ctx, action)
		if _, err := s.registry.RevokeToken(ctx, t.ID); err != nil && !errors.Is(err, metadata.ErrTokenNotFound) {
			return tokenError(err)
		}
		revoked = true
	}
	if sessions := s.cfg.Authenticator.Sessions; sessions != nil && sessions.OwnPage(c.Request()) {
		s.setCookie(c, access.SessionCookie, "", -1, http.SameSiteStrictMode)
	}
	return rest.Respond(c, http.StatusOK, loggedOut{revoked, s.providerLogout(c, revoked)})
}

// providerLogout returns the page of the identity provider at which a user whose session was revoked
// logs out there.
func (s *Server) providerLogout(c echo.Context, revoked bool) string {
	p := s.cfg.Login
	switch {
	case !revoked || p == nil:
		return ""
	case access.Bearer(c.Request()) == "":
		return p.LogoutPage(c.Request().Context(), p.ClientID())
	}
	return p.LogoutPage(c.Request().Context(), p.CLIClientID())
}

// setCookie sets a cookie, which scripts cannot read; a negative lifetime removes it.
func (s *Server) setCookie(c echo.Context, name, value string, lifetime time.Duration, site http.SameSite) {
	sessions := s.cfg.Authenticator.Sessions
	age := int(lifetime / time.Second)
	if lifetime < 0 {
		age = -1
	}
	c.SetCookie(&http.Cookie{
		Name: sessions.Cookie(name), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: sessions.Secure, SameSite: site,
	})
}

func redirect(c echo.Context, address string) error {
	header := c.Response().Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, address)
}

// retryAddress is the link of a page that reports a failed login. It lets the user choose an account:
// otherwise the provider could log in the refused one again without a prompt.
func retryAddress(c echo.Context) string {
	return startPath + "?" + url.Values{"return": {oidc.LocalPage(c.QueryParam("return"))}, chooseParameter: {"account"}}.Encode()
}
