package tokens

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"platform/internal/access"
	"platform/internal/certs"
	"platform/internal/errcode"
)

// LocalTokenFile is the file in the data directory with the token that the node created.
const LocalTokenFile = "admin.token"

// adminTokenVariable is the environment variable with the token of the administrator.
const adminTokenVariable = "PLATFORM_ADMIN_TOKEN"

// defaultURL is the address that the command line client uses without configuration.
const defaultURL = "http://127.0.0.1:9070/"

// minAdminToken is the minimum size of a token of the administrator.
const minAdminToken = 32

// SecretDir is a directory for files that only their owner can read.
type SecretDir interface {
	// In returns the path of a file.
	In(name string) string
	// ReplaceFile creates a file in one step.
	ReplaceFile(name string, data []byte) error
}

// LocalToken determines the token of the administrator, which the cluster does not store: that of
// the configured file, of the environment variable PLATFORM_ADMIN_TOKEN, or of the data directory,
// in this order.
type LocalToken struct {
	File     string // security.admin-token-file
	Required bool   // creates a token if there is none
	Dir      SecretDir
	URL      string // of the admin API, for the log
	Log      *slog.Logger
}

// Read returns the token; "" if there is none and none is required.
func (a *LocalToken) Read() (string, error) {
	if a.File != "" {
		text, err := a.readToken(a.File, "security.admin-token-file")
		if errors.Is(err, fs.ErrNotExist) {
			err = errcode.New(errcode.RT0002, "security.admin-token-file: the file %s does not exist", a.File)
		}
		return text, err
	}
	if text := strings.TrimSpace(os.Getenv(adminTokenVariable)); text != "" {
		if len(text) < minAdminToken {
			return "", errcode.New(errcode.RT0002, "environment variable %s: expected a token of %d bytes or more, such as the output of `openssl rand -hex 32`", adminTokenVariable, minAdminToken)
		}
		return text, nil
	}
	if !a.Required {
		return "", nil
	}
	path := a.Dir.In(LocalTokenFile)
	text, err := a.readToken(path, "token of the administrator")
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	secret := access.NewSecret()
	if err := a.Dir.ReplaceFile(LocalTokenFile, []byte(secret.Text+"\n")); err != nil {
		return "", fmt.Errorf("write the token of the administrator: %w", err)
	}
	login := "platform login --token-file " + path
	if a.URL != defaultURL {
		login = "platform login --admin-url " + a.URL + " --token-file " + path
	}
	a.Log.Info("token of the administrator created", "file", path, "login", login)
	return secret.Text, nil
}

// readToken reads a file that not every user may read.
func (a *LocalToken) readToken(path, what string) (string, error) {
	switch err := certs.CheckPermissions(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "", err
	case err != nil:
		return "", errcode.New(errcode.RT0002, "%s: %w", what, err)
	}
	certs.WarnOfGroup(path, what, a.Log)
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	text := strings.TrimSpace(string(data))
	if len(text) < minAdminToken {
		return "", errcode.New(errcode.RT0002, "%s: the file %s has %d bytes; expected a token of %d or more", what, path, len(text), minAdminToken)
	}
	return text, nil
}
