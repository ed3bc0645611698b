package command

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/term"
)

// loginApp returns a command line without a server, whose messages go to a buffer.
func loginApp(t *testing.T) (*App, *bytes.Buffer) {
	out := new(bytes.Buffer)
	noEnv := func(string) string { return "" }
	a := &App{System: System{Out: out, Err: out, Getenv: noEnv}, Print: term.New(out, noEnv, false, term.Human), Hint: term.New(out, noEnv, false, term.Human)}
	a.options.request, a.options.connect = Timeout(30*time.Second), Timeout(30*time.Second)
	a.Profile.File = filepath.Join(t.TempDir(), "config.toml")
	return a, out
}

func TestAHostileProviderControlsNeitherTheTerminalNorTheProcess(t *testing.T) {
	for _, interval := range []int64{-1, -1 << 62} {
		var server *httptest.Server
		server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": server.URL, "authorization_endpoint": server.URL + "/a", "token_endpoint": server.URL + "/t", "device_authorization_endpoint": server.URL + "/d",
				"jwks_uri": server.URL + "/k", "device_code": "code", "user_code": "A\x1b[2J\u009b2J", "verification_uri": "https://idp.example/\x1b]0;x\a\r",
				"verification_uri_complete": "https://idp.example/\u202e\x1b[1A", "interval": interval, "access_token": "access", "id_token": "id",
			})
		}))
		defer server.Close()
		a, out := loginApp(t)
		p, err := a.provider(t.Context(), server.URL, "cli", nil)
		require.NoError(t, err)
		tokens, err := p.authorize(t.Context(), a)
		p.client.CloseIdleConnections()
		require.NoError(t, err)
		require.Equal(t, "access", tokens.AccessToken)
		for _, control := range []string{"\x1b", "\u009b", "\a", "\r", "\u202e"} {
			require.NotContains(t, out.String(), control)
		}
	}
}

func TestAClientThatTheProviderRefusesIsNamed(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/d" {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": "invalid_client", "error_description": "client authentication failed"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": server.URL, "authorization_endpoint": server.URL + "/a", "token_endpoint": server.URL + "/t",
			"device_authorization_endpoint": server.URL + "/d", "jwks_uri": server.URL + "/k",
		})
	}))
	defer server.Close()
	a, _ := loginApp(t)
	p, err := a.provider(t.Context(), server.URL, "clx", nil)
	require.NoError(t, err)
	_, err = p.authorize(t.Context(), a)
	p.client.CloseIdleConnections()
	require.EqualError(t, err, `the identity provider does not accept the client "clx" for the device flow: client authentication failed`)
	require.Contains(t, HintFor(err), "security.oidc.cli-client-id")
}

func TestCredentialsReplaceALinkAndAreForTheirOwnerOnly(t *testing.T) {
	a, _ := loginApp(t)
	target, path := filepath.Join(t.TempDir(), "elsewhere"), credentialsFile(a.Profile.File)
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	require.NoError(t, os.Symlink(target, path))
	require.NoError(t, a.Store(Credentials{Token: "secret"}))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "a regular file")
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Empty(t, data)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = readCredentials(path)
	require.ErrorContains(t, err, "chmod 600")
}

// A token is sent only to the addresses that it was stored for, even if another process replaces it
// while this one waits to renew it.
func TestRenewalDoesNotUseTheTokenOfAnotherServer(t *testing.T) {
	a, _ := loginApp(t)
	a.Profile.Environment, a.Profile.AdminURL, a.Profile.IngressURL = "e", "https://first.example", "https://first.example"
	require.NoError(t, a.Store(Credentials{AdminURL: "https://second.example", IngressURL: "https://second.example", Token: "secret of the second"}))
	token, err := a.renewed(t.Context())
	require.Error(t, err)
	require.Empty(t, token)
}
