package kafka

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"platform/test/harness"
)

// authority issues certificates in PEM.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.pem, _ = a.issue("authority")
	return a
}

// issue issues a certificate, the first of which is that of the authority itself.
func (a *authority) issue(name string) (cert *x509.Certificate, key *ecdsa.PrivateKey, certificate, private []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage, template.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	cert, err = x509.ParseCertificate(der)
	require.NoError(a.t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// tokenEndpoint issues tokens without a signature, which a broker accepts that is not configured
// otherwise.
func tokenEndpoint(t testing.TB) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "platform" || secret != "token-secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		now := time.Now().Unix()
		token := part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":"platform","iat":%d,"exp":%d}`, now, now+600)) + "."
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer","expires_in":600}`, token)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/token"
}

// TestSecuredBrokers reads through each kind of authentication, and says so if credentials are
// wrong.
func TestSecuredBrokers(t *testing.T) {
	ca := newAuthority(t)
	_, _, brokerCert, brokerKey := ca.issue("127.0.0.1")
	_, _, clientCert, clientKey := ca.issue("platform")
	dir := t.TempDir()
	keystore, truststore := filepath.Join(dir, "keystore.pem"), filepath.Join(dir, "truststore.pem")
	require.NoError(t, os.WriteFile(keystore, append(bytes.Clone(brokerKey), brokerCert...), 0o600))
	require.NoError(t, os.WriteFile(truststore, ca.pem, 0o600))
	tls := []string{"ssl.keystore.type=PEM", "ssl.keystore.location=" + keystore, "ssl.truststore.type=PEM", "ssl.truststore.location=" + truststore}
	with := func(more ...string) []string { return append(more, tls...) }
	scram := &listener{name: "SCRAM", protocol: "SASL_SSL", properties: with("sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256",
		"scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;")}
	mutual := &listener{name: "MUTUAL", protocol: "SSL", properties: with("ssl.client.auth=required")}
	plain := &listener{name: "PLAIN", protocol: "SASL_PLAINTEXT", properties: []string{"sasl.enabled.mechanisms=PLAIN",
		`plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_platform="plain-secret";`}}
	oauth := &listener{name: "OAUTH", protocol: "SASL_PLAINTEXT", properties: []string{"sasl.enabled.mechanisms=OAUTHBEARER",
		`oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`}}
	b := startBrokers(t, 1, scram, mutual, plain, oauth)
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		altered, err := b.admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: "platform", Mechanism: m, Iterations: 4096, Password: "scram-secret"}})
		require.NoError(t, err)
		require.NoError(t, altered.Error())
	}
	l, uri := startService(t)
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1})
	require.NoError(t, c.Nodes[0].Register(t.Context(), uri, false))

	for name, tc := range map[string]struct {
		listener   *listener
		properties map[string]string
		wrong      map[string]string // what overrides them, so that the brokers refuse
	}{
		"scram512": {scram, map[string]string{"security.protocol": "sasl_ssl", "ssl.ca.pem": string(ca.pem), "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "platform", "sasl.password": "scram-secret"}, map[string]string{"sasl.password": "x"}},
		"scram256": {scram, map[string]string{"security.protocol": "sasl_ssl", "ssl.ca.pem": string(ca.pem), "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "platform", "sasl.password": "scram-secret"}, map[string]string{"sasl.username": "x"}},
		"mutual": {mutual, map[string]string{"security.protocol": "ssl", "ssl.ca.pem": string(ca.pem), "ssl.certificate.pem": string(clientCert), "ssl.key.pem": string(clientKey)},
			map[string]string{"ssl.certificate.pem": "", "ssl.key.pem": ""}},
		"plain": {plain, map[string]string{"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "platform", "sasl.password": "plain-secret"}, map[string]string{"sasl.password": "x"}},
		"oauth": {oauth, map[string]string{"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
			"sasl.oauthbearer.token.endpoint.url": tokenEndpoint(t), "sasl.oauthbearer.client.id": "platform", "sasl.oauthbearer.client.secret": "token-secret"},
			map[string]string{"sasl.oauthbearer.client.secret": "x"}},
	} {
		b.topic(name, 2)
		t.Run(name, func(t *testing.T) {
			before := l.count()
			properties := map[string]string{"bootstrap.servers": tc.listener.address}
			for n, v := range tc.properties {
				properties[n] = v
			}
			post(t, c, "/kafka-clusters", map[string]any{"name": name, "properties": properties})
			for i := range 20 {
				require.NoError(t, b.client.ProduceSync(t.Context(), record(name, 2, i)).FirstErr())
			}
			post(t, c, "/subscriptions?check=true", map[string]any{
				"source": "kafka://" + name + "/" + name, "sink": "service://Plain/run", "options": map[string]string{"auto.offset.reset": "earliest"},
			})
			await(t, l, before+20, time.Minute)

			for n, v := range tc.wrong {
				if properties[n] = v; v == "" {
					delete(properties, n)
				}
			}
			post(t, c, "/kafka-clusters", map[string]any{"name": name + "-wrong", "properties": properties})
			sub := post(t, c, "/subscriptions", map[string]any{"source": "kafka://" + name + "-wrong/" + name, "sink": "service://Plain/run"})
			require.Equal(t, "error", sub["state"], "%v", sub)
			require.Eventually(t, func() bool { return reasonOf(c, sub["id"]) == "not_authorized" }, time.Minute, 100*time.Millisecond, "the reason is not_authorized")
			t.Logf("wrong credentials: %v", sub["message"])
		})
	}
}

// reasonOf returns why a subscription is not read.
func reasonOf(c *harness.Cluster, id any) string {
	resp, err := http.Get(fmt.Sprintf("%s/subscriptions/%v", c.Nodes[0].Admin(), id))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var answer struct{ Reason string }
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	return answer.Reason
}
