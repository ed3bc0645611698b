package admin

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/tokens"
	"platform/internal/certs"
	"platform/internal/cluster/enroll"
	"platform/internal/feature"
	"platform/metadata"
)

// authorityBody is the body of PUT /cluster/authority.
func authorityBody(t *testing.T, a *certs.Authority) string {
	key, err := a.KeyPEM()
	require.NoError(t, err)
	body, err := json.Marshal(map[string]string{"certificate": string(a.CertPEM()), "key": string(key)})
	require.NoError(t, err)
	return string(body)
}

// putAuthority sends an authority from an address.
func (w *testServer) putAuthority(t *testing.T, from, body string) *http.Response {
	r := httptest.NewRequestWithContext(t.Context(), "PUT", "http://localhost:9070/cluster/authority", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = from
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, r)
	return recorder.Result()
}

func TestJoinTokensNeedAnAuthority(t *testing.T) {
	trusted := map[string]bool{}
	w := newTestServer(t, func(c *Config) {
		c.NodeTLS = tokens.NodeTLS{Mode: "require", Trusts: func(a *x509.Certificate) bool { return trusted[string(a.Raw)] }}
	})
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "localcluster", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/cluster/join-tokens", "{}")), "platform cluster ca import")

	a, err := certs.NewAuthority("localcluster", time.Hour)
	require.NoError(t, err)
	other, err := certs.NewAuthority("other", time.Hour)
	require.NoError(t, err)
	expired, err := certs.NewAuthority("localcluster", -time.Minute)
	require.NoError(t, err)
	require.Contains(t, requireStatus(t, http.StatusUnprocessableEntity, w.putAuthority(t, "127.0.0.1:1234", authorityBody(t, other))), `that of cluster \"other\"`)
	require.Contains(t, requireStatus(t, http.StatusUnprocessableEntity, w.putAuthority(t, "127.0.0.1:1234", authorityBody(t, expired))), "expired")
	require.Contains(t, requireStatus(t, http.StatusUnprocessableEntity, w.putAuthority(t, "127.0.0.1:1234", `{"certificate":"x","key":"y"}`)), "not an authority")
	require.Contains(t, requireStatus(t, http.StatusUnprocessableEntity, w.putAuthority(t, "127.0.0.1:1234", authorityBody(t, a))), "does not trust")
	trusted[string(a.Cert.Raw)] = true
	require.Contains(t, requireStatus(t, http.StatusConflict, w.putAuthority(t, "127.0.0.1:1234", authorityBody(t, a))), "security.secrets.key-file")
	require.NoError(t, w.store.SetSecretKeys(secretKeys(t, "a")))
	requireStatus(t, http.StatusOK, w.putAuthority(t, "127.0.0.1:1234", authorityBody(t, a)))

	for _, body := range []string{`{"node":"a/b"}`, `{"node":"` + strings.Repeat("n", 200) + `"}`, `{"expires_in":"8d"}`, `{"expires_in":"0s"}`} {
		requireStatus(t, http.StatusUnprocessableEntity, w.ask(t, "POST", "/cluster/join-tokens", body))
	}
	var created struct{ Token string }
	require.NoError(t, json.Unmarshal([]byte(requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/cluster/join-tokens", `{"node":"n4","expires_in":"15m"}`))), &created))
	token, err := enroll.ParseToken(created.Token)
	require.NoError(t, err)
	stored := w.store.JoinTokens()
	require.Len(t, stored, 1)
	hash := token.Hash()
	require.Equal(t, hash[:], stored[0].Hash)
	require.Equal(t, (&metadata.Authority{Certificate: a.Cert.Raw}).Hash(), token.Authority)
	list := requireStatus(t, http.StatusOK, w.ask(t, "GET", "/cluster/join-tokens", ""))
	require.Contains(t, list, `"node":"n4"`)
	require.NotContains(t, list, created.Token)
	require.NotContains(t, list, strings.Split(created.Token, "_")[2])
	requireStatus(t, http.StatusOK, w.ask(t, "DELETE", "/cluster/join-tokens/"+token.ID, ""))
	requireStatus(t, http.StatusNotFound, w.ask(t, "DELETE", "/cluster/join-tokens/"+token.ID, ""))
	require.Empty(t, w.store.JoinTokens())
}

func TestJoinTokensAreRejectedWithoutTLS(t *testing.T) {
	w := newTestServer(t, func(c *Config) { c.NodeTLS.Mode = "off" })
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/cluster/join-tokens", "{}")), "security.node-tls.mode")
}

// The key of the authority is not accepted where others could read it.
func TestAuthorityIsNotSentInClear(t *testing.T) {
	w := newTestServer(t, nil)
	a, err := certs.NewAuthority("localcluster", time.Hour)
	require.NoError(t, err)
	require.Contains(t, requireStatus(t, http.StatusForbidden, w.putAuthority(t, "192.0.2.1:1234", authorityBody(t, a))), "admin.tls")
}
