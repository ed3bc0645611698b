package certs

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, path ...string) []byte {
	content, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return content
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	d := NewDirectory(filepath.Join(dir, "ca"))
	require.NoError(t, d.Init("c", time.Hour))
	require.ErrorContains(t, d.Init("c", time.Hour), "exists")
	n1, err := d.Node("n1", time.Minute)
	require.NoError(t, err)
	files := Files{Cert: filepath.Join(n1, "node.crt"), Key: filepath.Join(n1, "node.key"), CA: filepath.Join(n1, "ca.crt")}
	log := slog.New(slog.DiscardHandler)
	s, err := Open("test", files, nil, log)
	require.NoError(t, err)
	leaf := s.Current().Certificate.Leaf
	require.Equal(t, "spiffe://c/node/n1", leaf.URIs[0].String())
	verify := func(leaf *x509.Certificate) error {
		require.NoError(t, s.Reload())
		_, err := leaf.Verify(x509.VerifyOptions{Roots: s.Current().CAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	require.NoError(t, verify(leaf))
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077*map[bool]os.FileMode{false: 1}[path == dir], path)
		return nil
	}))

	require.NoError(t, d.Rotate(time.Hour))
	require.Equal(t, 2, certificates(read(t, n1, "ca.crt")))
	require.Equal(t, 2, bytes.Count(read(t, n1, "gossip.key"), []byte("\n")))
	require.NoError(t, verify(leaf), "both are trusted")
	require.ErrorContains(t, d.Rotate(time.Hour), "not finished")
	require.ErrorContains(t, d.Finish(), "node n1 has no certificate of the new authority")
	_, err = d.Node("n1", time.Minute)
	require.NoError(t, err)
	require.NoError(t, verify(leaf))
	require.NoError(t, d.Finish())
	require.Error(t, verify(leaf), "the old authority is no longer trusted")
	require.NoError(t, verify(s.Current().Certificate.Leaf))
	require.Equal(t, 1, bytes.Count(read(t, n1, "gossip.key"), []byte("\n")))

	require.NoError(t, os.Chmod(d.in(authorityKey), 0o644))
	_, err = d.Node("n2", time.Minute)
	require.ErrorContains(t, err, "chmod 600")
}

// A changed file is read again; while it does not fit the others, what was read before
// remains in use.
func TestFilesAreReadAgain(t *testing.T) {
	d := NewDirectory(t.TempDir())
	require.NoError(t, d.Init("c", time.Hour))
	dir, err := d.Node("n1", time.Hour)
	require.NoError(t, err)
	var logged bytes.Buffer
	s, err := Open("test", Files{Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key")}, nil, slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Contains(t, logged.String(), "expires soon")
	first := s.Current()
	other, err := d.Node("n2", time.Hour)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "node.key"), read(t, other, "node.key"), 0o600))
	s.poll()
	s.poll()
	require.Same(t, first, s.Current())
	require.Equal(t, 1, bytes.Count(logged.Bytes(), []byte("not reloaded")), "it is logged once")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "node.crt"), read(t, other, "node.crt"), 0o600))
	s.poll()
	require.Equal(t, "n2", s.Current().Certificate.Leaf.Subject.CommonName)
}

// Clients would refuse a certificate that has expired, so it does not replace a valid one.
func TestExpiredCertificatesReplaceNoValidOne(t *testing.T) {
	d := NewDirectory(t.TempDir())
	require.NoError(t, d.Init("c", time.Hour))
	dir, err := d.Node("n1", time.Hour)
	require.NoError(t, err)
	var logged bytes.Buffer
	authorities := filepath.Join(dir, "ca.crt")
	s, err := Open("test", Files{Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key"), CA: authorities}, nil, slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	replace := func(validity time.Duration) {
		other, err := d.Node("n2", validity)
		require.NoError(t, err)
		for _, name := range []string{"node.key", "node.crt"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), read(t, other, name), 0o600))
		}
		s.poll()
	}
	first := s.Current()
	replace(-time.Minute)
	require.Same(t, first, s.Current())
	require.Contains(t, logged.String(), "test: the certificate in cert-file has expired on ")

	// An authority that is removed meanwhile is no longer trusted.
	another, err := NewAuthority("c", time.Hour)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(authorities, another.CertPEM(), 0o600))
	s.poll()
	require.Equal(t, first.Certificate, s.Current().Certificate)
	require.False(t, first.CAs.Equal(s.Current().CAs))
	replace(time.Hour)
	require.Equal(t, "n2", s.Current().Certificate.Leaf.Subject.CommonName)

	// One that has expired itself is replaced.
	s.current.Load().Certificate.Leaf.NotAfter = time.Now().Add(-time.Minute)
	second := s.Current()
	replace(-time.Second)
	require.NotSame(t, second, s.Current())
}

// The server renews a certificate when a third of its validity is left, and warns when that is overdue.
func TestRenewedCertificatesAreReportedOnlyWhenOverdue(t *testing.T) {
	for _, validity := range []time.Duration{time.Minute, time.Hour, 30 * 24 * time.Hour} {
		d := NewDirectory(t.TempDir())
		require.NoError(t, d.Init("c", 366*24*time.Hour))
		dir, err := d.Node("n1", validity)
		require.NoError(t, err)
		var logged bytes.Buffer
		files := Files{Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key"), Renewed: true}
		s, err := Open("test", files, nil, slog.New(slog.NewTextHandler(&logged, nil)))
		require.NoError(t, err)
		s.warnExpiry(RenewAt(s.Current().Certificate.Leaf))
		require.Empty(t, logged.String(), validity)
		s.warnExpiry(s.Expires().Add(-validity / 10))
		require.Contains(t, logged.String(), "the attempts to renew it have failed", validity)
	}
}

// The error about an expired certificate does not wait for the daily interval of the warnings before it.
func TestExpiredCertificatesAreReported(t *testing.T) {
	d := NewDirectory(t.TempDir())
	require.NoError(t, d.Init("c", 366*24*time.Hour))
	dir, err := d.Node("n1", time.Hour)
	require.NoError(t, err)
	var logged bytes.Buffer
	s, err := Open("test", Files{Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key")}, nil, slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Contains(t, logged.String(), `level=WARN msg="certificate expires soon"`)
	logged.Reset()
	s.warnExpiry(s.Expires().Add(-time.Second))
	require.Empty(t, logged.String(), "it was reported less than a day ago")
	for range 2 {
		s.warnExpiry(s.Expires())
		require.Equal(t, 1, bytes.Count(logged.Bytes(), []byte(`level=ERROR msg="certificate has expired"`)))
		require.NotContains(t, logged.String(), "soon")
	}
}

// An authority whose key is lost would be the end of its cluster.
func TestAnInterruptedRotationLosesNoAuthority(t *testing.T) {
	dir := t.TempDir()
	d := NewDirectory(dir)
	require.NoError(t, d.Init("c", time.Hour))
	n1, err := d.Node("n1", time.Minute)
	require.NoError(t, err)
	oldKey, oldCert := read(t, dir, "ca.key"), read(t, dir, "ca.crt")
	for _, file := range []string{"gossip.key", "ca.key.next", "ca.crt"} {
		blocked := filepath.Join(dir, file+".new", "not empty")
		require.NoError(t, os.MkdirAll(blocked, 0o700))
		require.Error(t, d.Rotate(time.Hour), file)
		require.Equal(t, oldKey, read(t, dir, "ca.key"), file)
		require.Equal(t, oldCert, read(t, dir, "ca.crt"), file)
		_, err = d.Node("n1", time.Minute)
		require.NoError(t, err, file)
		require.NoError(t, os.RemoveAll(filepath.Dir(blocked)))
	}

	require.NoError(t, d.Rotate(time.Hour))
	newKey := read(t, dir, "ca.key")
	require.NoFileExists(t, filepath.Join(dir, "ca.key.next"))
	for name, key := range map[string][]byte{"rotation": oldKey, "creation": nil} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.key.next"), newKey, 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "ca.key")))
		if key != nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.key"), key, 0o600))
		}
		_, err = d.Node("n2", time.Minute)
		require.NoError(t, err, name)
		require.Equal(t, newKey, read(t, dir, "ca.key"), name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(n1, "ca.crt"), oldCert, 0o600))
	require.ErrorContains(t, d.Rotate(time.Hour), "not finished")
	require.Equal(t, 2, certificates(read(t, n1, "ca.crt")), "nodes trust both authorities")

	require.NoError(t, os.Remove(filepath.Join(dir, "ca.key")))
	_, err = d.Node("n2", time.Minute)
	require.ErrorIs(t, err, os.ErrNotExist)
}
