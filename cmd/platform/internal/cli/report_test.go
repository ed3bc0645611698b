package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/internal/httpserver"
)

// longTimeouts are for tests of responses: a busy machine may suspend a test for longer than the default timeouts.
var longTimeouts = []string{"--connect-timeout", "2m", "--request-timeout", "2m"}

// TestHintsAboutTLS sends requests to a server with TLS without its authority, and without TLS, and to
// one whose certificate has expired.
func TestHintsAboutTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	expired := httptest.NewUnstartedServer(http.NotFoundHandler())
	expired.Config.ErrorLog = log.New(io.Discard, "", 0)
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{expiredCertificate(t)}}
	expired.StartTLS()
	defer expired.Close()
	responding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": httpserver.RequiresTLS})
	}))
	defer responding.Close()
	for address, hint := range map[string]string{
		responding.URL: "use an address that begins with https://",
		expired.URL:    "Replace the certificate of the server, or correct the clock of this machine.",
		server.URL:     "with --ca-file or PLATFORM_CA_FILE",
		strings.Replace(server.URL, "https:", "http:", 1): "use an address that begins with https://",
	} {
		var out, errs bytes.Buffer
		system := command.System{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Home: t.TempDir()}
		require.Equal(t, exitError, Run(t.Context(), slices.Concat(longTimeouts, []string{"--admin-url", address, "services", "list"}), system))
		require.Contains(t, errs.String(), hint)
	}
}

func expiredCertificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
}

func TestExpiredTokensAreMarked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"tokens":[{"id":"a","name":"old","roles":["viewer"],"created_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-02T00:00:00Z","expired":true}]}`)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	system := command.System{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Home: t.TempDir()}
	require.Zero(t, Run(t.Context(), slices.Concat(longTimeouts, []string{"--admin-url", server.URL, "tokens", "list"}), system), errs.String())
	require.Contains(t, out.String(), "(expired)")
}

// The server refuses queries of more than 1 MiB.
func TestStatusesOfManyPausesAreReadInParts(t *testing.T) {
	const many, limit = 100_000, 1 << 20
	queries := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) > limit {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		queries++
		_, _ = io.WriteString(w, `{"columns":[],"rows":[]}`)
	}))
	defer server.Close()
	a := &app{App: &command.App{Client: client.New(client.Options{AdminURL: server.URL, Log: slog.New(slog.DiscardHandler)})}}
	list := make([]client.BatchSuccess, many)
	for i := range list {
		list[i].ID = "inv_1lcoQ0NpY38u6ubMJDnvSp6kVzhKzh4WDn"
	}
	pending, err := a.pausing(t.Context(), list)
	require.NoError(t, err)
	require.Empty(t, pending)
	require.Equal(t, many/statusChunk, queries)
}
