package enroll

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"platform/internal/certs"
	"platform/internal/config"
	"platform/metadata"
)

const (
	// rotationInterval is how often a node that replaces an authority checks the other members.
	rotationInterval = 3 * time.Second
	// settleTime is how long all members must present certificates of the new authority before a node
	// stops trusting the old one. Nodes reorder their keys of gossip packets at its beginning.
	settleTime = 10 * time.Second
	// probeTimeout bounds the check of one member, probeValidity the certificate that it uses.
	probeTimeout  = 5 * time.Second
	probeValidity = time.Minute
	// waitLogInterval bounds the log messages while a step waits for the same or different reasons.
	waitLogInterval = time.Minute
)

// Rotation replaces the authority of the certificate of this node by another one that was stored in
// the metadata. Each node does so in three steps, and no connection is refused in between: it trusts
// both authorities; once all members do, it gets a certificate of the new one; once all members have
// one, it trusts the new one only. A member that does not respond delays the next step.
type Rotation struct {
	Files    *Files
	Current  *certs.Store
	Registry Registry
	// Renew replaces the certificate of this node.
	Renew func(ctx context.Context) error
	Log   *slog.Logger

	nextCheck time.Time
	settled   time.Time // when all members were first seen with certificates of the new authority; zero: not yet
	waitsFor  string    // the last reason for waiting that was logged; empty if the last check did something
	loggedAt  time.Time
}

// pending reports whether the certificate of this node is not one of the authority in the metadata.
func (r *Rotation) pending() bool {
	stored, known := r.Registry.Authority()
	if !known {
		return false
	}
	authority, err := x509.ParseCertificate(stored.Certificate)
	return err == nil && r.Current.Current().Certificate.Leaf.CheckSignatureFrom(authority) != nil
}

// authority returns the authority in the metadata, with its key.
func (r *Rotation) authority() (*certs.Authority, error) {
	certificate, key, err := r.Registry.AuthorityKey()
	if err != nil {
		return nil, err
	}
	return certs.AuthorityOf(certificate, []byte(key))
}

// check does what is due.
func (r *Rotation) check(ctx context.Context, now time.Time) {
	pair := r.Current.Current()
	stored, known := r.Registry.Authority()
	if !known || len(pair.Authorities) == 1 && bytes.Equal(pair.Authorities[0].Raw, stored.Certificate) || now.Before(r.nextCheck) {
		return
	}
	r.nextCheck = now.Add(rotationInterval)
	err := r.advance(ctx, pair, now)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		r.waitsFor = ""
		return
	}
	if text := err.Error(); r.waitsFor == "" || text != r.waitsFor && now.Sub(r.loggedAt) >= waitLogInterval {
		r.waitsFor, r.loggedAt = text, now
		r.Log.Warn("authority of the cluster not replaced yet, retrying", "err", err)
	}
}

// advance takes the next step. The error states what it waits for.
func (r *Rotation) advance(ctx context.Context, pair *certs.Pair, now time.Time) error {
	authority, err := r.authority()
	if err != nil {
		return fmt.Errorf("this node cannot read the new authority: %w", err)
	}
	trusted := false
	for _, known := range pair.Authorities {
		trusted = trusted || known.Equal(authority.Cert)
	}
	switch {
	case !trusted:
		if err := r.Files.trust(authority); err != nil {
			return err
		}
		r.Log.Info("new authority of the cluster trusted beside the previous one")
		return r.Current.Reload()
	case pair.Certificate.Leaf.CheckSignatureFrom(authority.Cert) != nil:
		// A certificate for the check only: each that is issued is in the audit log.
		certificate, key, err := authority.IssueNode(r.Files.node, probeValidity)
		if err != nil {
			return err
		}
		probing, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return err
		}
		if err := r.each(ctx, probing, pair.CAs, func(*x509.Certificate) error { return nil }); err != nil {
			return fmt.Errorf("not all members trust the new authority yet: %w", err)
		}
		return r.Renew(ctx)
	}
	if err := r.each(ctx, pair.Certificate, pair.CAs, func(leaf *x509.Certificate) error {
		if leaf.CheckSignatureFrom(authority.Cert) != nil {
			return errors.New("its certificate is not of the new authority")
		}
		return nil
	}); err != nil {
		r.settled = time.Time{}
		return fmt.Errorf("not all members have a certificate of the new authority yet: %w", err)
	}
	if r.settled.IsZero() {
		r.settled = now
		return r.Files.preferPacketKey(authority)
	}
	if now.Sub(r.settled) < settleTime {
		return nil
	}
	if err := r.Files.trustOnly(authority); err != nil {
		return err
	}
	r.settled = time.Time{}
	r.Log.Info("previous authority of the cluster is no longer trusted")
	return r.Current.Reload()
}

// each connects to each other member with a certificate, and checks that of the member.
func (r *Rotation) each(ctx context.Context, pair tls.Certificate, roots *x509.CertPool, check func(leaf *x509.Certificate) error) error {
	for _, n := range r.Registry.Nodes() {
		if n.Removed || n.Name == r.Files.node {
			continue
		}
		leaf, err := r.probe(ctx, n, pair, roots)
		if err == nil {
			err = check(leaf)
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

// probe requests the health of a member with a certificate, and returns the certificate of the
// member. A member that does not trust the certificate ends the connection after the handshake.
func (r *Rotation) probe(ctx context.Context, n metadata.Node, pair tls.Certificate, roots *x509.CertPool) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the chain; nodes have no host names
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0]
			if len(leaf.URIs) != 1 || leaf.URIs[0].String() != certs.NodeURI(r.Files.cluster, n.Name).String() {
				return errors.New("another node responds at its address")
			}
			_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
			return err
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", config.HostPort(n.FabricAddress))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n"); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1."))); err != nil {
		return nil, err
	}
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// trust adds an authority, and its key of gossip packets, to those in use.
func (f *Files) trust(a *certs.Authority) error {
	packets, err := a.PacketKey()
	if err != nil {
		return err
	}
	if err := f.addLines(packetKeyFile, packets, false); err != nil {
		return err
	}
	known, err := os.ReadFile(f.dir.In(authorityFile))
	if err != nil {
		return err
	}
	return f.dir.ReplaceFile(authorityFile, append(known, a.CertPEM()...))
}

// preferPacketKey makes the key of an authority the one that encrypts gossip packets.
func (f *Files) preferPacketKey(a *certs.Authority) error {
	packets, err := a.PacketKey()
	if err != nil {
		return err
	}
	return f.addLines(packetKeyFile, packets, true)
}

// trustOnly removes all other authorities and their keys.
func (f *Files) trustOnly(a *certs.Authority) error {
	packets, err := a.PacketKey()
	if err != nil {
		return err
	}
	if f.PacketKeys() != "" {
		if err := f.dir.ReplaceFile(packetKeyFile, packets); err != nil {
			return err
		}
	}
	return f.dir.ReplaceFile(authorityFile, a.CertPEM())
}

// addLines adds a line to a file of keys, as its first or its last one. It does nothing if there is no
// such file: the node got no keys of packets.
func (f *Files) addLines(name string, line []byte, first bool) error {
	text, err := os.ReadFile(f.dir.In(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	line = bytes.TrimSpace(line)
	var lines [][]byte
	for known := range bytes.Lines(text) {
		if known = bytes.TrimSpace(known); len(known) > 0 && !bytes.Equal(known, line) {
			lines = append(lines, known)
		}
	}
	if first {
		lines = append([][]byte{line}, lines...)
	} else {
		lines = append(lines, line)
	}
	return f.dir.ReplaceFile(name, append(bytes.Join(lines, []byte("\n")), '\n'))
}
