package nodetls

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
)

// EnrollProtocol is the application protocol (ALPN) of a node that has no certificate yet and
// requests one.
const EnrollProtocol = "platform-enroll/1"

// maxAuthorities is the number of certificates of authorities that a node without a certificate
// gets in the handshake.
const maxAuthorities = 8

// maxPacketKeys is the size of a file with packet keys.
const maxPacketKeys = 64 << 10

var (
	errNotEnrolling = errors.New("it has no certificate and requests one, which is not permitted now")

	// ErrOtherAuthority means that a node cannot prove that it belongs to the expected cluster.
	ErrOtherAuthority = errors.New("its certificate was not issued by the authority that the join token names")
)

// AdmitEnrolling lets nodes without a certificate connect, if admit returns true for their
// address. Their connections use EnrollProtocol only.
func (s *Security) AdmitEnrolling(admit func(net.Addr) bool) { s.enrolling.Store(&admit) }

// Enrolling reports whether the other node has no certificate and uses EnrollProtocol.
func (c *Conn) Enrolling() bool { return c.enrolling }

// enrollConfig returns the configuration for a client that uses EnrollProtocol, nil for others.
// The chain contains the authorities, of which the client knows only a hash.
func (s *Security) enrollConfig(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if !slices.Contains(hello.SupportedProtos, EnrollProtocol) {
		return nil, nil //nolint:nilnil // the configuration of other clients is used
	}
	if admit := s.enrolling.Load(); admit == nil || !(*admit)(hello.Conn.RemoteAddr()) {
		return nil, errNotEnrolling
	}
	p := s.store.Current()
	chain := p.Certificate
	chain.Certificate = slices.Clone(chain.Certificate)
	for _, authority := range p.Authorities[:min(len(p.Authorities), maxAuthorities)] {
		chain.Certificate = append(chain.Certificate, authority.Raw)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{chain}, NextProtos: []string{EnrollProtocol},
		ClientAuth: tls.NoClientCert, SessionTicketsDisabled: true,
	}, nil
}

// Enroll secures a connection of a node that has no certificate yet. It fails with
// ErrOtherAuthority, before anything is sent, unless the other node belongs to the cluster and its
// certificate was issued by the authority with a hash.
func Enroll(ctx context.Context, raw net.Conn, cluster string, authority [sha256.Size]byte) (net.Conn, error) {
	secure := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{EnrollProtocol},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the chain; nodes have no host names
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyPinned(&state, cluster, authority)
		},
	})
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, handshakeError(raw, err)
	}
	return secure, nil
}

// handshakeError adds to the error of a client's handshake what to do about it.
func handshakeError(raw net.Conn, err error) error {
	if _, other := errors.AsType[tls.RecordHeaderError](err); other {
		err = fmt.Errorf("it does not speak TLS; the address must be the node port (bind-port, 5122 by default) of a node with security.node-tls: %w", err)
	}
	return fmt.Errorf("TLS with node at %s: %w", raw.RemoteAddr(), err)
}

// verifyPinned checks that a certificate was issued by the authority with a hash, and is that of a
// node of the cluster.
func verifyPinned(state *tls.ConnectionState, cluster string, authority [sha256.Size]byte) error {
	at := slices.IndexFunc(state.PeerCertificates, func(cert *x509.Certificate) bool { return sha256.Sum256(cert.Raw) == authority })
	if at < 1 { // the first one is that of the node
		return ErrOtherAuthority
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(state.PeerCertificates[at])
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	leaf := state.PeerCertificates[0]
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		return fmt.Errorf("%w: %w", ErrOtherAuthority, err)
	}
	if _, err := nodeIn(cluster, leaf); err != nil {
		return fmt.Errorf("%w: %w", ErrOtherAuthority, err)
	}
	if state.NegotiatedProtocol != EnrollProtocol {
		return errors.New("the server does not issue certificates; upgrade it")
	}
	return nil
}

// PacketKeys returns the keys of gossip packets, as in their file; nil if this node has none.
func (s *Security) PacketKeys() ([]byte, error) {
	if s.packets == nil {
		return nil, nil
	}
	file, err := os.Open(s.packets.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxPacketKeys))
}

// Trusts reports whether this node accepts certificates that an authority issues.
func (s *Security) Trusts(authority *x509.Certificate) bool {
	return slices.ContainsFunc(s.store.Current().Authorities, authority.Equal)
}
