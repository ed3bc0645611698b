package node

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/config"
)

// The listeners for clients use TLS, negotiate HTTP/2, accept certificates of clients, and use
// replaced files without a restart.
func TestListenersUseTLS(t *testing.T) {
	ca, clients, dir := newAuthority(t), newAuthority(t), t.TempDir()
	files := nodeFiles(t, ca, dir, "n1")
	clientCA := filepath.Join(dir, "clients.crt")
	require.NoError(t, os.WriteFile(clientCA, clients.CertPEM(), 0o600))
	c := newTestClusterWith(t, 1, func(cfg *config.Config) {
		cfg.Ingress.TLS = config.ListenerTLS{CertFile: files.CertFile, KeyFile: files.KeyFile, ClientCAFile: clientCA, RequireClientCert: true}
		cfg.Admin.TLS = config.ListenerTLS{CertFile: files.CertFile, KeyFile: files.KeyFile, ClientCAFile: clientCA}
	})
	cfg := c.nodes[0].cfg
	get := func(port int, path string, http2 bool, pair *tls.Certificate) (*http.Response, string, error) {
		var protocols http.Protocols
		protocols.SetHTTP1(true)
		protocols.SetHTTP2(http2)
		transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, // the certificates of nodes contain no host names
			VerifyConnection: func(state tls.ConnectionState) error {
				return state.PeerCertificates[0].CheckSignatureFrom(ca.Cert)
			},
		}}
		if pair != nil {
			transport.TLSClientConfig.Certificates = []tls.Certificate{*pair}
		}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Get(fmt.Sprintf("https://127.0.0.1:%d%s", port, path))
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, string(body), err
	}
	admin, ingress := cfg.Admin.BindPort, cfg.Ingress.BindPort
	require.Eventually(t, func() bool {
		resp, _, err := get(admin, "/health", true, nil)
		return err == nil && resp.StatusCode == http.StatusOK
	}, waitTimeout, 20*time.Millisecond)
	good, bad := issued(t, clients, "client"), issued(t, newAuthority(t), "client")
	for _, http2 := range []bool{true, false} {
		for _, pair := range []*tls.Certificate{nil, &good} {
			resp, _, err := get(admin, "/health", http2, pair)
			require.NoError(t, err)
			require.Equal(t, map[bool]int{true: 2, false: 1}[http2], resp.ProtoMajor)
		}
		_, _, err := get(admin, "/health", http2, &bad)
		require.Error(t, err)
		resp, _, err := get(ingress, "/platform/health", http2, &good)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		for _, pair := range []*tls.Certificate{nil, &bad} {
			_, _, err = get(ingress, "/platform/health", http2, pair)
			require.Error(t, err)
		}
	}
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/health", admin))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode, "no HTTP without TLS")
	_, body, err := get(admin, "/cluster/nodes", true, nil)
	require.NoError(t, err)
	require.Contains(t, body, fmt.Sprintf("https://127.0.0.1:%d", ingress), "the address that is advertised")
	_, body, err = get(admin, "/metrics", true, nil)
	require.NoError(t, err)
	for _, listener := range []string{"admin", "ingress"} {
		require.True(t, strings.Contains(body, `platform_certificate_expiry_timestamp_seconds{`) && strings.Contains(body, `listener="`+listener+`"`), listener)
	}

	served := func() *x509.Certificate {
		resp, _, err := get(admin, "/health", true, nil)
		if err != nil {
			return &x509.Certificate{}
		}
		return resp.TLS.PeerCertificates[0]
	}
	first := served()
	nodeFiles(t, ca, dir, "n1") // replaced
	require.Eventually(t, func() bool { return !served().Equal(first) }, waitTimeout, 20*time.Millisecond)
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
	require.Eventually(t, func() bool {
		resp, _, err := get(admin, "/health", true, nil)
		return err == nil && resp.StatusCode == http.StatusOK
	}, waitTimeout, 20*time.Millisecond)
}

// Errors name the key of the configuration, which differs from that of the certificate of a node.
func TestErrorsNameTheAuthorityOfClients(t *testing.T) {
	dir := t.TempDir()
	files := nodeFiles(t, newAuthority(t), dir, "n1")
	cfg := config.Default()
	cfg.Admin.TLS = config.ListenerTLS{CertFile: files.CertFile, KeyFile: files.KeyFile, ClientCAFile: filepath.Join(dir, "missing.crt")}
	_, err := openListenerTLS(cfg, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "admin.tls.client-ca-file: ")
}

func TestReloadOnRequest(t *testing.T) {
	dir := t.TempDir()
	files := nodeFiles(t, newAuthority(t), dir, "n1")
	store, err := certs.Open("admin.tls", certs.Files{Cert: files.CertFile, Key: files.KeyFile}, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	first := store.Expires()
	info, err := os.Stat(files.CertFile)
	require.NoError(t, err)
	nodeFiles(t, newAuthority(t), dir, "n1")
	for _, path := range []string{files.CertFile, files.KeyFile} { // as after a copy that preserves times
		require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
	require.NoError(t, store.Reload())
	require.False(t, store.Expires().Before(first))
}
