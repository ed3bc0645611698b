package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCallbackTokensCompleteOneAwakeable(t *testing.T) {
	secret, other := NewSecret(), NewSecret()
	now := time.Unix(1_700_000_000, 0)
	grants := map[string]Grant{secret.ID: {Principal: Principal{Name: "shop", Roles: []Role{Callback}}, Hash: secret.Hash[:]}}
	a := &Authenticator{Grant: func(id string) (Grant, bool) { g, ok := grants[id]; return g, ok }, Now: func() time.Time { return now }}
	text, err := NewCallback(secret.Text, "sign_1abc", now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "shop", a.Callback(text, "sign_1abc").Name)
	require.Nil(t, a.find(t.Context(), text), "it is no token for anything else")

	// As documented for handlers.
	key := sha256.Sum256([]byte(secret.Text))
	mac := hmac.New(sha256.New, key[:])
	fmt.Fprintf(mac, "awakeable:sign_1abc:%d", now.Add(time.Hour).Unix())
	require.Equal(t, fmt.Sprintf("plc_%s_%d_%s", secret.Text[4:20], now.Add(time.Hour).Unix(), hex.EncodeToString(mac.Sum(nil))), text)

	foreign, _ := NewCallback(other.Text, "sign_1abc", now.Add(time.Hour))
	late := strings.Replace(text, fmt.Sprint(now.Add(time.Hour).Unix()), fmt.Sprint(now.Add(2*time.Hour).Unix()), 1)
	for name, forged := range map[string]string{
		"other token": foreign, "other token's code": text[:21] + foreign[21:], "later": late, "cut": text[:len(text)-2], "longer": text + "00",
		"empty": "", "prefix": "plc_", "no code": text[:32], "no time": "plc_" + secret.ID + "__" + text[32:], "token": secret.Text,
		"of another id": "plc_" + other.ID + text[20:], "not hex": text[:len(text)-1] + "g",
	} {
		require.Nil(t, a.Callback(forged, "sign_1abc"), name)
	}
	require.Nil(t, a.Callback(text, "sign_1abd"), "another awakeable")
	require.Nil(t, a.Callback(text, ""), "another awakeable")
	now = now.Add(time.Hour)
	require.Nil(t, a.Callback(text, "sign_1abc"), "expired")
	now = now.Add(-time.Hour)
	delete(grants, secret.ID)
	require.Nil(t, a.Callback(text, "sign_1abc"), "revoked")
	_, err = NewCallback("something", "sign_1abc", now)
	require.Error(t, err)
}

func TestPrincipalsGrantOnlyWhatTheyHave(t *testing.T) {
	security := Principal{Roles: []Role{Security}}
	require.True(t, security.Grants(Viewer, Security))
	for _, role := range []Role{Reader, Callback, Invoker, Operator, Deployer, Admin} {
		require.False(t, security.Grants(role), role)
	}
	both := Principal{Roles: []Role{Security, Operator}}
	require.True(t, both.Grants(Viewer, Operator))
	admin := Principal{Roles: []Role{Admin}}
	require.True(t, admin.Grants(Roles...))
	limited := Principal{Roles: []Role{Admin}, Services: []string{"a"}}
	require.False(t, limited.Grants(Viewer))
}
