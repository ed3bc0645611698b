package oidc

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/access/jwttest"
	"platform/internal/egress"
)

// keyID is the ID of the key of an issuer.
const keyID = "k1"

// issuer is an identity provider whose tokens a test determines.
type issuer struct {
	*httptest.Server
	key       *ecdsa.PrivateKey
	now       time.Time
	document  map[string]any // changes of the discovery document
	challenge string         // of the login in progress
	token     func() string  // the ID token
	status    int            // of the token endpoint
	echoes    bool           // it responds with the request
	redeemed  atomic.Int64
	down      atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i := &issuer{key: key, now: time.UnixMilli(1_700_000_000_000), status: http.StatusOK, document: map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		document := map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token"}
		for name, value := range i.document {
			document[name] = value
		}
		_ = json.NewEncoder(w).Encode(document)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: keyID, Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", i.exchange)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) exchange(w http.ResponseWriter, r *http.Request) {
	i.redeemed.Add(1)
	w.Header().Set("Content-Type", "application/json")
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case i.echoes:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(i.status)
		_, _ = fmt.Fprintf(w, "invalid request: %s %s %s", r.Header.Get("Authorization"), r.PostForm.Encode(), strings.Repeat("x", 100_000))
	case i.status >= 300 && i.status < 400:
		w.Header().Set("Location", i.document["redirect"].(string))
		w.WriteHeader(i.status)
	case i.status != http.StatusOK:
		w.WriteHeader(i.status)
	case r.FormValue("code") != "code" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.challenge:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.token()})
	}
}

// claims of a valid token for a client, with changes.
func (i *issuer) claims(client, nonce string, changes map[string]any) map[string]any {
	return jwttest.Change(map[string]any{
		"iss": i.URL, "aud": client, "sub": "ada", "exp": i.now.Add(time.Minute).Unix(), "iat": i.now.Unix(), "nonce": nonce, "groups": []string{"ops"},
	}, changes)
}

func (i *issuer) sign(t *testing.T, claims map[string]any) string {
	return jwttest.Sign(t, jose.ES256, i.key, keyID, claims)
}

func (i *issuer) config() Config {
	return Config{
		Issuer: i.URL, ClientID: "ui", CLIClientID: "cli", ExternalURL: "https://platform.example.com", RolesClaim: "groups",
		Roles: map[string]string{"ops": "operator, reader", "a@example.com": "admin"}, now: func() time.Time { return i.now },
	}
}

func (i *issuer) provider(t *testing.T, change func(*Config)) *Provider {
	cfg := i.config()
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	require.NoError(t, err)
	return p
}

// begin starts a login, and returns the attempt as the browser sends it back.
func (i *issuer) begin(t *testing.T, p *Provider) (Attempt, url.Values) {
	t.Helper()
	address, attempt, err := p.Begin(t.Context(), "/ui/jobs", false)
	require.NoError(t, err)
	u, err := url.Parse(address)
	require.NoError(t, err)
	q := u.Query()
	i.challenge = q.Get("code_challenge")
	i.token = func() string { return i.sign(t, i.claims("ui", q.Get("nonce"), nil)) }
	attempt, err = ParseAttempt(attempt.Encode())
	require.NoError(t, err)
	return attempt, url.Values{"state": {q.Get("state")}, "code": {"code"}}
}

func requireRefused(t *testing.T, err error, account string, message ...any) {
	t.Helper()
	refused, ok := errors.AsType[*RefusedError](err)
	require.True(t, ok, "%v: %v", err, message)
	require.Equal(t, account, refused.Account, message...)
}

func TestAUserLogsIn(t *testing.T) {
	i := newIssuer(t)
	p := i.provider(t, func(c *Config) { c.Scopes = []string{"groups"} })
	address, _, err := p.Begin(t.Context(), "", false)
	require.NoError(t, err)
	q, err := url.Parse(address)
	require.NoError(t, err)
	for name, want := range map[string]string{
		"client_id": "ui", "response_type": "code", "scope": "openid groups", "code_challenge_method": "S256", "redirect_uri": "https://platform.example.com/login/callback",
	} {
		require.Equal(t, want, q.Query().Get(name), name)
	}
	attempt, query := i.begin(t, p)
	account, err := p.Finish(t.Context(), attempt, query)
	require.NoError(t, err)
	require.Equal(t, "oidc:ada", account.Name)
	require.ElementsMatch(t, []access.Role{access.Operator, access.Reader}, account.Roles)
	require.Equal(t, "/ui/jobs", attempt.Return)
}

// google sends the requests to the addresses of Google to the issuer of a test.
type google struct{ to *issuer }

// RoundTrip implements http.RoundTripper.
func (g google) RoundTrip(r *http.Request) (*http.Response, error) {
	path := map[string]string{
		"accounts.google.com/.well-known/openid-configuration": "/.well-known/openid-configuration",
		"www.googleapis.com/oauth2/v3/certs":                   "/keys", "oauth2.googleapis.com/token": "/token",
	}[r.URL.Host+r.URL.Path]
	if path == "" || r.URL.Scheme != "https" {
		return nil, fmt.Errorf("unexpected request to %s", r.URL)
	}
	to := r.Clone(r.Context())
	to.URL.Scheme, to.URL.Host, to.URL.Path, to.Host = "http", g.to.Listener.Addr().String(), path, ""
	return http.DefaultTransport.RoundTrip(to)
}

// Google has several hosts, names itself without https:// in some tokens, and has no groups: roles depend
// on the address and on hd, the domain of an organization, which other accounts do not have.
func TestALoginWithGoogle(t *testing.T) {
	const issuer, client = "https://accounts.google.com", "123-abc.apps.googleusercontent.com"
	i := newIssuer(t)
	i.document = map[string]any{
		"issuer": issuer, "jwks_uri": "https://www.googleapis.com/oauth2/v3/certs", "token_endpoint": "https://oauth2.googleapis.com/token",
		"authorization_endpoint": "https://accounts.google.com/o/oauth2/v2/auth", "device_authorization_endpoint": "https://oauth2.googleapis.com/device/code",
		"token_endpoint_auth_methods_supported": []string{"client_secret_post", "client_secret_basic"},
	}
	p := i.provider(t, func(c *Config) {
		c.Issuer, c.ClientID, c.ClientSecret, c.CLIClientID, c.Transport = issuer, client, "secret", "", google{i}
		c.Scopes, c.SubjectClaim, c.RolesClaim = []string{"email"}, "email", "email, hd"
		c.Roles = map[string]string{"ada@example.com": "admin", "example.com": "viewer"}
	})
	for name, of := range map[string]struct {
		claims map[string]any
		roles  []access.Role // none: refused
	}{
		"an administrator":           {map[string]any{"email": "ada@example.com", "hd": "example.com"}, []access.Role{access.Admin, access.Viewer}},
		"another one of the domain":  {map[string]any{"email": "bob@example.com", "hd": "example.com"}, []access.Role{access.Viewer}},
		"an issuer without a scheme": {map[string]any{"iss": "accounts.google.com", "email": "bob@example.com", "hd": "example.com"}, []access.Role{access.Viewer}},
		"a private account":          {map[string]any{"email": "eve@gmail.com"}, nil},
		"an unverified address":      {map[string]any{"email": "ada@example.com", "email_verified": false}, nil},
		"another client":             {map[string]any{"email": "ada@example.com", "aud": "456.apps.googleusercontent.com"}, nil},
		"another issuer":             {map[string]any{"iss": "google.com", "email": "ada@example.com"}, nil},
	} {
		attempt, query := i.begin(t, p)
		query.Set("iss", issuer)
		claims := i.claims(client, attempt.Nonce, map[string]any{"iss": issuer, "azp": client, "sub": "110169484474386276334", "groups": nil, "email_verified": true})
		for claim, value := range of.claims {
			claims[claim] = value
		}
		i.token = func() string { return i.sign(t, claims) }
		account, err := p.Finish(t.Context(), attempt, query)
		if of.roles == nil {
			_, refused := errors.AsType[*RefusedError](err)
			require.True(t, refused, "%s: %v", name, err)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, "oidc:"+claims["email"].(string), account.Name, name)
		require.ElementsMatch(t, of.roles, account.Roles, name)
	}
}

func TestResponsesToOtherLoginsAreRefused(t *testing.T) {
	i := newIssuer(t)
	i.document["authorization_response_iss_parameter_supported"] = true
	p := i.provider(t, nil)
	for name, change := range map[string]func(*Attempt, url.Values){
		"no state":             func(_ *Attempt, q url.Values) { q.Del("state") },
		"wrong state":          func(_ *Attempt, q url.Values) { q.Set("state", "x") },
		"no attempt":           func(a *Attempt, q url.Values) { *a = Attempt{}; q.Set("state", "") },
		"attempt of another":   func(a *Attempt, _ url.Values) { *a, _ = i.begin(t, p) },
		"no issuer":            func(_ *Attempt, q url.Values) { q.Del("iss") },
		"mixed-up issuer":      func(_ *Attempt, q url.Values) { q.Set("iss", "https://evil.example") },
		"error":                func(_ *Attempt, q url.Values) { q.Set("error", "access_denied") },
		"no code":              func(_ *Attempt, q url.Values) { q.Del("code") },
		"code of another":      func(_ *Attempt, q url.Values) { q.Set("code", "other") },
		"another PKCE secret":  func(a *Attempt, _ url.Values) { a.Verifier = "x" },
		"nonce of the browser": func(a *Attempt, _ url.Values) { a.Nonce = "x" },
	} {
		attempt, query := i.begin(t, p)
		query.Set("iss", i.URL)
		before := i.redeemed.Load()
		change(&attempt, query)
		_, err := p.Finish(t.Context(), attempt, query)
		requireRefused(t, err, "", name)
		if strings.Contains(name, "state") || strings.Contains(name, "issuer") {
			require.Equal(t, before, i.redeemed.Load(), "the code is not sent: %s", name)
		}
	}
	for _, text := range []string{"", "x", "e30", base64.RawURLEncoding.EncodeToString([]byte(`{"state":"a"}`))} {
		_, err := ParseAttempt(text)
		requireRefused(t, err, "", text)
	}
}

// forgeries are ID tokens for a client that must not be accepted.
func (i *issuer) forgeries(t *testing.T, client, nonce string) map[string]string {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(i.key.Public())
	require.NoError(t, err)
	payload, err := json.Marshal(i.claims(client, nonce, nil))
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	forged := map[string]string{
		"another key":          jwttest.Sign(t, jose.ES256, other, keyID, i.claims(client, nonce, nil)),
		"public key as secret": jwttest.Sign(t, jose.HS256, public, keyID, i.claims(client, nonce, nil)),
		"unsigned":             encode([]byte(`{"alg":"none"}`)) + "." + encode(payload) + ".",
	}
	for name, changes := range map[string]map[string]any{
		"another issuer":       {"iss": "https://evil.example"},
		"another audience":     {"aud": "other"},
		"audience of the rest": {"aud": []string{client, "other"}},
		"another party":        {"aud": []string{client, "other"}, "azp": "other"},
		"expired":              {"exp": i.now.Add(-maxSkew - time.Second).Unix()},
		"never expires":        {"exp": nil},
		"of the future":        {"iat": i.now.Add(maxSkew + time.Second).Unix()},
		"old":                  {"iat": i.now.Add(-maxAge - time.Second).Unix()},
		"undated":              {"iat": nil},
		"no subject":           {"sub": nil},
	} {
		forged[name] = i.sign(t, i.claims(client, nonce, changes))
	}
	return forged
}

func TestForgedIDTokensAreRefused(t *testing.T) {
	i := newIssuer(t)
	p := i.provider(t, nil)
	attempt, query := i.begin(t, p)
	forged := i.forgeries(t, "ui", attempt.Nonce)
	forged["no nonce"] = i.sign(t, i.claims("ui", "", map[string]any{"nonce": nil}))
	forged["wrong nonce"] = i.sign(t, i.claims("ui", "x", nil))
	forged["of the command line"] = i.sign(t, i.claims("cli", attempt.Nonce, nil))
	for name, token := range forged {
		i.token = func() string { return token }
		_, err := p.Finish(t.Context(), attempt, query)
		requireRefused(t, err, "", name)
	}
	i.token = func() string {
		return i.sign(t, i.claims("ui", attempt.Nonce, map[string]any{"exp": i.now.Add(-maxSkew + time.Second).Unix()}))
	}
	_, err := p.Finish(t.Context(), attempt, query)
	require.NoError(t, err, "clocks may differ a little")

	forged = i.forgeries(t, "cli", "")
	forged["of the web UI"], forged["empty"], forged["garbage"] = i.sign(t, i.claims("ui", "", nil)), "", "a.b.c"
	forged["too long"] = strings.Repeat("a", maxTokenBytes) + ".b.c"
	for name, token := range forged {
		_, err := p.Verify(t.Context(), token)
		requireRefused(t, err, "", name)
	}
	account, err := p.Verify(t.Context(), i.sign(t, i.claims("cli", "", nil)))
	require.NoError(t, err)
	require.Equal(t, "oidc:ada", account.Name)
	_, err = i.provider(t, func(c *Config) { c.CLIClientID = "" }).Verify(t.Context(), i.sign(t, i.claims("", "", nil)))
	requireRefused(t, err, "")
}

func TestAccountsWithoutARoleAreRefused(t *testing.T) {
	i := newIssuer(t)
	p := i.provider(t, nil)
	for name, groups := range map[string]any{"none": nil, "unmapped": []string{"admin", "operator"}, "another type": map[string]any{"ops": true}} {
		_, err := p.Verify(t.Context(), i.sign(t, i.claims("cli", "", map[string]any{"groups": groups})))
		requireRefused(t, err, "oidc:ada", name)
		require.ErrorContains(t, err, "no role")
	}

	// The log says if the provider has sent none of the claims that determine the roles.
	var log bytes.Buffer
	p = i.provider(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	_, err := p.Verify(t.Context(), i.sign(t, i.claims("cli", "", map[string]any{"groups": []string{"other"}})))
	requireRefused(t, err, "oidc:ada", "unmapped")
	require.Empty(t, log.String())
	_, err = p.Verify(t.Context(), i.sign(t, i.claims("cli", "", map[string]any{"groups": nil})))
	requireRefused(t, err, "oidc:ada", "without the claim")
	require.Contains(t, log.String(), "account=oidc:ada roles_claim=groups")

	p = i.provider(t, func(c *Config) { c.RolesClaim = "email" })
	for _, verified := range []any{nil, false, "true"} {
		_, err := p.Verify(t.Context(), i.sign(t, i.claims("cli", "", map[string]any{"email": "a@example.com", "email_verified": verified})))
		requireRefused(t, err, "oidc:ada", verified)
	}
	_, err = p.Verify(t.Context(), i.sign(t, i.claims("cli", "", map[string]any{"email": "a@example.com", "email_verified": true})))
	require.NoError(t, err)
}

func TestAProviderThatFails(t *testing.T) {
	i := newIssuer(t)
	p := i.provider(t, nil)
	attempt, query := i.begin(t, p)
	for _, status := range []int{500, 503, 404, 401} {
		i.status = status
		_, err := p.Finish(t.Context(), attempt, query)
		require.ErrorIs(t, err, ErrUnavailable)
	}
	i.status = http.StatusOK
	i.token = func() string { return "" }
	_, err := p.Finish(t.Context(), attempt, query)
	require.ErrorIs(t, err, ErrUnavailable)

	i.down.Store(true)
	i.now = i.now.Add(2 * discoveryAge)
	_, _, err = p.Begin(t.Context(), "", false)
	require.NoError(t, err, "an old discovery document remains in use")
	_, err = p.Verify(t.Context(), i.sign(t, i.claims("cli", "", nil)))
	require.ErrorIs(t, err, ErrUnavailable, "the keys are unknown, so nothing can be said about the token")
	fresh := i.provider(t, nil)
	_, _, err = fresh.Begin(t.Context(), "", false)
	require.ErrorIs(t, err, ErrUnavailable)
	i.down.Store(false)
	_, _, err = fresh.Begin(t.Context(), "", false)
	require.ErrorIs(t, err, ErrUnavailable, "failures are repeated for a while")
	i.now = i.now.Add(time.Minute)
	_, _, err = fresh.Begin(t.Context(), "", false)
	require.NoError(t, err)
}

func TestAWrongIssuerIsFoundBeforeALogin(t *testing.T) {
	i := newIssuer(t)
	require.NoError(t, i.provider(t, nil).Check(t.Context()))
	p := i.provider(t, func(c *Config) { c.Issuer += "/" })
	err := p.Check(t.Context())
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "did not match the issuer")
}

func TestUsersLogInAsSoonAsAProviderHasStarted(t *testing.T) {
	i := newIssuer(t)
	p := i.provider(t, nil)
	i.down.Store(true)
	require.ErrorIs(t, p.Check(t.Context()), ErrUnavailable)
	i.down.Store(false)
	_, _, err := p.Begin(t.Context(), "", false)
	require.NoError(t, err)
}

func TestRedirectsOfAProviderAreNotFollowed(t *testing.T) {
	var reached atomic.Int64
	internal := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer internal.Close()
	i := newIssuer(t)
	p := i.provider(t, nil)
	attempt, query := i.begin(t, p)
	i.document["redirect"] = internal.URL
	for _, status := range []int{302, 307, 308} {
		i.status = status
		_, err := p.Finish(t.Context(), attempt, query)
		require.ErrorIs(t, err, ErrUnavailable)
	}
	for _, at := range []string{"/auth", "/keys"} { // a redirecting discovery document
		redirecting := httptest.NewServer(http.RedirectHandler(internal.URL+at, http.StatusFound))
		_, _, err := i.provider(t, func(c *Config) { c.Issuer = redirecting.URL }).Begin(t.Context(), "", false)
		require.ErrorIs(t, err, ErrUnavailable)
		redirecting.Close()
	}
	require.Zero(t, reached.Load())
}

func TestAddressesOfADiscoveryDocumentAreChecked(t *testing.T) {
	for name, changes := range map[string]map[string]any{
		"clear text":     {"token_endpoint": "http://idp.example/token"},
		"script":         {"authorization_endpoint": "javascript:alert(1)"},
		"another issuer": {"issuer": "https://evil.example"},
		"keys":           {"jwks_uri": "http://idp.example/keys"},
		"logout":         {"end_session_endpoint": "javascript:alert(1)"},
	} {
		i := newIssuer(t)
		i.document = changes
		_, _, err := i.provider(t, nil).Begin(t.Context(), "", false)
		require.ErrorIs(t, err, ErrUnavailable, name)
	}
	// The token endpoint is a metadata service: the guard refuses to connect.
	i := newIssuer(t)
	i.document = map[string]any{"token_endpoint": "https://169.254.169.254/token"}
	guard := new(egress.Policy).Dialer(time.Second)
	var dialled atomic.Int64
	p := i.provider(t, func(c *Config) {
		c.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := guard.DialContext(ctx, network, address)
			if errors.Is(err, egress.ErrForbidden) {
				dialled.Add(1)
			}
			return connection, err
		}}
	})
	attempt, query := i.begin(t, p)
	_, err := p.Finish(t.Context(), attempt, query)
	require.ErrorIs(t, err, ErrUnavailable)
	require.EqualValues(t, 1, dialled.Load())
}

func TestALoginReturnsToPagesOfTheUIOnly(t *testing.T) {
	for _, page := range []string{"/ui/", "/ui/jobs", "/ui/invocations?status=running&x=//evil", "/ui/services/a%2Fb"} {
		require.Equal(t, page, LocalPage(page))
	}
	for _, page := range []string{
		"", "/", "//evil.example", "https://evil.example/ui/", "/\\evil.example", "/ui/\\evil", "/ui/../login/start", "/ui/%2e%2e/logout", "/uix", "javascript:alert(1)",
		"/ui/" + strings.Repeat("x", maxPageBytes), "/ui/\r\nset-cookie: a=b", " /ui/", "/ui/ x", "http:/ui/", "//u@/ui/", "/ui/%zz",
	} {
		require.Equal(t, "/ui/", LocalPage(page), page)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	i := newIssuer(t)
	for name, change := range map[string]func(*Config){
		"issuer":       func(c *Config) { c.Issuer = "http://idp.example" },
		"client-id":    func(c *Config) { c.ClientID, c.CLIClientID = "", "" },
		"roles-claim":  func(c *Config) { c.RolesClaim = "" },
		"roles":        func(c *Config) { c.Roles = nil },
		"there is no":  func(c *Config) { c.Roles = map[string]string{"a": "root"} },
		"external-url": func(c *Config) { c.ExternalURL = "http://platform.example.com" },
		"not the addr": func(c *Config) { c.ExternalURL = "https://platform.example.com/path" },
		"an address":   func(c *Config) { c.Issuer = "" },
	} {
		cfg := i.config()
		change(&cfg)
		_, err := New(cfg)
		require.Error(t, err, name)
	}
	p := i.provider(t, func(c *Config) { c.ExternalURL = "http://localhost:9070/" })
	require.Equal(t, "http://localhost:9070", p.Origin())
	require.False(t, p.Secure())
	require.Empty(t, i.provider(t, func(c *Config) { c.ClientID = "" }).Origin())
}

func TestTheLogDoesNotContainCredentialsOrLongTexts(t *testing.T) {
	i := newIssuer(t)
	var log strings.Builder
	p := i.provider(t, func(c *Config) {
		c.ClientSecret = "secret-of-the-client"
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	attempt, query := i.begin(t, p)
	query.Set("code", "code-of-the-login")
	for _, status := range []int{400, 500} {
		i.echoes, i.status = true, status
		_, err := p.Finish(t.Context(), attempt, query)
		require.ErrorIs(t, err, ErrUnavailable)
		require.Contains(t, log.String(), fmt.Sprint("status ", status))
	}
	query.Set("error", strings.Repeat("e", 100_000))
	query.Set("error_description", strings.Repeat("d", 100_000))
	_, err := p.Finish(t.Context(), attempt, query)
	requireRefused(t, err, "")
	_, err = p.Verify(t.Context(), i.sign(t, i.claims("cli", "", map[string]any{"iss": strings.Repeat("i", 10_000)})))
	requireRefused(t, err, "")
	require.NotContains(t, log.String(), "code-of-the-login")
	require.NotContains(t, log.String(), "secret-of-the-client")
	require.NotContains(t, log.String(), base64.StdEncoding.EncodeToString([]byte("ui:secret-of-the-client")))
	require.NotContains(t, log.String(), attempt.Verifier)
	require.Less(t, log.Len(), 3000)
}

func TestAUserCanChooseAnotherAccount(t *testing.T) {
	p := newIssuer(t).provider(t, nil)
	for _, choose := range []bool{false, true} {
		address, _, err := p.Begin(t.Context(), "", choose)
		require.NoError(t, err)
		u, err := url.Parse(address)
		require.NoError(t, err)
		require.Equal(t, choose, u.Query().Get("prompt") == "select_account", address)
	}
}

func TestLargeResponsesOfAProviderAreNotRead(t *testing.T) {
	i := newIssuer(t)
	p := i.provider(t, nil)
	attempt, query := i.begin(t, p)
	i.token = func() string { return strings.Repeat("x", 10<<20) }
	_, err := p.Finish(t.Context(), attempt, query)
	require.ErrorIs(t, err, ErrUnavailable)

	i.document["comment"] = strings.Repeat("x", 10<<20)
	_, _, err = i.provider(t, nil).Begin(t.Context(), "", false)
	require.ErrorIs(t, err, ErrUnavailable)

	const unpacked = 1 << 30
	bomb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed, block := gzip.NewWriter(w), make([]byte, 1<<20)
		for range unpacked / len(block) {
			if _, err := packed.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(bomb.Close)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = i.provider(t, func(c *Config) { c.Issuer = bomb.URL }).Begin(t.Context(), "", false)
	require.ErrorIs(t, err, ErrUnavailable)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(unpacked/4))
}

func TestThePageOfALogoutIsThatOfTheProvider(t *testing.T) {
	i := newIssuer(t)
	require.Empty(t, i.provider(t, nil).LogoutPage(t.Context(), "ui"), "it announces none")
	i.document = map[string]any{"end_session_endpoint": "https://idp.example/logout?realm=a&client_id=x"}
	p := i.provider(t, nil)
	require.Equal(t, "https://idp.example/logout?client_id=a%26b&realm=a", p.LogoutPage(t.Context(), "a&b"))
	i.Close()
	require.NotEmpty(t, p.LogoutPage(t.Context(), "ui"), "the discovery document is known")
	require.Empty(t, i.provider(t, nil).LogoutPage(t.Context(), "ui"), "the provider is down")
}
