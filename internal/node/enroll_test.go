package node

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/cluster/datadir"
	"platform/internal/cluster/enroll"
	"platform/internal/config"
	"platform/internal/nodelink"
	"platform/internal/nodetls"
)

// newEnrolled starts n1, which creates a cluster and its authority, and two nodes that wait for
// files with join tokens.
func newEnrolled(t *testing.T) (c *testCluster, tokenFile func(node string) string) {
	dir := t.TempDir()
	keys := filepath.Join(dir, "secrets.key")
	require.NoError(t, os.WriteFile(keys, []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))), 0o600))
	tokenFile = func(node string) string { return filepath.Join(dir, node+".token") }
	c = newTestClusterWith(t, 3, func(cfg *config.Config) {
		cfg.BootstrapExpect, cfg.DefaultReplication = 1, 3
		cfg.Security.Secrets.KeyFile, cfg.Security.NodeTLS.Mode = keys, config.TLSRequire
		if cfg.NodeName == "n1" {
			cfg.MetadataClient.Addresses = nil
			return
		}
		cfg.MetadataClient.Addresses, cfg.Security.NodeTLS.JoinTokenFile = cfg.MetadataClient.Addresses[:1], tokenFile(cfg.NodeName)
	})
	return c, tokenFile
}

// joinToken creates a join token once n1 has the authority.
func (c *testCluster) joinToken(body string) (text string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		code, answer := c.do(0, true, "POST", "/cluster/join-tokens", body)
		var created struct{ Token string }
		if code != http.StatusCreated || json.Unmarshal([]byte(answer), &created) != nil {
			return false
		}
		text = created.Token
		return true
	}, waitTimeout, 50*time.Millisecond)
	return text
}

// secretDir is a data directory of an intruder.
type secretDir string

func (d secretDir) In(name string) string { return filepath.Join(string(d), name) }

func (d secretDir) ReplaceFile(name string, data []byte) error {
	return os.WriteFile(d.In(name), data, 0o600)
}

// enroll requests a certificate of n1 in the name of a node, and returns the last reason why there
// is none.
func (c *testCluster) enroll(node, text string) (certified bool, reason string) {
	c.t.Helper()
	token, err := enroll.ParseToken(text)
	require.NoError(c.t, err)
	dir := secretDir(c.t.TempDir())
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var mu sync.Mutex // covers reason
	client := &enroll.Client{
		Files: enroll.NewFiles(dir, "localcluster", node), Token: func() (enroll.Token, error) { return token, nil },
		Addresses: []string{fmt.Sprintf("127.0.0.1:%d", c.nodes[0].cfg.BindPort)}, Log: slog.New(slog.DiscardHandler),
		Report: func(text string) {
			if !strings.Contains(text, "refused; ") && !strings.Contains(text, "not sent") {
				return // too many connections of this address
			}
			mu.Lock()
			defer mu.Unlock()
			reason = text
			cancel()
		},
	}
	certified = client.Run(ctx) == nil
	mu.Lock()
	defer mu.Unlock()
	return certified, reason
}

// Two nodes join the first one with tokens. What strangers try with tokens has no effect, and while
// there are tokens, clients without a certificate can do nothing else.
func TestNodesJoinWithTokens(t *testing.T) {
	c, tokenFile := newEnrolled(t)
	first := c.joinToken(`{"node":"n2"}`)
	second := c.joinToken(`{}`)
	for node, text := range map[string]string{"n2": first, "n3": second} {
		require.NoError(t, os.WriteFile(tokenFile(node), []byte(text+"\n"), 0o600))
	}
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	sum := c.addAll(0, 0)

	refused := func(node, text, want string) {
		t.Helper()
		certified, reason := c.enroll(node, text)
		require.False(t, certified)
		require.Contains(t, reason, want)
		require.NotContains(t, reason, "localcluster")
	}
	const plain = "refused; the log of that node has the reason"
	refused("n2", first, plain)                        // replayed with another key
	refused("n4", second, plain)                       // used by n3
	refused("n3", c.joinToken(`{}`), plain)            // the name of a member, with a token for new nodes
	refused("n5", c.joinToken(`{"node":"n4"}`), plain) // a token for another node
	revoked := c.joinToken(`{}`)
	code, body := c.do(0, true, "DELETE", "/cluster/join-tokens/"+strings.Split(revoked, "_")[1], "")
	require.Equal(t, http.StatusOK, code, body)
	refused("n4", revoked, plain)
	parts := strings.Split(revoked, "_")
	refused("n4", strings.Join([]string{parts[0], parts[1], strings.Split(first, "_")[2], parts[3]}, "_"), plain) // the secret of another token
	refused("n4", enroll.NewToken([32]byte{1}).Text(), "the token was not sent")

	// One token, used by two nodes at the same moment.
	shared := c.joinToken(`{}`)
	var both sync.WaitGroup
	var won [2]bool
	for i := range won {
		both.Go(func() { won[i], _ = c.enroll(fmt.Sprint("n", 6+i), shared) })
	}
	both.Wait()
	require.NotEqual(t, won[0], won[1], "exactly one gets a certificate")

	const clusterID = "an ID that an intruder may know"
	for name, protocols := range map[string][]string{"no certificate": nil, "as a node that enrolls": {nodetls.EnrollProtocol}} {
		in := newIntruder(t, c, nil, true, clusterID, "n2", incarnationOf(t, c, 1))
		address := fmt.Sprintf("127.0.0.1:%d", c.nodes[0].cfg.BindPort)
		in.connect = func() func() {
			conn, err := nodelink.Dial(address, nil, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}}
				return dialer.DialContext(ctx, "tcp", address)
			}))
			require.NoError(t, err)
			in.conn = conn
			return func() { conn.Close() }
		}
		t.Run(name, func(t *testing.T) { in.t = t; in.refusedEverywhere() })
	}

	// A restart of all nodes needs no tokens.
	for i := range c.nodes {
		c.stop(i)
	}
	for _, node := range []string{"n2", "n3"} {
		require.NoError(t, os.Remove(tokenFile(node)))
	}
	for i := range c.nodes {
		c.start(i)
	}
	c.healthy(3, 0, 1, 2)
	code, body = c.do(2, false, "POST", "/platform/call/Counter/k0/add", "0")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, fmt.Sprint(sum), body)
	_, audit := c.do(0, true, "GET", "/audit", "")
	require.Equal(t, 3, strings.Count(audit, `"EnrollNode"`), audit)
}

// A member whose configuration lost its section security.node-tls has no connection to others, and
// only they log why.
func TestUnusedCertificateOfTheClusterIsReported(t *testing.T) {
	dir, err := datadir.Open(t.TempDir(), "n1")
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	cfg := config.Default()
	var log strings.Builder
	n := &Node{cfg: cfg, log: slog.New(slog.NewTextHandler(&log, nil)), files: files{dir: dir}}
	require.NoError(t, n.obtainCertificate(t.Context()))
	require.Empty(t, log.String())
	require.NoError(t, dir.ReplaceFile("node-tls.pem", []byte("x")))
	require.NoError(t, n.obtainCertificate(t.Context()))
	require.Contains(t, log.String(), "security.node-tls.mode is off")
}
