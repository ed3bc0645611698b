package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"platform/internal/access"
	"platform/internal/access/jwt"
)

const (
	// requestTimeout bounds a request to the provider.
	requestTimeout = 10 * time.Second
	// discoveryAge is how long a discovery document is used. An older one remains in use while the
	// provider does not respond.
	discoveryAge = time.Hour
)

// ErrUnavailable is wrapped by errors of logins that failed because the provider did not respond as
// expected.
var ErrUnavailable = errors.New("the identity provider is not available")

// discovery holds what the discovery document of the provider says.
type discovery struct {
	provider *Provider

	mu   sync.Mutex // covers the fields below
	last *discovered
	read time.Time
}

type discovered struct {
	endpoint oauth2.Endpoint
	keys     oidc.KeySet
	// endSession is the page at which users log out; empty if the provider has none.
	endSession string
	// namesIssuer reports that responses to logins contain the issuer (RFC 9207).
	namesIssuer bool
}

// get returns the discovery document, which it reads if it is unknown or old.
func (d *discovery) get(ctx context.Context) (*discovered, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.provider.cfg.now()
	if d.last != nil && now.Sub(d.read) < discoveryAge {
		return d.last, nil
	}
	found, err := d.provider.discover(context.WithoutCancel(ctx), d.provider.client)
	if err != nil && d.last == nil {
		return nil, err
	}
	if err == nil {
		d.last, d.read = found, now
	}
	return d.last, nil
}

// Check reads the discovery document, so that a wrong address is reported before a user logs in. A failure does not
// delay the next request to the provider, which may start at the same time as the server.
func (p *Provider) Check(ctx context.Context) error {
	direct := *p.client
	direct.Transport = p.cfg.Transport
	_, err := p.discover(ctx, &direct)
	return err
}

// discover reads the discovery document with a client.
func (p *Provider) discover(ctx context.Context, client *http.Client) (*discovered, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), p.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: read the discovery document of %s: %w", ErrUnavailable, p.cfg.Issuer, err)
	}
	var document struct {
		Keys        string   `json:"jwks_uri"`
		EndSession  string   `json:"end_session_endpoint"`
		NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
		AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, fmt.Errorf("%w: discovery document of %s: %w", ErrUnavailable, p.cfg.Issuer, err)
	}
	d := &discovered{endpoint: provider.Endpoint(), keys: oidc.NewRemoteKeySet(oidc.ClientContext(ctx, p.client), document.Keys), endSession: document.EndSession, namesIssuer: document.NamesIssuer}
	addresses := []string{d.endpoint.AuthURL, d.endpoint.TokenURL, document.Keys}
	if d.endSession != "" {
		addresses = append(addresses, d.endSession)
	}
	for _, address := range addresses {
		if !access.Confidential(address) {
			return nil, fmt.Errorf("%w: discovery document of %s: %q is not an address that begins with https://", ErrUnavailable, p.cfg.Issuer, address)
		}
	}
	d.endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of the standard
	if p.cfg.ClientSecret == "" || len(document.AuthMethods) > 0 && !slices.Contains(document.AuthMethods, "client_secret_basic") {
		d.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return d, nil
}

// verify verifies an ID token for a client: its signature, issuer, audience and validity.
func (p *Provider) verify(ctx context.Context, found *discovered, client, text string) (*oidc.IDToken, error) {
	keys := &reportingKeys{KeySet: found.keys}
	settings := &oidc.Config{
		ClientID: client, SupportedSigningAlgs: jwt.Algorithms,
		Now: func() time.Time { return p.cfg.now().Add(-maxSkew) },
	}
	token, err := oidc.NewVerifier(p.cfg.Issuer, keys, settings).Verify(ctx, text)
	if request := new(url.Error); errors.As(keys.err, &request) { // says nothing about the token
		return nil, fmt.Errorf("%w: its keys cannot be read", ErrUnavailable)
	}
	if err != nil {
		return nil, p.invalid(err)
	}
	return token, nil
}

// reportingKeys keeps the error of a verification, which verifiers report as text.
type reportingKeys struct {
	oidc.KeySet
	err error
}

// VerifySignature implements oidc.KeySet.
func (k *reportingKeys) VerifySignature(ctx context.Context, text string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, text)
	k.err = err
	return payload, err
}
