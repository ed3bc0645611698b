package nodetls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/certs"
	"platform/internal/logsample"
)

// Mode is whether connections between nodes are secured.
type Mode int

// The modes, which a running cluster passes through in this order, node by node.
const (
	Off     Mode = iota // plain connections only
	Allow               // TLS with nodes that support it, plain connections with others
	Require             // TLS only
)

// Config configures a Security.
type Config struct {
	Mode          Mode
	Cluster, Node string // names
	Files         certs.Files
	PacketKeyFile string // key of gossip packets; may be empty with other modes than Require
	Log           *slog.Logger
}

// Security secures the connections of a node to others. A nil Security is one of mode Off.
type Security struct {
	cfg     Config
	store   *certs.Store
	packets *packetKeys
	log     *slog.Logger
	events  *logsample.Sampler[string]
	plain   atomic.Uint64 // connections without TLS, in mode Allow
	refused atomic.Uint64

	enrolling atomic.Pointer[func(net.Addr) bool] // nil: nodes without a certificate are refused
}

// Open reads the files. It returns nil in mode Off.
func Open(cfg Config) (*Security, error) {
	if cfg.Mode == Off {
		return nil, nil //nolint:nilnil // a nil Security is one of mode Off
	}
	s := &Security{cfg: cfg, log: cfg.Log, events: logsample.New[string](1, eventInterval, maxEvents)}
	var err error
	if s.store, err = certs.Open("security.node-tls", cfg.Files, s.checkOwn, cfg.Log); err != nil {
		return nil, err
	}
	if cfg.PacketKeyFile != "" {
		if s.packets, err = openPacketKeys(cfg.PacketKeyFile); err != nil {
			return nil, fmt.Errorf("security.node-tls.packet-key-file: %w", err)
		}
	}
	return s, nil
}

// checkOwn rejects a certificate that other nodes would reject.
func (s *Security) checkOwn(p *certs.Pair) error {
	if p.CAs == nil {
		return errors.New("ca-file is required")
	}
	leaf := p.Certificate.Leaf
	node, err := s.identity(leaf)
	switch {
	case err != nil:
		return err
	case node != s.cfg.Node:
		return fmt.Errorf("the certificate is that of node %q, and this is node %q (node-name)", node, s.cfg.Node)
	case time.Now().After(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired on %s", leaf.NotAfter.Format(time.DateOnly))
	}
	return s.verifyChain(p, leaf, p.Certificate.Certificate[1:], x509.ExtKeyUsageAny)
}

func (s *Security) verifyChain(p *certs.Pair, leaf *x509.Certificate, rest [][]byte, usage x509.ExtKeyUsage) error {
	intermediates := x509.NewCertPool()
	for _, der := range rest {
		if cert, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(cert)
		}
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: p.CAs, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

func (s *Security) identity(cert *x509.Certificate) (string, error) {
	return nodeIn(s.cfg.Cluster, cert)
}

// nodeIn returns the name of the node in a certificate of a cluster.
func nodeIn(cluster string, cert *x509.Certificate) (string, error) {
	prefix := certs.NodeURI(cluster, "").String()
	if len(cert.URIs) == 1 {
		if node, ok := strings.CutPrefix(cert.URIs[0].String(), prefix); ok && node != "" && !strings.Contains(node, "/") {
			return node, nil
		}
	}
	return "", fmt.Errorf("the certificate is not that of a node of cluster %q: it must contain exactly one URI, %s<name>", cluster, prefix)
}

// Mode returns the mode; Off for a nil Security.
func (s *Security) Mode() Mode {
	if s == nil {
		return Off
	}
	return s.cfg.Mode
}

// Store returns the certificate of the node, nil in mode Off.
func (s *Security) Store() *certs.Store {
	if s == nil {
		return nil
	}
	return s.store
}

// Refused returns the number of connections that were refused, or would be in mode Require.
func (s *Security) Refused() uint64 { return s.refused.Load() }

// Run reads changed files again, until ctx ends.
func (s *Security) Run(ctx context.Context) error {
	if s == nil {
		<-ctx.Done()
		return nil
	}
	var packets sync.WaitGroup
	if s.packets != nil {
		packets.Go(func() { s.packets.run(ctx, s.log) })
	}
	defer packets.Wait()
	return s.store.Run(ctx)
}

// tlsConfig returns the configuration of one handshake, in which peers are verified with the
// files read last.
func (s *Security) tlsConfig(peer *string, server bool) *tls.Config {
	p := s.store.Current()
	usage := x509.ExtKeyUsageServerAuth
	if server {
		usage = x509.ExtKeyUsageClientAuth
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.Certificate},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the chain; nodes have no host names
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			*peer, err = s.verify(p, &state, usage)
			if err != nil && s.cfg.Mode == Allow { // it could connect without TLS as well
				s.refuse("certificate of a node is not valid, which mode \"require\" would refuse", nil, err)
				return nil
			}
			return err
		},
	}
}

// verify returns the name in the certificate of the other node.
func (s *Security) verify(p *certs.Pair, state *tls.ConnectionState, usage x509.ExtKeyUsage) (string, error) {
	if len(state.PeerCertificates) == 0 {
		return "", errors.New("no certificate")
	}
	var rest [][]byte
	for _, cert := range state.PeerCertificates[1:] {
		rest = append(rest, cert.Raw)
	}
	leaf := state.PeerCertificates[0]
	if err := s.verifyChain(p, leaf, rest, usage); err != nil {
		return "", err
	}
	return s.identity(leaf)
}

// Conn is a connection to an authenticated node, or of one that enrolls.
type Conn struct {
	net.Conn
	node      string
	enrolling bool
}

// Node returns the name in the certificate of the other node, "" if it is not authenticated,
// which only mode Allow permits.
func (c *Conn) Node() string { return c.node }

// handshakeTimeout bounds a handshake.
const handshakeTimeout = 5 * time.Second

// Server authenticates a node that has connected and begins with a TLS record.
func (s *Security) Server(ctx context.Context, raw net.Conn) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	var node string
	var enrolling bool
	cfg := s.tlsConfig(&node, true)
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (enroll *tls.Config, err error) {
		enroll, err = s.enrollConfig(hello)
		enrolling = enroll != nil
		return enroll, err
	}
	secure := tls.Server(raw, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		s.refuse("node refused", raw.RemoteAddr(), err)
		return nil, err
	}
	return &Conn{secure, node, enrolling}, nil
}

// AcceptsPlain reports whether a node may connect without TLS.
func (s *Security) AcceptsPlain() bool {
	if s.Mode() == Allow {
		s.plain.Add(1)
	}
	return s.Mode() != Require
}

// RefusePlain counts a connection without TLS that was refused.
func (s *Security) RefusePlain(from net.Addr) {
	s.refuse("node refused", from, errors.New("it uses no TLS, which security.node-tls.mode = \"require\" demands"))
}

// Dial connects by dial and authenticates the other node. In mode Allow it connects again
// without TLS if that fails.
func (s *Security) Dial(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	raw, err := dial(ctx)
	if err != nil || s.Mode() == Off {
		return raw, err
	}
	secure, err := s.client(ctx, raw)
	if err == nil || s.Mode() == Require || ctx.Err() != nil {
		return secure, err
	}
	s.plain.Add(1)
	return dial(ctx)
}

func (s *Security) client(ctx context.Context, raw net.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	var node string
	secure := tls.Client(raw, s.tlsConfig(&node, false))
	if err := secure.HandshakeContext(ctx); err != nil {
		raw.Close()
		if ctx.Err() == nil {
			s.refuse("no TLS connection to a node", raw.RemoteAddr(), err)
		}
		return nil, handshakeError(raw, err)
	}
	return &Conn{Conn: secure, node: node}, nil
}

// Bounds of the log messages about refused nodes.
const (
	maxEvents     = 64
	eventInterval = 10 * time.Second
)

// refuse counts and logs, at a limited rate, a connection that was refused. from may be nil.
func (s *Security) refuse(message string, from net.Addr, err error) {
	s.refused.Add(1)
	host := ""
	if tcp, ok := from.(*net.TCPAddr); ok {
		host = tcp.IP.String() // each connection has another port
	}
	kind := err.Error()
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		kind = fmt.Sprint("invalid ", invalid.Reason) // the text contains the time
	}
	if skipped, due := s.events.Admit(host+" "+kind, time.Now()); due {
		s.log.Warn(message, "address", host, "err", err, "repeated", skipped) //nolint:sloglint // a constant of the caller
	}
}
