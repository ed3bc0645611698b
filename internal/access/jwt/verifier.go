package jwt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"platform/internal/access"
)

// Config configures a Verifier.
type Config struct {
	// Issuer is the URL of the identity provider; Audience is what tokens must be for.
	Issuer, Audience string
	// KeysURL is where the keys of the issuer are; empty: as its discovery document says.
	KeysURL string
	// SubjectClaim names the client; sub. RolesClaim is the claim, or path of claims with
	// dots, whose values Roles maps to names of roles, separated by commas.
	SubjectClaim, RolesClaim string
	Roles                    map[string]string
	// Transport sends the requests to the issuer; the default is http.DefaultTransport.
	Transport http.RoundTripper
	// now is the clock; the default is time.Now.
	now func() time.Time
	// Log gets why keys of the issuer cannot be read; none by default.
	Log *slog.Logger
}

const (
	// fetchTimeout bounds a request to the issuer.
	fetchTimeout = 10 * time.Second
	// retryInterval is the minimum interval between requests to the issuer, whatever tokens clients
	// send.
	retryInterval = 10 * time.Second
	maxTokenBytes = 16 << 10
)

// Algorithms are asymmetric: with a symmetric one, every verifier could also sign.
var Algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// Verifier verifies tokens. It reads the keys of the issuer when the first token arrives.
type Verifier struct {
	cfg    Config
	claims *access.Claims
	client *http.Client

	mu       sync.Mutex // covers the fields below
	verifier *oidc.IDTokenVerifier
	failed   time.Time // of the last attempt to find the keys
	err      error
}

// New checks a configuration.
func New(cfg Config) (*Verifier, error) {
	v := &Verifier{cfg: cfg}
	if v.cfg.now == nil {
		v.cfg.now = time.Now
	}
	if v.cfg.Log == nil {
		v.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Audience == "" || cfg.RolesClaim == "" || len(cfg.Roles) == 0 {
		return nil, errors.New("audience, roles-claim and roles are required: without them every account of the issuer could use this server")
	}
	for _, address := range []string{cfg.Issuer, cfg.KeysURL} {
		if address != "" && !access.Confidential(address) {
			return nil, fmt.Errorf("%q is not an address that begins with https://", address)
		}
	}
	var err error
	if v.claims, err = access.NewClaims(cfg.SubjectClaim, cfg.RolesClaim, cfg.Roles); err != nil {
		return nil, err
	}
	v.client = &http.Client{
		Timeout: fetchTimeout, Transport: NewTransport(cfg.Transport, v.cfg.now, v.cfg.Log),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return v, nil
}

// Principal returns the principal of a token; nil if the token is not valid.
func (v *Verifier) Principal(ctx context.Context, text string) *access.Principal {
	if len(text) > maxTokenBytes || strings.Count(text, ".") != 2 {
		return nil
	}
	verifier, err := v.ready(ctx)
	if err != nil {
		return nil
	}
	token, err := verifier.Verify(oidc.ClientContext(ctx, v.client), text)
	if err != nil {
		return nil
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil
	}
	name, roles := v.claims.Subject(claims), v.claims.Roles(claims)
	if name == "" || len(roles) == 0 || v.claims.Unverified(claims) {
		return nil
	}
	return access.NewJWT(name, roles)
}

// ready finds the keys of the issuer.
func (v *Verifier) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verifier != nil {
		return v.verifier, nil
	}
	if v.err != nil && v.cfg.now().Sub(v.failed) < retryInterval {
		return nil, v.err
	}
	settings := &oidc.Config{ClientID: v.cfg.Audience, SupportedSigningAlgs: Algorithms, Now: v.cfg.now}
	address, err := v.keysURL(ctx)
	if err != nil {
		v.failed, v.err = v.cfg.now(), fmt.Errorf("read the discovery document of %s: %w", v.cfg.Issuer, err)
		if request := new(url.Error); !errors.As(err, &request) { // those are logged by the transport
			v.cfg.Log.Warn("discovery document of the identity provider is not valid; its tokens are rejected", "issuer", v.cfg.Issuer, "err", err, "retry_after", retryInterval)
		}
		return nil, v.err
	}
	v.verifier, v.err = oidc.NewVerifier(v.cfg.Issuer, newKeys(v.client, address, v.cfg.now), settings), nil
	return v.verifier, nil
}

// keysURL returns where the keys of the issuer are.
func (v *Verifier) keysURL(ctx context.Context) (string, error) {
	if v.cfg.KeysURL != "" {
		return v.cfg.KeysURL, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), v.client), v.cfg.Issuer)
	if err != nil {
		return "", err
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return "", err
	}
	if !access.Confidential(document.Keys) {
		return "", fmt.Errorf("jwks_uri: %q is not an address that begins with https://", document.Keys)
	}
	return document.Keys, nil
}
