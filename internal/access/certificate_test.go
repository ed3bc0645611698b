package access

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCertificatesOfClientsHaveRoles(t *testing.T) {
	rules, err := NewCertificates(map[string]string{
		"spiffe://corp/ns/shop/*": "invoker", "ops.example.com": "operator, viewer", "ada@example.com": "admin",
	})
	require.NoError(t, err)
	uri := func(text string) []*url.URL { u, _ := url.Parse(text); return []*url.URL{u} }
	p := rules.Principal(&x509.Certificate{URIs: uri("spiffe://corp/ns/shop/sa/web")})
	require.Equal(t, &Principal{Name: "cert:spiffe://corp/ns/shop/sa/web", Kind: KindCertificate, Roles: []Role{Invoker}}, p)
	p = rules.Principal(&x509.Certificate{DNSNames: []string{"other", "ops.example.com"}, EmailAddresses: []string{"ada@example.com"}})
	require.Equal(t, "cert:ops.example.com", p.Name)
	require.ElementsMatch(t, []Role{Operator, Viewer, Admin}, p.Roles)
	for name, c := range map[string]*x509.Certificate{
		"nothing": {}, "common name": {Subject: pkix.Name{CommonName: "ada@example.com"}},
		"longer": {DNSNames: []string{"ops.example.com.evil.example"}}, "prefix": {URIs: uri("spiffe://corp/ns/shopping/sa/web")},
	} {
		require.Nil(t, rules.Principal(c), name)
	}
	for _, bad := range []map[string]string{{"*": "viewer"}, {"": "viewer"}, {"a*b": "viewer"}, {"a": "root"}, {"a": ""}} {
		_, err := NewCertificates(bad)
		require.Error(t, err, bad)
	}
}

// Only certificates verified by TLS are accepted, and they do not replace an invalid token.
func TestOnlyVerifiedCertificatesAuthenticate(t *testing.T) {
	rules, err := NewCertificates(map[string]string{"client": "invoker"})
	require.NoError(t, err)
	a := &Authenticator{Certificate: rules.Principal}
	leaf := &x509.Certificate{DNSNames: []string{"client"}}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	require.Nil(t, a.Identify(r))
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	require.Nil(t, a.Identify(r), "it was not verified")
	r.TLS.VerifiedChains = [][]*x509.Certificate{{leaf}}
	require.Equal(t, "cert:client", a.Identify(r).Name)
	r.Header.Set("Authorization", "Bearer of-the-application")
	require.Equal(t, "cert:client", a.Identify(r).Name)
	r.Header.Set("Authorization", "Bearer "+NewSecret().Text)
	require.Nil(t, a.Identify(r))
}
