package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzCredentials checks that no header is taken for a token, a session or a callback token but the
// exact ones.
func FuzzCredentials(f *testing.F) {
	const awakeable = "sign_1AAAAAAAAAAEBAAAAAAAAAAAAAAAAAAAAAAAAEQ"
	secret := NewSecret()
	callback, err := NewCallback(secret.Text, awakeable, time.Now().Add(time.Hour))
	require.NoError(f, err)
	grants := map[string]Grant{secret.ID: {Principal: Principal{Name: "ada", Token: secret.ID, Roles: []Role{Invoker}}, Hash: secret.Hash[:]}}
	a := &Authenticator{Grant: func(id string) (Grant, bool) { g, known := grants[id]; return g, known }}
	for _, seed := range []string{
		"", "Bearer ", "Bearer " + secret.Text, "bearer\t" + secret.Text + " ", "Basic " + secret.Text, "Bearer plt_" + secret.ID + "_", secret.Text + secret.Text, "Bearer a.b.c",
	} {
		f.Add(seed, callback)
	}
	f.Add("Bearer "+secret.Text[:len(secret.Text)-1], callback[:len(callback)-1])
	f.Add("Bearer "+strings.ToUpper(secret.Text), strings.ToUpper(callback))
	f.Fuzz(func(t *testing.T, header, text string) {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		r.Header["Authorization"] = []string{header}
		if p := a.Identify(r); p != nil {
			require.Contains(t, header, secret.Text)
		}
		if p := a.Callback(text, awakeable); p != nil {
			const code = 64 // the digits of the code
			require.True(t, len(text) >= len(callback) && strings.EqualFold(text[len(text)-code:], callback[len(callback)-code:]), text)
			require.Nil(t, a.Callback(text, awakeable+"x"))
		}
	})
}
