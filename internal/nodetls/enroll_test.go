package nodetls

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
)

// newSecurity returns the Security of node n1 of cluster "c".
func newSecurity(t *testing.T, ca *certs.Authority, mode Mode) *Security {
	dir := t.TempDir()
	cert, key, err := ca.IssueNode("n1", time.Hour)
	require.NoError(t, err)
	packets, err := ca.PacketKey()
	require.NoError(t, err)
	in := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	s, err := Open(Config{
		Mode: mode, Cluster: "c", Node: "n1", PacketKeyFile: in("gossip.key", packets), Log: slog.New(slog.DiscardHandler),
		Files: certs.Files{Cert: in("node.crt", cert), Key: in("node.key", key), CA: in("ca.crt", ca.CertPEM())},
	})
	require.NoError(t, err)
	return s
}

func newAuthority(t *testing.T, cluster string) *certs.Authority {
	ca, err := certs.NewAuthority(cluster, time.Hour)
	require.NoError(t, err)
	return ca
}

// handshake connects a client to a server, and returns what each of them gets.
func handshake(t *testing.T, server *Security, client func(context.Context, net.Conn) (net.Conn, error)) (accepted *Conn, refused, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	raw, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { raw.Close() })
	other, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	done := make(chan struct{})
	go func() {
		defer close(done)
		if accepted, refused = server.Server(t.Context(), other); refused != nil {
			other.Close()
		}
	}()
	conn, err := client(t.Context(), raw)
	if err != nil {
		raw.Close()
	} else if _, err = conn.Write([]byte("x")); err == nil {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a client learns only when it reads that its certificate is refused
		if _, err = conn.Read(make([]byte, 1)); os.IsTimeout(err) {
			err = nil
		}
	}
	<-done
	return accepted, refused, err
}

func TestEnrollingNodeVerifiesTheAuthority(t *testing.T) {
	ca, other := newAuthority(t, "c"), newAuthority(t, "c")
	for name, c := range map[string]struct {
		cluster string
		hash    [sha256.Size]byte
	}{
		"the hash of another authority":   {"c", sha256.Sum256(other.Cert.Raw)},
		"another cluster":                 {"d", sha256.Sum256(ca.Cert.Raw)},
		"the hash of the node's own cert": {"c", [sha256.Size]byte{1}},
	} {
		for _, mode := range []Mode{Allow, Require} {
			s := newSecurity(t, ca, mode)
			s.AdmitEnrolling(func(net.Addr) bool { return true })
			if c.hash[0] == 1 {
				c.hash = sha256.Sum256(s.Store().Current().Certificate.Certificate[0])
			}
			_, _, err := handshake(t, s, func(ctx context.Context, raw net.Conn) (net.Conn, error) {
				return Enroll(ctx, raw, c.cluster, c.hash)
			})
			require.ErrorIs(t, err, ErrOtherAuthority, name)
		}
	}
	s := newSecurity(t, ca, Require)
	s.AdmitEnrolling(func(net.Addr) bool { return true })
	accepted, refused, err := handshake(t, s, func(ctx context.Context, raw net.Conn) (net.Conn, error) {
		return Enroll(ctx, raw, "c", sha256.Sum256(ca.Cert.Raw))
	})
	require.NoError(t, err)
	require.NoError(t, refused)
	require.True(t, accepted.Enrolling())
	require.Empty(t, accepted.Node())
	text, err := io.ReadAll(io.LimitReader(accepted, 1))
	require.NoError(t, err)
	require.Equal(t, "x", string(text))
}

func TestPortsWithoutTLSAreExplained(t *testing.T) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer theirs.Close()
		_, _ = theirs.Read(make([]byte, 4096))
		_, _ = theirs.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	}()
	_, err := Enroll(t.Context(), ours, "c", [32]byte{})
	require.ErrorContains(t, err, "it does not speak TLS; the address must be the node port (bind-port, 5122 by default) of a node with security.node-tls")
}

func TestNodesWithoutCertificateAreRefusedOtherwise(t *testing.T) {
	ca := newAuthority(t, "c")
	client := func(protocols ...string) func(context.Context, net.Conn) (net.Conn, error) {
		return func(ctx context.Context, raw net.Conn) (net.Conn, error) {
			secure := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
			return secure, secure.HandshakeContext(ctx)
		}
	}
	s := newSecurity(t, ca, Require)
	_, refused, err := handshake(t, s, client(EnrollProtocol))
	require.ErrorIs(t, refused, errNotEnrolling, "enrollment is not permitted")
	require.Error(t, err)
	s.AdmitEnrolling(func(net.Addr) bool { return false })
	_, refused, _ = handshake(t, s, client(EnrollProtocol))
	require.ErrorIs(t, refused, errNotEnrolling)
	s.AdmitEnrolling(func(net.Addr) bool { return true })
	for _, protocols := range [][]string{nil, {"h2"}} {
		_, refused, _ = handshake(t, s, client(protocols...))
		require.ErrorContains(t, refused, "certificate", protocols)
	}
	accepted, refused, err := handshake(t, s, client("h2", EnrollProtocol))
	require.NoError(t, err)
	require.NoError(t, refused)
	require.True(t, accepted.Enrolling(), "whatever else the client offers")
}
