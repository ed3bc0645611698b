package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoles(t *testing.T) {
	for _, r := range Roles {
		require.True(t, r.Allows(Public))
		require.Equal(t, r != Invoker && r != Callback, r.Allows(View), r)
		require.Equal(t, r == Reader || r == Admin, r.Allows(Payloads), r)
		require.Equal(t, r == Operator || r == Admin, r.Allows(Operate), r)
		require.Equal(t, r == Deployer || r == Admin, r.Allows(Deploy), r)
		require.Equal(t, r == Security || r == Admin, r.Allows(Secure), r)
		require.Equal(t, r == Admin, r.Allows(Administer), r)
		require.False(t, r.Allows("unknown"), r)
	}
	require.Equal(t, "deployer or admin", RolesWith(Deploy))
	require.Equal(t, "viewer, reader, operator, deployer, security or admin", RolesWith(View))
	require.Equal(t, "admin", RolesWith(Administer))
	roles, err := ParseRoles([]string{"viewer", "invoker", "viewer"})
	require.NoError(t, err)
	require.Equal(t, []Role{Viewer, Invoker}, roles)
	for _, names := range [][]string{nil, {"root"}, {"Admin"}, {"viewer", ""}} {
		_, err := ParseRoles(names)
		require.Error(t, err)
	}
}

func TestLimitsOfPrincipals(t *testing.T) {
	p := &Principal{Services: []string{"Greeter"}}
	require.True(t, p.Limited())
	require.True(t, p.AllowsTarget("Greeter", "x"))
	require.False(t, p.AllowsTarget("Counter", "x"))
	p = &Principal{Scopes: []string{"a"}}
	require.True(t, p.AllowsTarget("Greeter", "a"))
	require.False(t, p.AllowsTarget("Greeter", ""), "without a scope is outside of all scopes")
	require.False(t, (&Principal{}).Limited())
	require.False(t, From(t.Context()).Allows(View), "without a principal nothing is allowed")
	require.Same(t, p, From(With(t.Context(), p)))
}

// authenticator knows a set of tokens and has a clock.
func authenticator(required bool, now *time.Time, grants map[string]Grant) *Authenticator {
	return &Authenticator{
		Required: required, Now: func() time.Time { return *now },
		Grant: func(id string) (Grant, bool) { g, ok := grants[id]; return g, ok },
	}
}

func TestOnlyTheWholeTokenIsAccepted(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	secret, other := NewSecret(), NewSecret()
	require.NotEqual(t, secret.Text, other.Text)
	grants := map[string]Grant{secret.ID: {Principal: Principal{Name: "ci", Token: secret.ID, Roles: []Role{Viewer}}, Hash: secret.Hash[:], Expires: now.Add(time.Minute)}}
	ask := func(a *Authenticator, authorization string) (*Principal, error) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		return a.Authenticate(r)
	}
	a := authenticator(true, &now, grants)
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER  "} {
		p, err := ask(a, scheme+secret.Text)
		require.NoError(t, err)
		require.Equal(t, "ci", p.Name)
	}
	mixed := "plt_" + secret.ID + other.Text[len("plt_")+idLength:]
	for name, authorization := range map[string]string{
		"none": "", "no scheme": secret.Text, "another scheme": "Basic " + secret.Text, "empty": "Bearer ", "unknown": "Bearer " + other.Text,
		"another secret": "Bearer " + mixed, "shortened": "Bearer " + secret.Text[:len(secret.Text)-1], "extended": "Bearer " + secret.Text + "a",
		"upper case": "Bearer " + strings.ToUpper(secret.Text), "id only": "Bearer plt_" + secret.ID, "without prefix": "Bearer " + secret.Text[4:],
		"hash instead": "Bearer " + string(secret.Hash[:]), "another system's": "Bearer ghp_0123456789",
	} {
		_, err := ask(a, authorization)
		require.ErrorIs(t, err, ErrUnauthenticated, name)
	}
	now = now.Add(time.Minute)
	_, err := ask(a, "Bearer "+secret.Text)
	require.ErrorIs(t, err, ErrUnauthenticated, "expired")

	now = now.Add(-time.Second)
	open := authenticator(false, &now, grants)
	for _, authorization := range []string{"", "Bearer of-another-system", "Bearer " + other.Text} {
		p, err := ask(open, authorization)
		require.NoError(t, err)
		require.True(t, p.Allows(Administer))
	}
	p, err := ask(open, "Bearer "+secret.Text)
	require.NoError(t, err)
	require.False(t, p.Allows(Administer), "a token limits its user on an open server too")
}

func TestTokensOfIdentityProviders(t *testing.T) {
	var asked []string
	secret := NewSecret()
	a := &Authenticator{Required: true, Verify: func(_ context.Context, text string) *Principal {
		asked = append(asked, text)
		if text == "a.b.c" {
			return &Principal{Name: "ada", Roles: []Role{Viewer}}
		}
		return nil
	}, Static: []Grant{{Principal: Principal{Name: "static"}, Hash: func() []byte { h := Hash("any text"); return h[:] }()}}}
	ask := func(token string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		p, err := a.Authenticate(r)
		if err != nil {
			return ""
		}
		return p.Name
	}
	require.Equal(t, "static", ask("any text"))
	require.Equal(t, "ada", ask("a.b.c"))
	require.Empty(t, ask("x.y.z"))
	require.Empty(t, ask(secret.Text))
	require.Equal(t, []string{"a.b.c", "x.y.z"}, asked, "tokens of this server are not shown to others")
}

func TestTextsWithoutSecrets(t *testing.T) {
	secret := NewSecret()
	callback, err := NewCallback(secret.Text, "sign_1", time.Now())
	require.NoError(t, err)
	for text, want := range map[string]string{
		"/tokens/" + secret.Text + "?a=b":                 "/tokens/plt_" + secret.ID + "_***?a=b",
		"there is no " + callback + ".":                   "there is no plc_" + secret.ID + "_***.",
		"pjt_" + secret.Text[4:] + "_" + secret.Text[21:]: "pjt_" + secret.ID + "_***",
		"/tokens/" + secret.ID:                            "/tokens/" + secret.ID,
		"plt_ci":                                          "plt_ci",
	} {
		require.Equal(t, want, WithoutSecrets(text))
	}
}
