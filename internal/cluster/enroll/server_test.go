package enroll

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/nodetls"
	"platform/metadata"
)

// registry is metadata with one authority.
type registry struct {
	authority *certs.Authority

	mu      sync.Mutex // covers the fields below
	tokens  []metadata.JoinToken
	refuse  error
	uses    []metadata.JoinTokenUse
	actions []metadata.Action
	members []string
}

func (r *registry) Authority() (metadata.Authority, bool) {
	return metadata.Authority{Certificate: r.authority.Cert.Raw}, true
}

func (r *registry) AuthorityKey() ([]byte, string, error) {
	key, err := r.authority.KeyPEM()
	return r.authority.Cert.Raw, string(key), err
}

func (r *registry) JoinTokens() []metadata.JoinToken {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tokens
}

func (r *registry) CheckJoinToken(*metadata.JoinTokenUse) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refuse
}

func (r *registry) UseJoinToken(_ context.Context, use *metadata.JoinTokenUse) (metadata.JoinToken, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses = append(r.uses, *use)
	return metadata.JoinToken{}, nil
}

func (r *registry) RecordAction(_ context.Context, a metadata.Action) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actions = append(r.actions, a)
	return nil
}

func (r *registry) Nodes() (nodes []metadata.Node) {
	for _, name := range r.members {
		nodes = append(nodes, metadata.Node{Name: name})
	}
	return append(nodes, metadata.Node{Name: "removed", Removed: true})
}

// service is a server for nodes without a certificate.
type service struct {
	*registry
	*Server
	address string
	logged  *lockedBuffer
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newService(t *testing.T) *service {
	authority, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	dir := &testDir{path: t.TempDir()}
	o := newObtainer(t, dir)
	require.NoError(t, o.issue(authority))
	s := &service{registry: &registry{authority: authority, members: []string{"n1", "n2"}}, logged: new(lockedBuffer)}
	s.tokens = []metadata.JoinToken{{ID: "t", ExpiresAt: time.Now().Add(time.Hour)}}
	log := slog.New(slog.NewTextHandler(s.logged, nil))
	security, err := nodetls.Open(nodetls.Config{
		Mode: nodetls.Require, Cluster: "c", Node: "n1", Files: o.Files.Certificate(), PacketKeyFile: o.Files.PacketKeys(), Log: log,
	})
	require.NoError(t, err)
	issuer := NewIssuer(IssuerConfig{Cluster: "c", Node: "n1", Validity: time.Hour, Registry: func() Registry { return s.registry }})
	s.Server = NewServer(issuer, security, log)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = l.Addr().String()
	enrolling := &enrollListener{Listener: l, security: security}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, enrolling) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return s
}

// enrollListener authenticates like the node port.
type enrollListener struct {
	net.Listener
	security *nodetls.Security
}

func (l *enrollListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		conn, err := l.security.Server(context.Background(), raw)
		if err == nil && conn.Enrolling() {
			return conn, nil
		}
		raw.Close()
	}
}

// client returns a client for a node with a token.
func (s *service) client(t *testing.T, node string, token Token) (*Client, *testDir) {
	dir := &testDir{path: t.TempDir()}
	return &Client{
		Files: NewFiles(dir, "c", node), Token: func() (Token, error) { return token, nil }, Addresses: []string{s.address},
		Report: func(string) {}, Log: slog.New(slog.DiscardHandler),
	}, dir
}

func (s *service) token() Token { return NewToken(sha256.Sum256(s.authority.Cert.Raw)) }

func TestNewNodeGetsACertificate(t *testing.T) {
	s := newService(t)
	token := s.token()
	c, dir := s.client(t, "n4", token)
	key, err := c.Files.pendingKey()
	require.NoError(t, err)
	// The node crashes before it has stored its certificate, and asks again with the same key.
	dir.broken = pairFile
	require.ErrorIs(t, c.attempt(t.Context(), key), errBroken)
	dir.broken = ""
	require.NoError(t, c.Run(t.Context()))
	require.Len(t, s.uses, 2)
	require.Equal(t, s.uses[0], s.uses[1])
	hash := token.Hash()
	require.Equal(t, hash[:], s.uses[0].Hash)
	leaf, err := c.Files.leaf()
	require.NoError(t, err)
	require.Equal(t, "spiffe://c/node/n4", leaf.URIs[0].String())
	require.False(t, leaf.IsCA)
	for _, name := range []string{pairFile, authorityFile, packetKeyFile} {
		info, err := os.Stat(dir.In(name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	_, err = nodetls.Open(nodetls.Config{Mode: nodetls.Require, Cluster: "c", Node: "n4", Files: c.Files.Certificate(), PacketKeyFile: c.Files.PacketKeys(), Log: c.Log})
	require.NoError(t, err)
	require.NotContains(t, s.logged.String(), strings.Split(token.Text(), "_")[2])
}

// The node does not send its token to a server that is not of the cluster in the token.
func TestTokenIsNotSentToAnotherCluster(t *testing.T) {
	s := newService(t)
	token := NewToken(sha256.Sum256([]byte("another authority")))
	c, _ := s.client(t, "n4", token)
	key, err := c.Files.pendingKey()
	require.NoError(t, err)
	err = c.attempt(t.Context(), key)
	require.ErrorIs(t, err, nodetls.ErrOtherAuthority)
	require.ErrorContains(t, err, "the token was not sent")
	require.Empty(t, s.uses)
	require.NotContains(t, s.logged.String(), "node did not get a certificate")
}

func TestRefusalsNameNothing(t *testing.T) {
	s := newService(t)
	s.refuse = metadata.ErrJoinTokenRefused
	c, _ := s.client(t, "n4", s.token())
	key, err := c.Files.pendingKey()
	require.NoError(t, err)
	err = c.attempt(t.Context(), key)
	require.EqualError(t, err, s.address+": "+textRefused)
	require.Contains(t, s.logged.String(), "join token refused")
	require.Empty(t, s.uses, "nothing is written for a stranger")
}

// What nodes may request a certificate for.
func TestSigningRequestsOfOthersAreRefused(t *testing.T) {
	s := newService(t)
	key, err := certs.NewKey()
	require.NoError(t, err)
	uri := func(text string) *url.URL {
		u, err := url.Parse(text)
		require.NoError(t, err)
		return u
	}
	request := func(key any, r x509.CertificateRequest) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader, &r, key)
		require.NoError(t, err)
		return der
	}
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	own := uri("spiffe://c/node/n4")
	forged := request(key, x509.CertificateRequest{URIs: []*url.URL{own}})
	forged[len(forged)-1] ^= 1
	for name, der := range map[string][]byte{
		"another node":     request(key, x509.CertificateRequest{URIs: []*url.URL{uri("spiffe://c/node/n1")}}),
		"two nodes":        request(key, x509.CertificateRequest{URIs: []*url.URL{own, uri("spiffe://c/node/n1")}}),
		"another cluster":  request(key, x509.CertificateRequest{URIs: []*url.URL{uri("spiffe://d/node/n4")}}),
		"the authority":    request(key, x509.CertificateRequest{URIs: []*url.URL{uri("spiffe://c")}}),
		"no name":          request(key, x509.CertificateRequest{Subject: pkix.Name{CommonName: "n4"}}),
		"a host name":      request(key, x509.CertificateRequest{URIs: []*url.URL{own}, DNSNames: []string{"n1"}}),
		"an address":       request(key, x509.CertificateRequest{URIs: []*url.URL{own}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}),
		"RSA":              request(weak, x509.CertificateRequest{URIs: []*url.URL{own}}),
		"another curve":    request(other, x509.CertificateRequest{URIs: []*url.URL{own}}),
		"a forged request": forged,
		"garbage":          []byte("garbage"),
		"nothing":          nil,
		"too much":         make([]byte, 5<<10),
	} {
		_, err := s.issuer.enroll(t.Context(), nil, "t", make([]byte, 32), "n4", der)
		var refused *refusedError
		require.ErrorAs(t, err, &refused, name)
		_, err = s.issuer.Renew(t.Context(), nil, "n1", der)
		if name != "another node" {
			require.Error(t, err, name)
		}
	}
	require.Empty(t, s.uses)
	for _, node := range []string{"", "a/b", "../n1", "n4\n", strings.Repeat("n", 129)} {
		_, err := s.issuer.enroll(t.Context(), nil, "t", make([]byte, 32), node, forged)
		require.Error(t, err, node)
	}
}

func TestRenewalIsForMembersAndLimited(t *testing.T) {
	s := newService(t)
	key, err := certs.NewKey()
	require.NoError(t, err)
	der, err := certs.NewSigningRequest(key, "c", "n2")
	require.NoError(t, err)
	issued := 0
	for range 3 * renewBurst {
		certificate, err := s.issuer.Renew(t.Context(), nil, "n2", der)
		if err == nil {
			issued++
			require.NoError(t, certs.CheckIssued(certificate, s.authority.CertPEM(), key, "c", "n2"))
		} else {
			require.ErrorContains(t, err, "too often")
		}
	}
	require.Equal(t, renewBurst, issued)
	require.Len(t, s.actions, issued)
	s.members = []string{"n1"}
	_, err = s.issuer.Renew(t.Context(), nil, "n2", der)
	require.ErrorContains(t, err, "not a member")
	der, err = certs.NewSigningRequest(key, "c", "removed")
	require.NoError(t, err)
	_, err = s.issuer.Renew(t.Context(), nil, "removed", der)
	require.ErrorContains(t, err, "not a member")
}

// Strangers cannot try many tokens, send much, or connect while there are no join tokens.
func TestStrangersAreBounded(t *testing.T) {
	s := newService(t)
	connect := func() (net.Conn, error) {
		raw, err := net.Dial("tcp", s.address)
		require.NoError(t, err)
		t.Cleanup(func() { raw.Close() })
		return nodetls.Enroll(t.Context(), raw, "c", sha256.Sum256(s.authority.Cert.Raw))
	}
	for _, message := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0, 0, 0x40, 1}, append([]byte{0, 0, 0, 9}, "garbage!!"...), {0, 0, 0, 0}} {
		conn, err := connect()
		require.NoError(t, err)
		_, err = conn.Write(message)
		require.NoError(t, err)
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		answer, err := readMessage(conn, maxResponse)
		if err == nil {
			require.Contains(t, string(answer), textRefused)
		}
	}
	connected := 4
	for range 3 * addressBurst {
		if _, err := connect(); err == nil {
			connected++
		}
	}
	require.LessOrEqual(t, connected, addressBurst+5, "per second and address")
	require.Empty(t, s.uses)

	s.Server.mu.Lock()
	clear(s.addresses)
	s.Server.mu.Unlock()
	s.registry.mu.Lock()
	s.tokens = []metadata.JoinToken{{ID: "t", ExpiresAt: time.Now().Add(-time.Second)}}
	s.registry.mu.Unlock()
	_, err := connect()
	require.Error(t, err, "there is no token that could be used")
}
