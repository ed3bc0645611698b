package admin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/access/jwttest"
	"platform/internal/access/oidc"
	"platform/metadata"
)

const origin = "https://platform.example.com"

// identityProvider issues tokens with these groups for any code.
type identityProvider struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	nonce  string
	groups []string
	down   atomic.Bool
}

func (p *identityProvider) token(t *testing.T, client, nonce string) string {
	return jwttest.Sign(t, jose.ES256, p.key, "k", map[string]any{
		"iss": p.URL, "aud": client, "sub": "ada", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "nonce": nonce, "groups": p.groups,
	})
}

// withLogin is a server whose users log in with an identity provider.
func withLogin(t *testing.T) (*testServer, *identityProvider) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	idp := &identityProvider{key: key, groups: []string{"ops"}}
	idp.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]any{
			"/.well-known/openid-configuration": map[string]any{"issuer": idp.URL, "jwks_uri": idp.URL + "/keys", "authorization_endpoint": idp.URL + "/auth", "token_endpoint": idp.URL + "/token", "end_session_endpoint": idp.URL + "/end"},
			"/keys":                             jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}},
		}
		if r.URL.Path == "/token" {
			answers["/token"] = map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": idp.token(t, "ui", idp.nonce)}
		}
		if idp.down.Load() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	}))
	t.Cleanup(idp.Close)
	provider, err := oidc.New(oidc.Config{Issuer: idp.URL, ClientID: "ui", CLIClientID: "cli", ExternalURL: origin, RolesClaim: "groups", Roles: map[string]string{"ops": "operator"}})
	require.NoError(t, err)
	return secured(t, byRole(), func(c *Config) {
		c.Login, c.Authenticator.Sessions = provider, &access.Sessions{Origin: origin, Secure: true}
	}), idp
}

// browse sends a request as a browser with cookies does.
func (w *testServer) browse(method, target string, cookies []*http.Cookie, header ...string) *http.Response {
	r := httptest.NewRequest(method, origin+target, nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	return recorder.Result()
}

// body returns the body of a response.
func body(t *testing.T, r *http.Response) string {
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(text)
}

// start begins a login, and returns the cookie of the attempt and the response of the provider.
func (w *testServer) start(t *testing.T, idp *identityProvider, page string) (cookie *http.Cookie, target string) {
	t.Helper()
	started := w.browse(http.MethodGet, "/login/start?return="+url.QueryEscape(page), nil)
	require.Equal(t, http.StatusSeeOther, started.StatusCode)
	require.Len(t, started.Cookies(), 1)
	cookie = started.Cookies()[0]
	require.True(t, cookie.HttpOnly && cookie.Secure && cookie.SameSite == http.SameSiteLaxMode && cookie.Path == "/", cookie)
	location, err := started.Location()
	require.NoError(t, err)
	idp.nonce = location.Query().Get("nonce")
	return cookie, "/login/callback?" + url.Values{"code": {"c"}, "state": {location.Query().Get("state")}, "session_state": {"ignored"}}.Encode()
}

// logIn returns the cookie of a new session.
func (w *testServer) logIn(t *testing.T, idp *identityProvider, page string, others ...*http.Cookie) (session *http.Cookie, location string) {
	t.Helper()
	attempt, target := w.start(t, idp, page)
	finished := w.browse(http.MethodGet, target, append(others, attempt), "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusSeeOther, finished.StatusCode, body(t, finished))
	require.Len(t, finished.Cookies(), 2)
	require.Negative(t, finished.Cookies()[0].MaxAge, "the attempt is over")
	session = finished.Cookies()[1]
	require.Equal(t, "__Host-platform-session", session.Name)
	require.True(t, session.HttpOnly && session.Secure && session.SameSite == http.SameSiteStrictMode && session.Path == "/" && session.Domain == "", session)
	return session, finished.Header.Get("Location")
}

func (w *testServer) reads(cookie *http.Cookie, header ...string) int {
	return w.browse(http.MethodGet, "/deployments", []*http.Cookie{cookie}, header...).StatusCode
}

func TestAUserLogsInAndOut(t *testing.T) {
	w, idp := withLogin(t)
	require.Contains(t, body(t, w.browse(http.MethodGet, "/login", nil)), `"start_url":"`+origin+`/login/start"`)
	session, location := w.logIn(t, idp, "/ui/jobs?x=1")
	require.Equal(t, "/ui/jobs?x=1", location)
	who := body(t, w.browse(http.MethodGet, "/whoami", []*http.Cookie{session}))
	require.Contains(t, who, `"name":"oidc:ada"`)
	require.Contains(t, who, `"session":true`)
	require.Equal(t, http.StatusOK, w.reads(session))
	require.Equal(t, http.StatusForbidden, w.browse(http.MethodGet, "/audit", []*http.Cookie{session}).StatusCode, "only the mapped roles")

	out := w.browse(http.MethodPost, "/logout", []*http.Cookie{session})
	require.Equal(t, http.StatusOK, out.StatusCode)
	require.Negative(t, out.Cookies()[0].MaxAge)
	require.Contains(t, body(t, out), `"logout_url":"`+idp.URL+`/end?client_id=ui"`)
	require.Equal(t, http.StatusUnauthorized, w.reads(session), "the cookie of a session that has ended")
	require.JSONEq(t, `{"revoked":false}`, body(t, w.browse(http.MethodPost, "/logout", []*http.Cookie{session})))

	records, err := w.store.Audit(0, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"POST /logout", "GET /login/callback"}, []string{records[0].Action.Action, records[1].Action.Action})
	for _, record := range records[:2] {
		require.Equal(t, "oidc:ada", record.Action.Principal)
		require.NotContains(t, record.Action.Object, "code")
	}
}

func TestEachLoginHasANewSession(t *testing.T) {
	w, idp := withLogin(t)
	planted := &http.Cookie{Name: "__Host-platform-session", Value: access.NewSecret().Text}
	first, _ := w.logIn(t, idp, "", planted)
	require.NotEqual(t, planted.Value, first.Value)
	require.Equal(t, http.StatusUnauthorized, w.reads(planted), "a session that an attacker has chosen")
	second, location := w.logIn(t, idp, "https://evil.example/ui/", first)
	require.Equal(t, "/ui/", location, "not to another site")
	require.NotEqual(t, first.Value, second.Value)

	revoke := httptest.NewRequest(http.MethodDelete, origin+"/tokens/oidc:ada", nil)
	w.as("security")(revoke)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, revoke)
	require.Equal(t, http.StatusOK, recorder.Code, recorder.Body.String())
	for _, session := range []*http.Cookie{first, second} {
		require.Equal(t, http.StatusUnauthorized, w.reads(session), "all sessions of a user are revoked by name")
	}
}

func TestAResponseOfTheProviderCountsOnceAndInItsBrowserOnly(t *testing.T) {
	w, idp := withLogin(t)
	attempt, target := w.start(t, idp, "")
	for name, cookies := range map[string][]*http.Cookie{
		"another browser": nil,
		"another login":   {{Name: attempt.Name, Value: (&oidc.Attempt{State: "a", Nonce: "b", Verifier: "c"}).Encode()}},
		"without prefix":  {{Name: "platform-login", Value: attempt.Value}},
	} {
		rejected := w.browse(http.MethodGet, target, cookies, "Sec-Fetch-Site", "cross-site")
		require.Equal(t, http.StatusBadRequest, rejected.StatusCode, name)
		for _, cookie := range rejected.Cookies() {
			require.Negative(t, cookie.MaxAge, name)
		}
	}
	records, err := w.store.Audit(0, 10)
	require.NoError(t, err)
	require.Len(t, records, 3)
	require.EqualValues(t, http.StatusBadRequest, records[0].Action.Status)
}

func TestCookiesDoNotCountForOtherPages(t *testing.T) {
	w, idp := withLogin(t)
	session, _ := w.logIn(t, idp, "")
	for _, site := range []string{"cross-site", "same-site"} {
		require.Equal(t, http.StatusUnauthorized, w.reads(session, "Sec-Fetch-Site", site), site)
	}
	w.crossOrigin = http.NewCrossOriginProtection()
	require.NoError(t, w.crossOrigin.AddTrustedOrigin("https://ops.example.com"))
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site", "Origin", "https://ops.example.com"},
		{"Sec-Fetch-Site", "", "Origin", "https://ops.example.com"}, {"Sec-Fetch-Site", ""},
	} {
		status := w.browse(http.MethodPatch, "/cluster/nodes/n1/drain", []*http.Cookie{session}, header...).StatusCode
		require.Contains(t, []int{http.StatusForbidden, http.StatusUnauthorized}, status, header)
		require.Empty(t, w.browse(http.MethodPost, "/logout", []*http.Cookie{session}, header...).Cookies(), "the cookie remains: %v", header)
		require.Equal(t, http.StatusOK, w.reads(session), "still logged in: %v", header)
	}
	require.Equal(t, http.StatusOK, w.reads(session, "Sec-Fetch-Site", "none"), "typed by the user")

	for name, value := range map[string]string{"a token": w.tokens["admin"], "empty": "", "garbage": "plt_x"} {
		require.Equal(t, http.StatusUnauthorized, w.reads(&http.Cookie{Name: session.Name, Value: value}), name)
	}
	require.Equal(t, http.StatusUnauthorized, w.reads(&http.Cookie{Name: "platform-session", Value: session.Value}), "without the prefix, another host could have set it")
}

func TestAnAccountWithoutARoleGetsAPage(t *testing.T) {
	w, idp := withLogin(t)
	idp.groups = []string{"<b>admin</b>"}
	attempt, target := w.start(t, idp, "")
	rejected := w.browse(http.MethodGet, target, []*http.Cookie{attempt})
	require.Equal(t, http.StatusForbidden, rejected.StatusCode)
	require.Contains(t, rejected.Header.Get("Content-Security-Policy"), "default-src 'none'")
	page := body(t, rejected)
	require.Contains(t, page, "oidc:ada")
	require.Contains(t, page, "no role")
	_, link, _ := strings.Cut(page, `<a href="`)
	link, _, _ = strings.Cut(link, `"`)
	again, err := w.browse(http.MethodGet, html.UnescapeString(link), nil).Location()
	require.NoError(t, err)
	require.Equal(t, "select_account", again.Query().Get("prompt"), "not the same account without a question")
	require.Empty(t, w.store.Tokens())
	records, err := w.store.Audit(0, 1)
	require.NoError(t, err)
	require.Equal(t, "oidc:ada", records[0].Action.Principal)
	require.EqualValues(t, http.StatusForbidden, records[0].Action.Status)
}

func TestSessionsOutliveTheProvider(t *testing.T) {
	w, idp := withLogin(t)
	session, _ := w.logIn(t, idp, "")
	attempt, target := w.start(t, idp, "")
	idp.down.Store(true)
	require.Equal(t, http.StatusOK, w.reads(session))
	failed := w.browse(http.MethodGet, target, []*http.Cookie{attempt})
	require.Equal(t, http.StatusServiceUnavailable, failed.StatusCode)
	require.Contains(t, body(t, failed), "sessions and tokens remain valid")
	now := time.Now()
	w.cfg.Authenticator.Now = func() time.Time { return now }
	require.Equal(t, http.StatusOK, w.reads(session))
	now = now.Add(w.cfg.SessionLifetime)
	require.Equal(t, http.StatusUnauthorized, w.reads(session), "it expires")
}

func TestTheCommandLineExchangesAnIDToken(t *testing.T) {
	w, idp := withLogin(t)
	exchange := func(token string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, origin+"/login/token", strings.NewReader(`{"id_token":"`+token+`"}`))
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, r)
		return recorder.Code, recorder.Body.String()
	}
	status, answer := exchange(idp.token(t, "cli", ""))
	require.Equal(t, http.StatusCreated, status, answer)
	var view struct{ Name, Token string }
	require.NoError(t, json.Unmarshal([]byte(answer), &view))
	require.Equal(t, "oidc:ada", view.Name)
	w.tokens["cli"] = view.Token
	r := httptest.NewRequest(http.MethodGet, origin+"/deployments", nil)
	w.as("cli")(r)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	require.Equal(t, http.StatusOK, recorder.Code)

	status, _ = exchange(idp.token(t, "ui", ""))
	require.Equal(t, http.StatusBadRequest, status, "of another client")
	idp.groups = nil
	status, _ = exchange(idp.token(t, "cli", ""))
	require.Equal(t, http.StatusForbidden, status)
	for i := 0; i < 5000 && status != http.StatusTooManyRequests; i++ {
		status, _ = exchange("a.b.c")
	}
	require.Equal(t, http.StatusTooManyRequests, status)
	idp.down.Store(true)
	w.restart(w.store)
	status, answer = exchange(idp.token(t, "cli", ""))
	require.Equal(t, http.StatusForbidden, status, "its keys are known")
	require.Contains(t, answer, "no role")
}

func TestWithoutAProviderNobodyLogsIn(t *testing.T) {
	w := secured(t, byRole())
	require.JSONEq(t, `{}`, body(t, w.browse(http.MethodGet, "/login", nil)))
	for _, target := range []string{"/login/start", "/login/callback?code=a&state=b"} {
		require.Equal(t, http.StatusNotFound, w.browse(http.MethodGet, target, nil).StatusCode)
	}
}

// endingSessions is a registry in which sessions end while they are being revoked.
type endingSessions struct {
	Registry
	ended int
}

func (r *endingSessions) RevokeToken(ctx context.Context, id string) (metadata.Token, error) {
	if r.ended--; r.ended >= 0 {
		if _, err := r.Registry.RevokeToken(ctx, id); err != nil {
			return metadata.Token{}, err
		}
	}
	return r.Registry.RevokeToken(ctx, id)
}

func TestSessionsThatEndDoNotProtectOthersFromRevocation(t *testing.T) {
	w, idp := withLogin(t)
	revoke := func(ended int) int {
		w.restart(&endingSessions{w.store, ended})
		r := httptest.NewRequest(http.MethodDelete, origin+"/tokens/oidc:ada", nil)
		w.as("security")(r)
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, r)
		return recorder.Code
	}
	for range 3 {
		w.logIn(t, idp, "")
	}
	require.Equal(t, http.StatusOK, revoke(1))
	require.Empty(t, w.store.Tokens())
	w.logIn(t, idp, "")
	w.logIn(t, idp, "")
	require.Equal(t, http.StatusNotFound, revoke(2))
}
