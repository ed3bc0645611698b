package access

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfAccountsCannotLookLikeOthers(t *testing.T) {
	c, err := NewClaims("", "groups", map[string]string{"ops": "operator"})
	require.NoError(t, err)
	for _, name := range []string{"ada", "Ada Lovelace", "ä", "a%20b", "oidc:ada"} {
		require.Equal(t, name, c.Subject(map[string]any{"sub": name}))
	}
	for _, name := range []any{
		"", "ada ", " ada", "\u00a0ada", "a\nb", "a\x7fb", "a\u009b31mb", "ada\u202e", "a\u200bda", "a\u2028b", strings.Repeat("a", maxSubject+1), 7, nil, []any{"ada"}, map[string]any{"ada": "ada"},
	} {
		require.Empty(t, c.Subject(map[string]any{"sub": name}), "%q", name)
	}
}

func TestRolesOfUnexpectedClaims(t *testing.T) {
	c, err := NewClaims("", "realm.groups", map[string]string{"ops": "operator", "": "admin", "1": "admin", "true": "admin"})
	require.NoError(t, err)
	many := make([]any, 10_000)
	for i := range many {
		many[i] = strings.Repeat("g", 20)
	}
	many[9_999] = "ops"
	require.Equal(t, []Role{Operator}, c.Roles(map[string]any{"realm": map[string]any{"groups": many}}))
	for _, value := range []any{nil, true, 1, 1.0, "", map[string]any{"ops": true}, []any{[]any{"ops"}, map[string]any{"ops": 1}, 1, true, nil}} {
		require.Empty(t, c.Roles(map[string]any{"realm": map[string]any{"groups": value}}), "%v", value)
		require.Empty(t, c.Roles(map[string]any{"realm": value}), "%v", value)
	}
}

// An administrator by address, and everybody of the domain.
func TestRolesOfSeveralClaims(t *testing.T) {
	c, err := NewClaims("email", "email, hd,org.teams", map[string]string{"ada@example.com": "admin", "example.com": "viewer", "ops": "operator, viewer"})
	require.NoError(t, err)
	all := map[string]any{"email": "ada@example.com", "email_verified": true, "hd": "example.com", "org": map[string]any{"teams": []any{"ops"}}}
	require.Equal(t, []Role{Admin, Viewer, Operator}, c.Roles(all))
	require.False(t, c.Unverified(all))
	require.Equal(t, []Role{Viewer}, c.Roles(map[string]any{"email": "bob@example.com", "hd": "example.com"}))
	require.Empty(t, c.Roles(map[string]any{"email": "eve@example.org", "sub": "ada@example.com", "email, hd": "example.com"}))
	require.True(t, c.Unverified(map[string]any{"email": "ada@example.com", "hd": "example.com"}))
	_, err = NewClaims("", " , ", map[string]string{"ops": "operator"})
	require.ErrorContains(t, err, "roles-claim")
}

// Handlers authorize by the header: two principals must never have the same one.
func TestPrincipalsHaveDifferentHeaders(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []*Principal{
		NewJWT("ä", nil), NewJWT("%C3%A4", nil), NewJWT("a", nil), {Name: SessionName("ä"), Token: "id"}, {Name: SessionName("%C3%A4"), Token: "id2"}, {Name: "100%", Token: "id3"},
		{Name: "ö", Token: "id4"},
	} {
		value := p.HeaderValue()
		require.Empty(t, seen[value], "%s has the header of another principal", p.Name)
		seen[value] = p.Name
	}
	again := &Principal{Name: SessionName("ä"), Token: "next session"}
	require.Equal(t, SessionName("ä"), seen[again.HeaderValue()], "it does not depend on the session")
}

// Claims give roles on the whole cluster: what looks like a limit is rejected, not ignored.
func TestClaimsCannotLimitRoles(t *testing.T) {
	for _, names := range []string{"operator:Orders", "operator(Orders)", "operator service=Orders", "operator, Orders", "Operator", "", " , "} {
		_, err := NewClaims("", "groups", map[string]string{"team": names})
		require.Error(t, err, names)
		_, err = NewCertificates(map[string]string{"a.example": names})
		require.Error(t, err, names)
	}
	c, err := NewClaims("", "groups", map[string]string{"team": "operator, reader"})
	require.NoError(t, err)
	require.Equal(t, []Role{Operator, Reader}, c.Roles(map[string]any{"groups": []any{"team"}}))
	require.False(t, NewJWT("ada", c.Roles(map[string]any{"groups": "team"})).Limited())
	require.Empty(t, c.Roles(map[string]any{"groups": []any{"team:Orders", "TEAM", "tea", "*"}}))
}
