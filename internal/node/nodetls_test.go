package node

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/config"
)

// nodeFiles are the files of a node's certificate.
func nodeFiles(t testing.TB, ca *certs.Authority, dir, node string) config.NodeTLS {
	t.Helper()
	cert, key, err := ca.IssueNode(node, time.Hour)
	require.NoError(t, err)
	packets, err := ca.PacketKey()
	require.NoError(t, err)
	files := config.NodeTLS{
		CertFile: filepath.Join(dir, node+".crt"), KeyFile: filepath.Join(dir, node+".key"),
		CAFile: filepath.Join(dir, "ca.crt"), PacketKeyFile: filepath.Join(dir, "gossip.key"),
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for path, content := range map[string][]byte{files.KeyFile: key, files.CertFile: cert, files.CAFile: ca.CertPEM(), files.PacketKeyFile: packets} {
		_ = os.Remove(path) // with its permissions
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	return files
}

// newAuthority returns an authority of the cluster of the tests.
func newAuthority(t *testing.T) *certs.Authority {
	ca, err := certs.NewAuthority("localcluster", time.Hour)
	require.NoError(t, err)
	return ca
}

// load calls handlers through the nodes that are up, until stop returns the failures.
type load struct {
	c    *testCluster
	up   [3]atomic.Bool
	done chan struct{}
	wg   sync.WaitGroup

	mu       sync.Mutex // guards failures
	failures []string
	calls    atomic.Int64
}

func startLoad(c *testCluster) *load {
	l := &load{c: c, done: make(chan struct{})}
	for i := range l.up {
		l.up[i].Store(true)
	}
	for worker := range 6 {
		l.wg.Go(func() {
			for n := worker; ; n++ {
				select {
				case <-l.done:
					return
				default:
				}
				if i := n % 3; l.up[i].Load() {
					l.call(i, n%16)
				}
			}
		})
	}
	return l
}

func (l *load) call(i, key int) {
	code, body := l.c.do(i, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
	if code != http.StatusOK && l.up[i].Load() { // otherwise the test has taken the node down
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failures = append(l.failures, fmt.Sprint(l.c.nodes[i].cfg.NodeName, " ", code, " ", body))
	}
	l.calls.Add(1)
}

func (l *load) stop() []string {
	close(l.done)
	l.wg.Wait()
	return l.failures
}

// restart restarts a node with another configuration while calls go through the others.
func (l *load) restart(i int, change func(*config.Config)) {
	l.up[i].Store(false)
	l.c.stop(i)
	change(l.c.nodes[i].cfg)
	l.c.start(i)
	l.c.replicated(0, 1, 2)
	l.up[i].Store(true)
	calls := l.calls.Load()
	require.Eventually(l.c.t, func() bool { return l.calls.Load() > calls+30 }, waitTimeout, 10*time.Millisecond)
}

// A running cluster is switched from plain connections to required certificates, node by
// node, without a failed call. Its certificates and then its authority are replaced.
func TestClusterIsSwitchedToTLSUnderLoad(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	ca, dir := newAuthority(t), t.TempDir()
	l := startLoad(c)
	for _, mode := range []config.TLSMode{config.TLSAllow, config.TLSRequire} {
		for i := range c.nodes {
			l.restart(i, func(cfg *config.Config) {
				cfg.Security.NodeTLS = nodeFiles(t, ca, dir, cfg.NodeName)
				cfg.Security.NodeTLS.Mode = mode
			})
		}
	}
	// A new authority: first all nodes trust both, then they get its certificates, then the
	// old one is dropped. Files are read again without a restart.
	next := newAuthority(t)
	both := append(ca.CertPEM(), next.CertPEM()...)
	caFile := c.nodes[0].cfg.Security.NodeTLS.CAFile
	require.NoError(t, os.WriteFile(caFile, both, 0o600))
	newPair, oldPair := issued(t, next, "n1"), issued(t, ca, "n1")
	await := func(what string, condition func(i int) bool) {
		for i := range c.nodes {
			require.Eventually(t, func() bool { return condition(i) }, waitTimeout, 20*time.Millisecond, what)
		}
	}
	await("the new authority is not trusted", func(i int) bool { _, err := c.probe(i, &newPair); return err == nil })
	for i := range c.nodes {
		cert, key, err := next.IssueNode(c.nodes[i].cfg.NodeName, time.Hour)
		require.NoError(t, err)
		files := c.nodes[i].cfg.Security.NodeTLS
		require.NoError(t, os.WriteFile(files.KeyFile, key, 0o600))
		require.NoError(t, os.WriteFile(files.CertFile, cert, 0o600))
	}
	await("the new certificate is not used", func(i int) bool {
		served, err := c.probe(i, &newPair)
		return err == nil && served.CheckSignatureFrom(next.Cert) == nil
	})
	require.NoError(t, os.WriteFile(caFile, next.CertPEM(), 0o600))
	await("the old authority is still trusted", func(i int) bool { _, err := c.probe(i, &oldPair); return err != nil })
	for i := range c.nodes {
		l.restart(i, func(*config.Config) {})
	}
	failures := l.stop()
	require.Empty(t, failures)
	t.Logf("%d calls", l.calls.Load())
}

// issued returns a certificate for a node.
func issued(t *testing.T, ca *certs.Authority, node string) tls.Certificate {
	cert, key, err := ca.IssueNode(node, time.Hour)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return pair
}

// probe requests the metrics on the node port over TLS, with a certificate if it is not nil,
// and returns the certificate of the node.
func (c *testCluster) probe(i int, pair *tls.Certificate) (*x509.Certificate, error) {
	cfg := &tls.Config{InsecureSkipVerify: true}
	if pair != nil {
		cfg.Certificates = []tls.Certificate{*pair}
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: cfg}
	conn, err := dialer.DialContext(c.t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", c.nodes[i].cfg.BindPort))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

func TestCertificatesThatDoNotFitAreRefusedAtStart(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	loaded, err := config.Load([]string{"--node-name=n1", "--base-dir=" + t.TempDir(), "--bind-ip=127.0.0.1", "--use-random-ports"}, nil)
	require.NoError(t, err)
	other, err := certs.NewAuthority("othercluster", time.Hour)
	require.NoError(t, err)
	open := func(change func(*config.NodeTLS)) error {
		cfg := *loaded.Config
		cfg.Security.NodeTLS = nodeFiles(t, ca, dir, "n1")
		cfg.Security.NodeTLS.Mode = config.TLSRequire
		change(&cfg.Security.NodeTLS)
		_, err := openNodeTLS(&cfg, slog.New(slog.DiscardHandler))
		return err
	}
	require.NoError(t, open(func(*config.NodeTLS) {}))
	require.ErrorContains(t, open(func(c *config.NodeTLS) { require.NoError(t, os.Chmod(c.KeyFile, 0o644)) }), "chmod 600")
	require.ErrorContains(t, open(func(c *config.NodeTLS) {
		*c = nodeFiles(t, ca, dir, "n2")
		c.Mode = config.TLSRequire
	}), `is that of node "n2", and this is node "n1"`)
	require.ErrorContains(t, open(func(c *config.NodeTLS) {
		*c = nodeFiles(t, other, filepath.Join(dir, "other"), "n1")
		c.Mode = config.TLSRequire
	}), `not that of a node of cluster "localcluster"`)
	require.ErrorContains(t, open(func(c *config.NodeTLS) { require.NoError(t, os.WriteFile(c.CAFile, other.CertPEM(), 0o600)) }), "unknown authority")
	require.ErrorContains(t, open(func(c *config.NodeTLS) { require.NoError(t, os.WriteFile(c.PacketKeyFile, []byte("short"), 0o600)) }), "key of 32 bytes")
	_, err = config.Load([]string{"--node-name=n1"}, []string{"PLATFORM_SECURITY__NODE_TLS__MODE=require", "PLATFORM_SECURITY__NODE_TLS__CERT_FILE=node.crt"})
	for _, key := range []string{"key-file", "ca-file", "packet-key-file"} {
		require.True(t, strings.Contains(err.Error(), key), key)
	}
}
