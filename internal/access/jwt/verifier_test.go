package jwt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/access/jwttest"
)

// issuer is an identity provider.
type issuer struct {
	*httptest.Server
	key     *ecdsa.PrivateKey
	fetched atomic.Int64 // requests for keys
	now     time.Time
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i := &issuer{key: key, now: time.UnixMilli(1_700_000_000_000)}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/a", "token_endpoint": i.URL + "/t"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// claims of a valid token, with changes.
func (i *issuer) claims(changes map[string]any) map[string]any {
	return jwttest.Change(map[string]any{
		"iss": i.URL, "aud": "platform", "sub": "ada", "exp": i.now.Add(time.Minute).Unix(), "iat": i.now.Unix(),
		"realm_access": map[string]any{"roles": []string{"ops", "other"}},
	}, changes)
}

func (i *issuer) verifier(t *testing.T, change func(*Config)) *Verifier {
	cfg := Config{
		Issuer: i.URL, Audience: "platform", RolesClaim: "realm_access.roles", Roles: map[string]string{"ops": "operator, reader", "root": "admin"},
		now: func() time.Time { return i.now },
	}
	if change != nil {
		change(&cfg)
	}
	v, err := New(cfg)
	require.NoError(t, err)
	return v
}

func TestMappedClaimsBecomeRoles(t *testing.T) {
	i := newIssuer(t)
	for _, keysURL := range []string{"", i.URL + "/keys"} {
		v := i.verifier(t, func(c *Config) { c.KeysURL = keysURL })
		p := v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(nil)))
		require.NotNil(t, p)
		require.Equal(t, "jwt:ada", p.Name)
		require.ElementsMatch(t, []access.Role{access.Operator, access.Reader}, p.Roles)
	}
	v := i.verifier(t, func(c *Config) { c.SubjectClaim, c.RolesClaim = "email", "https://example.com/roles" })
	p := v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"email": "ada@example.com", "email_verified": true, "https://example.com/roles": "x root"})))
	require.NotNil(t, p)
	require.Equal(t, "jwt:ada@example.com", p.Name)
	require.Equal(t, []access.Role{access.Admin}, p.Roles)
}

func TestForgedTokensAreRejected(t *testing.T) {
	i := newIssuer(t)
	v := i.verifier(t, nil)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(i.key.Public())
	require.NoError(t, err)
	valid := jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(nil))
	parts := strings.Split(valid, ".")
	encode := base64.RawURLEncoding.EncodeToString
	root, err := json.Marshal(i.claims(map[string]any{"realm_access": map[string]any{"roles": []string{"root"}}}))
	require.NoError(t, err)
	for name, token := range map[string]string{
		"empty": "", "garbage": "a.b.c", "no token": "Bearer", "too long": strings.Repeat("a", maxTokenBytes) + ".b.c",
		"another key":           jwttest.Sign(t, jose.ES256, other, "k1", i.claims(nil)),
		"another key and id":    jwttest.Sign(t, jose.ES256, other, "k2", i.claims(nil)),
		"another algorithm":     jwttest.Sign(t, jose.RS256, foreign, "k1", i.claims(nil)),
		"public key as secret":  jwttest.Sign(t, jose.HS256, public, "k1", i.claims(nil)),
		"unsigned":              encode([]byte(`{"alg":"none"}`)) + "." + encode(root) + ".",
		"signature of another":  parts[0] + "." + encode(root) + "." + parts[2],
		"without signature":     parts[0] + "." + parts[1] + ".",
		"another issuer":        jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"iss": "https://evil.example"})),
		"another audience":      jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"aud": "other"})),
		"no audience":           jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"aud": nil})),
		"expired":               jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"exp": i.now.Add(-time.Second).Unix()})),
		"never expires":         jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"exp": nil})),
		"not yet":               jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"nbf": i.now.Add(time.Hour).Unix()})),
		"no subject":            jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"sub": nil})),
		"subject with newline":  jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"sub": "a\nb"})),
		"no roles":              jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"realm_access": nil})),
		"roles without mapping": jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"realm_access": map[string]any{"roles": []string{"admin", "viewer"}}})),
		"roles of another type": jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"realm_access": []any{1, true}})),
	} {
		require.Nil(t, v.Principal(t.Context(), token), name)
	}
	require.NotNil(t, v.Principal(t.Context(), valid))
}

func TestUnknownKeysDoNotFloodTheIssuer(t *testing.T) {
	i := newIssuer(t)
	v := i.verifier(t, nil)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for range 50 {
		require.Nil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, other, "k2", i.claims(nil))))
	}
	require.LessOrEqual(t, i.fetched.Load(), int64(1))

	i.key = other // the issuer has changed its key
	i.now = i.now.Add(retryInterval)
	// The first verification may still join the last request with the old keys.
	require.Eventually(t, func() bool {
		return v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, other, "k1", i.claims(nil))) != nil
	}, time.Minute, time.Millisecond)
}

// logged has a verifier log to a buffer.
func logged(to *bytes.Buffer) func(*Config) {
	return func(c *Config) { c.Log = slog.New(slog.NewTextHandler(to, nil)) }
}

func TestAnIssuerThatFailsIsAskedAgainLater(t *testing.T) {
	i := newIssuer(t)
	var log bytes.Buffer
	failing := true
	v := i.verifier(t, func(c *Config) {
		logged(&log)(c)
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if failing {
				return nil, errors.New("no route to host")
			}
			return http.DefaultTransport.RoundTrip(r)
		})
	})
	token := jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(nil))
	for range 3 {
		require.Nil(t, v.Principal(t.Context(), token))
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "/.well-known/openid-configuration")
	require.Contains(t, log.String(), "no route to host")
	failing = false
	require.Nil(t, v.Principal(t.Context(), token))
	i.now = i.now.Add(retryInterval)
	require.NotNil(t, v.Principal(t.Context(), token))
}

func TestUnreadableKeysAreLogged(t *testing.T) {
	i := newIssuer(t)
	var log bytes.Buffer
	v := i.verifier(t, func(c *Config) {
		logged(&log)(c)
		c.KeysURL = i.URL + "/nothing"
	})
	for range 3 {
		require.Nil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(nil))))
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "status 404")
}

func TestAnotherDiscoveryDocumentIsLogged(t *testing.T) {
	i := newIssuer(t)
	var log bytes.Buffer
	v := i.verifier(t, logged(&log))
	v.cfg.Issuer = strings.Replace(i.URL, "127.0.0.1", "localhost", 1)
	require.Nil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(nil))))
	require.Contains(t, log.String(), "discovery document")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestMappingIsRequired(t *testing.T) {
	for _, cfg := range []Config{
		{Issuer: "https://a.example", RolesClaim: "r", Roles: map[string]string{"a": "viewer"}},
		{Issuer: "https://a.example", Audience: "x", Roles: map[string]string{"a": "viewer"}},
		{Issuer: "https://a.example", Audience: "x", RolesClaim: "r"},
		{Issuer: "http://a.example", Audience: "x", RolesClaim: "r", Roles: map[string]string{"a": "viewer"}},
		{Issuer: "https://a.example", KeysURL: "http://a.example/keys", Audience: "x", RolesClaim: "r", Roles: map[string]string{"a": "viewer"}},
		{Issuer: "https://a.example", Audience: "x", RolesClaim: "r", Roles: map[string]string{"a": "root"}},
		{Issuer: "https://a.example", Audience: "x", RolesClaim: "r", Roles: map[string]string{"a": ""}},
	} {
		_, err := New(cfg)
		require.Error(t, err)
	}
}

// A provider that does not respond must not delay each request by the timeout.
func TestATimeoutOfTheIssuerIsRepeated(t *testing.T) {
	now, requests := time.UnixMilli(1_700_000_000_000), 0
	transport := NewTransport(roundTripper(func(*http.Request) (*http.Response, error) {
		requests++
		now = now.Add(fetchTimeout)
		return nil, errors.New("timeout")
	}), func() time.Time { return now }, slog.New(slog.DiscardHandler))
	for range 5 {
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://idp.example/keys", nil))
		require.Error(t, err)
	}
	require.Equal(t, 1, requests)
}

// A key that the issuer no longer publishes, since it may have been stolen, is not accepted for long,
// also if no token with another key arrives.
func TestRemovedKeysExpire(t *testing.T) {
	i := newIssuer(t)
	failing := false
	v := i.verifier(t, func(c *Config) {
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			if failing {
				return nil, errors.New("no route to host")
			}
			return http.DefaultTransport.RoundTrip(r)
		})
	})
	stolen := i.key
	token := func() string { return jwttest.Sign(t, jose.ES256, stolen, "k1", i.claims(nil)) }
	require.NotNil(t, v.Principal(t.Context(), token()))
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	i.key = other

	i.now, failing = i.now.Add(keysAge), true
	require.NotNil(t, v.Principal(t.Context(), token()), "clients can work while the issuer does not respond")
	failing = false
	require.NotNil(t, v.Principal(t.Context(), token()), "it is asked again later")
	i.now = i.now.Add(retryInterval)
	require.Nil(t, v.Principal(t.Context(), token()))
	require.NotNil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, other, "k1", i.claims(nil))))

	fetched := i.fetched.Load()
	for range 10 {
		i.now = i.now.Add(keysAge / 20)
		require.NotNil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, other, "k1", i.claims(nil))))
	}
	require.Equal(t, fetched, i.fetched.Load(), "they are read once an hour")
}

func TestUnverifiedAddressesAreRejected(t *testing.T) {
	i := newIssuer(t)
	for name, change := range map[string]func(*Config){
		"name":  func(c *Config) { c.SubjectClaim = "email" },
		"roles": func(c *Config) { c.RolesClaim, c.Roles = "email", map[string]string{"ada@example.com": "admin"} },
	} {
		v := i.verifier(t, change)
		for _, verified := range []any{nil, false, "true"} {
			require.Nil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"email": "ada@example.com", "email_verified": verified}))), name)
		}
		require.NotNil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(map[string]any{"email": "ada@example.com", "email_verified": true}))), name)
	}
}

func TestKeysAreNotReadInClear(t *testing.T) {
	i := newIssuer(t)
	var log bytes.Buffer
	v := i.verifier(t, func(c *Config) {
		logged(&log)(c)
		c.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": "http://idp.example/keys", "authorization_endpoint": i.URL, "token_endpoint": i.URL})
			return w.Result(), nil
		})
	})
	require.Nil(t, v.Principal(t.Context(), jwttest.Sign(t, jose.ES256, i.key, "k1", i.claims(nil))))
	require.Contains(t, log.String(), "jwks_uri")
}
