package tokens

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// directory implements SecretDir.
type directory string

func (d directory) In(name string) string { return filepath.Join(string(d), name) }

func (d directory) ReplaceFile(name string, data []byte) error {
	return os.WriteFile(d.In(name), data, 0o600)
}

func tokenFile(t *testing.T, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", minAdminToken)+"\n"), mode))
	return path
}

func TestTheLogSaysHowToLogIn(t *testing.T) {
	for url, flag := range map[string]string{defaultURL: "platform login --token-file", "https://n1:9443/": "platform login --admin-url https://n1:9443/ --token-file"} {
		var log bytes.Buffer
		a := LocalToken{Dir: directory(t.TempDir()), Required: true, URL: url, Log: slog.New(slog.NewTextHandler(&log, nil))}
		_, err := a.Read()
		require.NoError(t, err)
		require.Contains(t, log.String(), flag)
	}
}

func TestTheTokenOfTheAdministratorIsCreatedOnce(t *testing.T) {
	a := LocalToken{Dir: directory(t.TempDir()), Log: slog.New(slog.DiscardHandler)}
	none, err := a.Read()
	require.NoError(t, err)
	require.Empty(t, none, "none is required")
	a.Required = true
	created, err := a.Read()
	require.NoError(t, err)
	again, err := a.Read()
	require.NoError(t, err)
	require.Equal(t, created, again)
	t.Setenv(adminTokenVariable, strings.Repeat("y", minAdminToken))
	text, err := a.Read()
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("y", minAdminToken), text)
	a.File = tokenFile(t, 0o600)
	text, err = a.Read()
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", minAdminToken), text)
}

func TestTokenFilesThatOthersCanReadAreRejected(t *testing.T) {
	for _, mode := range []os.FileMode{0o644, 0o604} {
		_, err := (&LocalToken{File: tokenFile(t, mode)}).Read()
		require.ErrorContains(t, err, "security.admin-token-file: every user of this machine has access")
		require.ErrorContains(t, err, "chmod 600")
	}
	var log strings.Builder
	_, err := (&LocalToken{File: tokenFile(t, 0o640), Log: slog.New(slog.NewTextHandler(&log, nil))}).Read()
	require.NoError(t, err, "secrets of Kubernetes are readable for a group")
	require.Contains(t, log.String(), "the group of a key file has access to it")
	_, err = (&LocalToken{File: filepath.Join(t.TempDir(), "absent")}).Read()
	require.ErrorContains(t, err, "does not exist")
	short := filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(short, []byte("secret"), 0o600))
	_, err = (&LocalToken{File: short}).Read()
	require.ErrorContains(t, err, "expected a token of 32 or more")
	t.Setenv(adminTokenVariable, "guessable")
	_, err = (&LocalToken{}).Read()
	require.ErrorContains(t, err, "openssl rand -hex 32")
}
