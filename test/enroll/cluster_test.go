package enroll

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/keyring"
	"platform/metadata"
	"platform/test/harness"
)

const (
	waitLimit   = 60 * time.Second
	clusterName = "enrolled"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// cluster is a cluster whose first node has created the authority.
type cluster struct {
	*testing.T
	dir   string
	seed  string // address of n1
	nodes []*harness.Server

	ingressCA *x509.CertPool // of the certificates of the ingress; nil: it uses no TLS
}

// newCluster starts n1, which creates the cluster and its authority.
func newCluster(t *testing.T) *cluster {
	c := &cluster{T: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(c.secretsFile(), []byte(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", keyring.KeyBytes)))), 0o600))
	n1 := c.add("n1", nil)
	c.seed = n1.NodeAddress()
	require.NoError(t, n1.Restart(t.Context()))
	return c
}

func (c *cluster) secretsFile() string { return filepath.Join(c.dir, "secrets.key") }

// tokenFile is the file with the join token of a node.
func (c *cluster) tokenFile(node string) string { return filepath.Join(c.dir, node+".token") }

// add adds a node without starting it. Variables with the value "" are not set.
func (c *cluster) add(name string, env map[string]string) *harness.Server {
	c.Helper()
	all := map[string]string{
		"CLUSTER_NAME": clusterName, "DEFAULT_REPLICATION": "3", "LOG_DISABLE_ANSI_CODES": "true",
		"SECURITY__NODE_TLS__MODE": "require", "SECURITY__NODE_TLS__CERTIFICATE_VALIDITY": "1m", "SECURITY__SECRETS__KEY_FILE": c.secretsFile(),
	}
	if len(c.nodes) > 0 {
		all["METADATA_CLIENT__ADDRESSES"] = fmt.Sprintf("[%q]", c.seed)
		all["SECURITY__NODE_TLS__JOIN_TOKEN_FILE"] = c.tokenFile(name)
	}
	for key, value := range env {
		if all[key] = value; value == "" {
			delete(all, key)
		}
	}
	target, err := harness.TargetUnderTest()
	require.NoError(c, err)
	dir := filepath.Join(c.dir, name)
	require.NoError(c, os.MkdirAll(dir, 0o755))
	s, err := harness.NewServer(target, harness.ServerOptions{Name: name, Dir: dir, Env: all, IngressCA: c.ingressCA})
	require.NoError(c, err)
	c.nodes = append(c.nodes, s)
	c.Cleanup(func() {
		if s.Process == nil {
			return
		}
		s.Process.Kill()
		if c.Failed() {
			c.Logf("log of %s:\n%s", name, s.Process.LogTail(40))
		}
	})
	return s
}

// admin sends a request to the admin API of a node.
func (c *cluster) admin(node int, method, path, body string) (int, string) {
	ctx, cancel := context.WithTimeout(c.Context(), waitLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.nodes[node].Admin()+path, strings.NewReader(body))
	require.NoError(c, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	return resp.StatusCode, string(text)
}

// await waits for a condition.
func (c *cluster) await(what string, condition func() bool) {
	c.Helper()
	require.Eventually(c, condition, waitLimit, 20*time.Millisecond, what)
}

// createToken creates a join token, once n1 has stored the authority.
func (c *cluster) createToken(body string) string {
	c.Helper()
	var created struct{ Token string }
	c.await("no join token", func() bool {
		code, answer := c.admin(0, http.MethodPost, "/cluster/join-tokens", body)
		return code == http.StatusCreated && json.Unmarshal([]byte(answer), &created) == nil
	})
	return created.Token
}

// giveToken writes the file that a node reads.
func (c *cluster) giveToken(node, token string) {
	c.Helper()
	replaceFile(c.T, c.tokenFile(node), []byte(token+"\n"))
}

// join starts a node with a token for it.
func (c *cluster) join(name string, env map[string]string) *harness.Server {
	c.Helper()
	c.giveToken(name, c.createToken(fmt.Sprintf(`{"node":%q}`, name)))
	s := c.add(name, env)
	require.NoError(c, s.Restart(c.Context()))
	return s
}

// replicated waits until each partition has three complete replicas, as the first nodes know it.
func (c *cluster) replicated(nodes int) {
	c.Helper()
	var last error
	ok := func() bool {
		for _, n := range c.nodes[:nodes] {
			ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
			state, err := n.State(ctx)
			cancel()
			if err == nil {
				err = state.CheckReplicated(3)
			}
			if last = err; err != nil {
				return false
			}
		}
		return true
	}
	require.Eventually(c, ok, waitLimit, 50*time.Millisecond, "the partitions are not replicated: %v", &last)
}

// authority returns the authority of the cluster and its key, which n1, whose process must have
// ended, has in its metadata.
func (c *cluster) authority() *certs.Authority {
	c.Helper()
	text, err := os.ReadFile(c.secretsFile())
	require.NoError(c, err)
	keys, err := keyring.Parse(string(text))
	require.NoError(c, err)
	certificate, key, err := metadata.ReadAuthority(c.in(0, "metadata"), keys)
	require.NoError(c, err)
	a, err := certs.AuthorityOf(certificate, []byte(key))
	require.NoError(c, err)
	return a
}

// in returns the path of a file in the data directory of a node.
func (c *cluster) in(node int, name string) string {
	return filepath.Join(c.nodes[node].Data(), c.nodes[node].Name(), name)
}

func replaceFile(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", content, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// issue makes a certificate of a node, with its key in the same text.
func issue(t *testing.T, a *certs.Authority, node string, validity time.Duration) (both []byte, pair tls.Certificate) {
	t.Helper()
	cert, key, err := a.IssueNode(node, validity)
	require.NoError(t, err)
	pair, err = tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return bytes.Join([][]byte{key, cert}, nil), pair
}

// served returns the certificate that a node serves at its node port; nil if it does not respond.
func (c *cluster) served(node int) *x509.Certificate {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", c.nodes[node].NodeAddress())
	if err != nil {
		return nil
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// logged reports whether the log of a node contains a text.
func (c *cluster) logged(node int, text string) bool {
	raw, err := os.ReadFile(filepath.Join(c.dir, c.nodes[node].Name(), "server.log"))
	return err == nil && strings.Contains(string(raw), text)
}

// names returns the names of the members.
func (c *cluster) names() (names []string) {
	c.Helper()
	var list struct{ Nodes []struct{ Name string } }
	code, body := c.admin(0, http.MethodGet, "/cluster/nodes", "")
	require.Equal(c, http.StatusOK, code, body)
	require.NoError(c, json.Unmarshal([]byte(body), &list))
	for _, n := range list.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// counter serves and registers an object.
func (c *cluster) counter() {
	object := restate.NewObject("Counter").Handler("add", restate.NewObjectHandler(
		func(ctx restate.ObjectContext, n int) (int, error) {
			sum, err := restate.Get[int](ctx, "sum")
			if err != nil {
				return 0, err
			}
			restate.Set(ctx, "sum", sum+n)
			return sum + n, nil
		}))
	require.NoError(c, c.nodes[0].Register(c.Context(), harness.EndpointFor(c, object), false))
}

// load calls handlers through the nodes that are up.
type load struct {
	c      *cluster
	up     []atomic.Bool
	calls  atomic.Int64
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // covers failures
	failures []string
}

// startLoad calls handlers through the first nodes, until stop.
func (c *cluster) startLoad(nodes int) *load {
	ctx, cancel := context.WithCancel(c.Context())
	l := &load{c: c, up: make([]atomic.Bool, nodes), cancel: cancel}
	for i := range l.up {
		l.up[i].Store(true)
	}
	for worker := range 2 * nodes {
		l.wg.Go(func() {
			for n := worker; ctx.Err() == nil; n++ {
				if i := n % nodes; l.up[i].Load() {
					l.call(i, n%16)
				}
			}
		})
	}
	return l
}

func (l *load) call(i, key int) {
	resp, err := l.c.nodes[i].Client.Call(context.WithoutCancel(l.c.Context()), harness.Path("Counter", fmt.Sprint("k", key), "add"), []byte("1"))
	if err == nil && resp.Status == http.StatusOK {
		l.calls.Add(1)
		return
	}
	if l.up[i].Load() { // otherwise the test has taken the node down
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failures = append(l.failures, fmt.Sprintf("n%d: %v %d %s", i+1, err, resp.Status, resp.Body))
	}
}

// restart restarts a node while calls go through the others.
func (l *load) restart(i int) {
	l.up[i].Store(false)
	require.NoError(l.c, l.c.nodes[i].Stop())
	require.NoError(l.c, l.c.nodes[i].Restart(l.c.Context()))
	l.c.replicated(len(l.up))
	l.up[i].Store(true)
	l.proceeds()
}

// proceeds waits until calls have succeeded since.
func (l *load) proceeds() {
	before := l.calls.Load()
	l.c.await("no calls", func() bool { return l.calls.Load() > before+30 })
}

// stop ends the load, and requires that no call failed and that each was executed once.
func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
	require.Empty(l.c, l.failures)
	sum := 0
	for key := range 16 {
		resp, err := l.c.nodes[0].Client.Call(l.c.Context(), harness.Path("Counter", fmt.Sprint("k", key), "add"), []byte("0"))
		require.NoError(l.c, err)
		n := 0
		require.NoError(l.c, resp.Decode(&n))
		sum += n
	}
	require.EqualValues(l.c, l.calls.Load(), sum)
	l.c.Logf("%d calls", sum)
}
