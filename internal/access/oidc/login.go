package oidc

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Attempt is a login in progress. The browser keeps it in a cookie: it proves that the response of
// the provider belongs to a login that was started in the same browser.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
	Return   string `json:"return"`   // the page to show after the login
}

// Encode returns the value of the cookie.
func (a *Attempt) Encode() string {
	data, _ := json.Marshal(a) // strings only
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParseAttempt decodes the value of the cookie. Its content comes from the browser.
func ParseAttempt(text string) (Attempt, error) {
	var a Attempt
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil || a.State == "" || a.Nonce == "" || a.Verifier == "" {
		return Attempt{}, errNotStarted
	}
	a.Return = LocalPage(a.Return)
	return a, nil
}

// homePage is where users arrive after a login without another page.
const homePage = "/ui/"

// maxPageBytes bounds the address of a page. It is in the cookie of an attempt, and browsers ignore
// cookies above 4096 bytes.
const maxPageBytes = 2048

// LocalPage returns the page of the web UI that a text names, and otherwise the first page: a link
// to a login must not lead to another site.
func LocalPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxPageBytes || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil || strings.ContainsRune(text, '\\') ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) || !strings.HasPrefix(text, homePage) ||
		!strings.HasPrefix(path.Clean(u.Path)+"/", homePage) {
		return homePage
	}
	return text
}

// RefusedError is the reason for refusing a login that users can act on.
type RefusedError struct {
	Message string
	// Account is the name of the account that was refused; empty if it is not known.
	Account string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

var errNotStarted = &RefusedError{Message: "this login was not started in this browser, or it has expired or ended; start again"}

func (p *Provider) oauth(found *discovered) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: found.endpoint,
		RedirectURL: p.external.String() + CallbackPath, Scopes: p.Scopes(),
	}
}

// Begin starts a login in a browser. It returns the page of the provider to go to. With choose, the
// provider offers other accounts than the one with which the user is logged in there.
func (p *Provider) Begin(ctx context.Context, returnTo string, choose bool) (address string, a Attempt, err error) {
	found, err := p.found.get(ctx)
	if err != nil {
		return "", Attempt{}, err
	}
	// Verifiers of PKCE have 256 random bits, which suit the other values as well.
	a = Attempt{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), Return: LocalPage(returnTo)}
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if choose {
		options = append(options, oauth2.SetAuthURLParam("prompt", "select_account"))
	}
	return p.oauth(found).AuthCodeURL(a.State, options...), a, nil
}

// Finish completes a login with the query that the provider sent the browser back with. Errors
// wrap a *RefusedError or ErrUnavailable.
func (p *Provider) Finish(ctx context.Context, a Attempt, query url.Values) (*Account, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1 {
		return nil, errNotStarted
	}
	found, err := p.found.get(ctx)
	if err != nil {
		return nil, err
	}
	if issuer := query.Get("iss"); issuer != p.cfg.Issuer && (issuer != "" || found.namesIssuer) {
		return nil, &RefusedError{Message: "the response is not one of the configured identity provider; start again"}
	}
	if code := query.Get("error"); code != "" {
		p.cfg.Log.Info("identity provider refused a login", "error", shortened(code), "description", shortened(query.Get("error_description")))
		return nil, refusalOf(code)
	}
	text, err := p.redeem(ctx, found, query.Get("code"), a.Verifier)
	if err != nil {
		return nil, err
	}
	token, err := p.verify(ctx, found, p.cfg.ClientID, text)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return nil, p.invalid(errors.New("its nonce is not that of this login"))
	}
	return p.account(token, p.cfg.ClientID)
}

// LogoutPage returns the page of the provider at which a user ends the session there, as a client; empty
// if the provider announces none, or does not respond.
func (p *Provider) LogoutPage(ctx context.Context, client string) string {
	found, err := p.found.get(ctx)
	if err != nil || found.endSession == "" {
		return ""
	}
	u, err := url.Parse(found.endSession)
	if err != nil {
		return ""
	}
	query := u.Query()
	query.Set("client_id", client)
	u.RawQuery = query.Encode()
	return u.String()
}

// refusalOf explains an error code of the provider.
func refusalOf(code string) error {
	switch code {
	case "access_denied":
		return &RefusedError{Message: "the login was cancelled, or the identity provider does not permit it for this account"}
	case "temporarily_unavailable", "server_error":
		return fmt.Errorf("%w: it responded with an error", ErrUnavailable)
	}
	return &RefusedError{Message: "the identity provider refused the login; the log of the server has the reason"}
}

// describe returns what to log about a failed exchange of a code. The body of the response is not
// part of it: it can contain parts of the request, such as the code and the secret of the client.
func describe(err error) string {
	e, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return shortened(err.Error())
	case e.ErrorCode == "":
		return "status " + e.Response.Status
	}
	return shortened(fmt.Sprintf("status %s: %s %s", e.Response.Status, e.ErrorCode, e.ErrorDescription))
}

// maxLogged bounds texts of clients and providers in the log.
const maxLogged = 300

func shortened(text string) string {
	if len(text) > maxLogged {
		return text[:maxLogged] + "…"
	}
	return text
}

// redeem exchanges a code for an ID token.
func (p *Provider) redeem(ctx context.Context, found *discovered, code, verifier string) (idToken string, err error) {
	if code == "" {
		return "", &RefusedError{Message: "the response of the identity provider has no code; start again"}
	}
	tokens, err := p.oauth(found).Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(verifier))
	if err != nil {
		p.cfg.Log.Warn("code of a login not accepted by the identity provider", "err", describe(err))
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.ErrorCode == "invalid_grant" && e.Response.StatusCode < http.StatusInternalServerError {
			return "", &RefusedError{Message: "the code of this login was used already or has expired; start again"}
		}
		return "", fmt.Errorf("%w: it did not exchange the code of the login for a token", ErrUnavailable)
	}
	idToken, _ = tokens.Extra("id_token").(string)
	if idToken == "" {
		return "", fmt.Errorf("%w: its response has no ID token", ErrUnavailable)
	}
	return idToken, nil
}
