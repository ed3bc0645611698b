package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/access"
)

// identityProvider is the OpenID Connect provider at which the user of the command line logs in.
type identityProvider struct {
	oauth      oauth2.Config
	revocation string // endpoint; may be empty
	client     *http.Client
}

// provider reads the discovery document of a provider.
func (a *App) provider(ctx context.Context, issuer, clientID string, scopes []string) (*identityProvider, error) {
	if !access.Confidential(issuer) {
		return nil, fmt.Errorf("the address of the identity provider %q does not begin with https://", term.Clean(issuer))
	}
	p := &identityProvider{client: a.providerClient()}
	found, err := oidc.NewProvider(p.context(ctx), issuer)
	if err != nil {
		return nil, fmt.Errorf("read the discovery document of the identity provider: %w", err)
	}
	var document struct {
		Scopes     []string `json:"scopes_supported"`
		Revocation string   `json:"revocation_endpoint"`
	}
	if err := found.Claims(&document); err != nil {
		return nil, fmt.Errorf("read the discovery document of the identity provider: %w", err)
	}
	if slices.Contains(document.Scopes, oidc.ScopeOfflineAccess) && !slices.Contains(scopes, oidc.ScopeOfflineAccess) {
		scopes = append(scopes, oidc.ScopeOfflineAccess) // for a refresh token
	}
	endpoint := found.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams // the client is public
	for _, address := range []string{endpoint.TokenURL, endpoint.DeviceAuthURL, document.Revocation} {
		if address != "" && !access.Confidential(address) {
			return nil, fmt.Errorf("the identity provider names the address %q, which does not begin with https://", term.Clean(address))
		}
	}
	p.oauth, p.revocation = oauth2.Config{ClientID: clientID, Endpoint: endpoint, Scopes: scopes}, document.Revocation
	return p, nil
}

// providerClient verifies certificates like the client of the server does.
func (a *App) providerClient() *http.Client {
	return &http.Client{
		Timeout: time.Duration(a.options.request),
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: time.Duration(a.options.connect)}).DialContext,
			TLSClientConfig: &tls.Config{RootCAs: a.authorities, InsecureSkipVerify: a.options.insecure}, //nolint:gosec // requested by the user
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (p *identityProvider) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// Seconds between requests for the result of a login. The provider determines them, within bounds.
const minPoll, defaultPoll, maxPoll = 1, 5, 60

// authorize lets the user log in in a browser, on any machine, with the device flow (RFC 8628).
func (p *identityProvider) authorize(ctx context.Context, a *App) (*oauth2.Token, error) {
	if p.oauth.Endpoint.DeviceAuthURL == "" {
		return nil, errors.New("the identity provider does not offer the device flow; use a token: platform login --token-file -")
	}
	device, err := p.oauth.DeviceAuth(p.context(ctx))
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok && (failed.ErrorCode == "invalid_client" || failed.ErrorCode == "unauthorized_client") {
		return nil, WithHint(
			fmt.Errorf("the identity provider does not accept the client %q for the device flow: %s", p.oauth.ClientID, cmp.Or(failed.ErrorDescription, failed.ErrorCode)),
			"security.oidc.cli-client-id of the server must name a public client of the provider with the device flow. Until then, use a token: `platform login --token-file -`.")
	}
	if err != nil {
		return nil, fmt.Errorf("begin the login with the identity provider: %w", err)
	}
	a.Hint.Printf("Open %s in a browser and enter the code %s\n", term.Clean(device.VerificationURI), a.Hint.Bold(term.Clean(device.UserCode)))
	if device.VerificationURIComplete != "" {
		a.Hint.Printf("or open %s\n", term.Clean(device.VerificationURIComplete))
	}
	device.Interval = min(max(cmp.Or(device.Interval, defaultPoll), minPoll), maxPoll)
	tokens, err := p.oauth.DeviceAccessToken(p.context(ctx), device)
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		switch failed.ErrorCode {
		case "access_denied":
			return nil, errors.New("the login was refused in the browser")
		case "expired_token":
			return nil, errors.New("the code has expired; run platform login again")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("wait for the login in the browser: %w", err)
	}
	return tokens, nil
}

// refresh gets a new ID token without the user.
func (p *identityProvider) refresh(ctx context.Context, token string) (*oauth2.Token, error) {
	return p.oauth.TokenSource(p.context(ctx), &oauth2.Token{RefreshToken: token}).Token()
}

// revoke makes a refresh token invalid (RFC 7009).
func (p *identityProvider) revoke(ctx context.Context, token string) error {
	if p.revocation == "" {
		return errors.New("the identity provider does not revoke tokens")
	}
	form := url.Values{"token": {token}, "token_type_hint": {"refresh_token"}, "client_id": {p.oauth.ClientID}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the identity provider responded with status %d", response.StatusCode)
	}
	return nil
}

// exchange gets a session of the server for the ID token among tokens.
func (a *App) exchange(ctx context.Context, tokens *oauth2.Token) (client.Session, error) {
	text, _ := tokens.Extra("id_token").(string)
	if text == "" {
		return client.Session{}, errors.New("the response of the identity provider has no ID token")
	}
	return a.NewClient("", 0).Exchange(ctx, text)
}
