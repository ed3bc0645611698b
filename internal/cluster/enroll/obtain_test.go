package enroll

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/keyring"
)

// testDir is a data directory. Writing a file fails if broken names it.
type testDir struct{ path, broken string }

var errBroken = errors.New("crash")

func (d *testDir) In(name string) string { return filepath.Join(d.path, name) }

func (d *testDir) ReplaceFile(name string, data []byte) error {
	if name == d.broken {
		return errBroken
	}
	return os.WriteFile(d.In(name), data, 0o600)
}

func testKeys(t *testing.T) *keyring.Keyring {
	keys, err := keyring.Parse(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", keyring.KeyBytes))))
	require.NoError(t, err)
	return keys
}

func newObtainer(t *testing.T, dir *testDir) *Obtainer {
	return &Obtainer{
		Files: NewFiles(dir, "c", "n1"), Keys: testKeys(t), MetadataDir: dir.In("metadata"), Validity: time.Hour, Founder: true,
		Log: slog.New(slog.DiscardHandler),
	}
}

// renewal returns a function that renews the certificate with an authority, and counts.
func (o *Obtainer) renewal(renewed *int, authority *certs.Authority) func(context.Context) error {
	return func(context.Context) error {
		*renewed++
		certificate, text, err := authority.IssueNode(o.Files.node, time.Hour)
		if err != nil {
			return err
		}
		key, err := certs.ParseKey(text)
		if err != nil {
			return err
		}
		return o.Files.renew(key, certificate)
	}
}

// A crash after any file was written leaves a node that starts with the same authority.
func TestFounderContinuesAfterACrash(t *testing.T) {
	dir := &testDir{path: t.TempDir()}
	o := newObtainer(t, dir)
	for _, dir.broken = range []string{founderFile, pendingFile, authorityFile, packetKeyFile, pairFile} {
		require.ErrorIs(t, o.Run(t.Context()), errBroken)
	}
	dir.broken = ""
	require.NoError(t, o.Run(t.Context()))
	leaf, err := o.Files.leaf()
	require.NoError(t, err)
	certificate, key, err := o.Files.founded(o.Keys)
	require.NoError(t, err)
	authority, err := certs.AuthorityOf(certificate, []byte(key))
	require.NoError(t, err)
	require.NoError(t, leaf.CheckSignatureFrom(authority.Cert))
	require.NoFileExists(t, dir.In(pendingFile))
	text, err := os.ReadFile(dir.In(founderFile))
	require.NoError(t, err)
	require.NotContains(t, string(text), "PRIVATE KEY", "the key of the authority is encrypted")

	require.NoError(t, o.Run(t.Context()))
	again, err := o.Files.leaf()
	require.NoError(t, err)
	require.Equal(t, leaf.SerialNumber, again.SerialNumber, "a restart keeps the certificate")
}

func TestMissingTokensAreExplained(t *testing.T) {
	var reports []string
	ctx, cancel := context.WithCancel(t.Context())
	dir := &testDir{path: t.TempDir()}
	c := &Client{
		Files:  newObtainer(t, dir).Files,
		Token:  func() (Token, error) { return ReadToken(filepath.Join(dir.path, "absent")) },
		Report: func(reason string) { reports = append(reports, reason); cancel() },
		Log:    slog.New(slog.DiscardHandler),
	}
	require.ErrorContains(t, c.Run(ctx), "join-token create")
	require.Len(t, reports, 1)
	require.Contains(t, reports[0], "the file gets the output of platform cluster join-token create --node n1, sent to a member")
}

func TestNodesWithoutAnyWayToACertificateDoNotStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Obtainer)
		want   string
	}{
		"no token":          {func(o *Obtainer) { o.Founder = false }, "join-token-file"},
		"no key of secrets": {func(o *Obtainer) { o.Keys = nil }, "security.secrets.key-file"},
		"no addresses":      {func(o *Obtainer) { o.Client = &Client{} }, "metadata-client.addresses"},
		"a bad name":        {func(o *Obtainer) { o.Files.node = "a/b" }, "cannot be part of a certificate"},
		"expired": {func(o *Obtainer) {
			authority, err := certs.NewAuthority("c", time.Hour)
			require.NoError(t, err)
			certificate, text, err := authority.IssueNode("n1", -time.Minute)
			require.NoError(t, err)
			key, err := certs.ParseKey(text)
			require.NoError(t, err)
			require.NoError(t, o.Files.replace(key, certificate))
		}, "join-token create --node n1"},
	} {
		dir := &testDir{path: t.TempDir()}
		o := newObtainer(t, dir)
		c.change(o)
		require.ErrorContains(t, o.Run(t.Context()), c.want, name)
	}
}
