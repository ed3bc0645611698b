package oidc

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"platform/internal/access"
	"platform/internal/access/jwt"
)

// CallbackPath is the path of the redirect URI, below the external URL.
const CallbackPath = "/login/callback"

// Config configures a Provider.
type Config struct {
	// Issuer is the URL of the identity provider.
	Issuer string
	// ClientID is the client of logins in a browser; ClientSecret is empty for a public client.
	ClientID, ClientSecret string
	// CLIClientID is the public client of the command line; empty: it cannot log in.
	CLIClientID string
	// ExternalURL is the address under which browsers reach the server.
	ExternalURL string
	// Scopes are requested in addition to openid.
	Scopes []string
	// SubjectClaim, RolesClaim and Roles are those of access.NewClaims.
	SubjectClaim, RolesClaim string
	Roles                    map[string]string
	// Transport sends the requests to the provider; the default is http.DefaultTransport.
	Transport http.RoundTripper
	// now is the clock; the default is time.Now.
	now func() time.Time
	// Log gets why requests to the provider failed; none by default.
	Log *slog.Logger
}

// Provider is an identity provider at which users log in.
type Provider struct {
	cfg      Config
	external *url.URL
	claims   *access.Claims
	client   *http.Client
	found    discovery
}

// New checks a configuration. It does not connect.
func New(cfg Config) (*Provider, error) {
	if cfg.now == nil {
		cfg.now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	if !access.Confidential(cfg.Issuer) {
		return nil, fmt.Errorf("issuer: %q is not an address that begins with https://", cfg.Issuer)
	}
	if cfg.ClientID == "" && cfg.CLIClientID == "" {
		return nil, errors.New("client-id or cli-client-id is required: the name under which the provider knows this server")
	}
	p := &Provider{cfg: cfg}
	if cfg.ClientID != "" {
		external, err := externalURL(cfg.ExternalURL)
		if err != nil {
			return nil, err
		}
		p.external = external
	}
	var err error
	if p.claims, err = access.NewClaims(cfg.SubjectClaim, cfg.RolesClaim, cfg.Roles); err != nil {
		return nil, err
	}
	p.client = &http.Client{
		Timeout:       requestTimeout,
		Transport:     &transport{reads: jwt.NewTransport(cfg.Transport, cfg.now, cfg.Log), others: cfg.Transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	p.found.provider = p
	return p, nil
}

// externalURL checks the address of the server: cookies of sessions must not be sent in clear over a
// network.
func externalURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || !access.Confidential(text) || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("external-url: %q is not the address of the admin API in a browser, such as https://platform.example.com, without a path; http:// only with localhost", text)
	}
	return u, nil
}

// Issuer is the URL of the provider.
func (p *Provider) Issuer() string { return p.cfg.Issuer }

// ClientID is the client of browsers; empty if they cannot log in.
func (p *Provider) ClientID() string { return p.cfg.ClientID }

// CLIClientID is the client of the command line; empty if it cannot log in.
func (p *Provider) CLIClientID() string { return p.cfg.CLIClientID }

// Origin is the origin of the pages of the server in a browser; empty if browsers cannot log in.
func (p *Provider) Origin() string {
	if p.external == nil {
		return ""
	}
	return p.external.String()
}

// Secure reports whether browsers reach the server by TLS only.
func (p *Provider) Secure() bool { return p.external != nil && p.external.Scheme == "https" }

// Scopes are those that clients request.
func (p *Provider) Scopes() []string {
	scopes := []string{oidc.ScopeOpenID}
	for _, scope := range p.cfg.Scopes {
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// transport repeats responses to reads, so that clients cannot make the server flood the provider.
type transport struct{ reads, others http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return t.reads.RoundTrip(r)
	}
	return t.others.RoundTrip(r)
}
