package node

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/tokens"
	"platform/internal/access"
	"platform/internal/cluster/datadir"
	"platform/internal/config"
	"platform/metadata"
)

// as sends a request with a token to a port of a node.
func (c *testCluster) as(token string, i int, admin bool, method, path, body string) (int, string) {
	port := c.nodes[i].cfg.Ingress.BindPort
	if admin {
		port = c.nodes[i].cfg.Admin.BindPort
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), strings.NewReader(body))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// A cluster that requires tokens: each node has one for its administrator, others hold on all
// nodes, and a revocation does so within a second.
func TestTokensHoldOnAllNodes(t *testing.T) {
	c := newTestCluster(t, 3, "--config-file="+strictConfig(t))
	dir := c.nodes[0].cfg.BaseDir
	admins := make([]string, 3)
	for i := range c.nodes {
		path := filepath.Join(dir, fmt.Sprintf("n%d", i+1), tokens.LocalTokenFile)
		require.Eventually(t, func() bool {
			text, err := os.ReadFile(path)
			admins[i] = strings.TrimSpace(string(text))
			return err == nil && admins[i] != ""
		}, waitTimeout, 10*time.Millisecond)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.Eventually(t, func() bool {
			code, _ := c.as(admins[i], i, true, "GET", "/cluster-health", "")
			health, _ := c.as("", i, true, "GET", "/health", "")
			ingress, _ := c.as("", i, false, "GET", "/restate/health", "")
			return code == http.StatusOK && health == http.StatusOK && ingress == http.StatusOK
		}, waitTimeout, 20*time.Millisecond)
		for _, token := range []string{"", admins[(i+1)%3], access.NewSecret().Text} {
			code, body := c.as(token, i, true, "GET", "/services", "")
			require.Equal(t, http.StatusUnauthorized, code, body)
			code, _ = c.as(token, i, true, "POST", "/tokens", `{"name":"x","roles":["viewer"]}`)
			require.Equal(t, http.StatusUnauthorized, code)
			code, _ = c.as(token, i, false, "POST", "/Greeter/greet", "{}")
			require.Equal(t, http.StatusUnauthorized, code)
		}
	}
	var created struct{ Token, ID string }
	require.Eventually(t, func() bool { // once the cluster has feature level 4
		code, body := c.as(admins[0], 0, true, "POST", "/tokens", `{"name":"ci","roles":["viewer","invoker"]}`)
		return code == http.StatusCreated && json.Unmarshal([]byte(body), &created) == nil
	}, waitTimeout, 50*time.Millisecond)
	for i := range c.nodes {
		require.Eventually(t, func() bool {
			code, _ := c.as(created.Token, i, true, "GET", "/services", "")
			return code == http.StatusOK
		}, waitTimeout, 10*time.Millisecond, "n%d", i+1)
		code, body := c.as(created.Token, i, true, "DELETE", "/tokens/ci", "")
		require.Equal(t, http.StatusForbidden, code, body)
		code, _ = c.as(created.Token, i, false, "POST", "/Greeter/greet", "{}")
		require.Equal(t, http.StatusNotFound, code, "the token permits calls")
	}
	begin := time.Now()
	code, body := c.as(admins[1], 1, true, "DELETE", "/tokens/ci", "")
	require.Equal(t, http.StatusOK, code, body)
	for i := range c.nodes {
		code, _ := c.as(created.Token, i, true, "GET", "/services", "")
		require.Equal(t, http.StatusUnauthorized, code, "n%d still accepts a revoked token", i+1)
		code, _ = c.as(created.Token, i, false, "POST", "/Greeter/greet", "{}")
		require.Equal(t, http.StatusUnauthorized, code)
	}
	t.Logf("revoked on all nodes after %s", time.Since(begin))
}

// Profiles at the node port require a token if others can reach it, even if the admin port is
// bound to a loopback address.
func TestProfilesOfAnExposedNodePortRequireAToken(t *testing.T) {
	local, exposed := fakeListener{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, fakeListener{&net.TCPAddr{IP: net.IPv4zero}}
	require.False(t, config.Default().EnableProfiles)
	enabled := true
	status := func(node net.Listener, mode config.SecurityMode) int {
		cfg := config.Default()
		cfg.EnableProfiles, cfg.Security.Mode, cfg.Security.AdminTokenFile = enabled, mode, tokenFile(t, 0o600)
		access, err := openAccess(cfg, listeners{node: node, ingress: &ingressPort{port: local}, admin: local}, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		n := &Node{cfg: cfg, access: access}
		w := httptest.NewRecorder()
		n.withProfiles(http.NotFoundHandler(), portNode, access.nodePortRequiresToken()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/debug/pprof/", nil))
		return w.Code
	}
	require.Equal(t, http.StatusOK, status(local, config.SecurityDefault))
	require.Equal(t, http.StatusUnauthorized, status(exposed, config.SecurityDefault))
	require.Equal(t, http.StatusOK, status(exposed, config.SecurityOpen))
	require.Equal(t, http.StatusUnauthorized, status(local, config.SecurityStrict))
	enabled = false
	require.Equal(t, http.StatusNotFound, status(local, config.SecurityOpen))
}

// Every client that reaches the node port of nodes without certificates controls the cluster: the
// default does not expose it, and the strict mode refuses to.
func TestNodePortsWithoutCertificatesAreNotExposedSilently(t *testing.T) {
	require.Equal(t, config.Loopback, config.Default().BindIP)
	local, exposed := fakeListener{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}, fakeListener{&net.TCPAddr{IP: net.IPv6unspecified}}
	start := func(node net.Listener, mode config.SecurityMode) (string, error) {
		var log strings.Builder
		cfg := config.Default()
		cfg.Security.Mode, cfg.Security.AdminTokenFile = mode, tokenFile(t, 0o600)
		access, err := openAccess(cfg, listeners{node: node, ingress: &ingressPort{port: local}, admin: local}, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if err == nil {
			access.report()
		}
		return log.String(), err
	}
	text, err := start(local, config.SecurityDefault)
	require.NoError(t, err)
	require.NotContains(t, text, "node port")
	text, err = start(exposed, config.SecurityDefault)
	require.NoError(t, err)
	require.Contains(t, text, "nodes are not authenticated")
	_, err = start(exposed, config.SecurityStrict)
	require.ErrorContains(t, err, "security.node-tls.mode")
	_, err = start(local, config.SecurityStrict)
	require.NoError(t, err)
}

// Profiles must not change how other paths are understood.
func TestProfilesLeaveOtherPathsAsTheyAre(t *testing.T) {
	n := &Node{cfg: config.Default(), access: &accessControl{cfg: config.Default()}}
	n.cfg.EnableProfiles = true
	var paths []string
	h := n.withProfiles(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths = append(paths, r.URL.Path) }), portNode, false)
	want := []string{"/limits/rules/a//b", "//services", "/a/../services", "//debug/pprof/"}
	for _, path := range want {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		r.URL.Path = path
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	require.Equal(t, want, paths)
}

// The token of the administrator is complete or does not exist, whenever the node stops.
func TestTheTokenOfTheAdministratorIsWrittenInOneStep(t *testing.T) {
	dir, err := datadir.Open(t.TempDir(), "n1")
	require.NoError(t, err)
	defer dir.Close()
	token := tokens.LocalToken{Required: true, Dir: dir, Log: slog.New(slog.DiscardHandler)}
	// The remainder of an interrupted start, which other users can read.
	require.NoError(t, os.WriteFile(dir.In(tokens.LocalTokenFile+".new"), nil, 0o644))
	created, err := token.Read()
	require.NoError(t, err)
	info, err := os.Stat(dir.In(tokens.LocalTokenFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := token.Read()
	require.NoError(t, err)
	require.Equal(t, created, again)
	require.NoFileExists(t, dir.In(tokens.LocalTokenFile+".new"))
}

func strictConfig(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(path, []byte("[security]\nmode = \"strict\"\n"), 0o600))
	return path
}

func TestDefaultsOfSecurity(t *testing.T) {
	for name, tc := range map[string]struct {
		args, env []string
		bindIP    string
		admin     string // address
		required  bool
	}{
		"nothing set":        {nil, nil, "127.0.0.1", "127.0.0.1:1", false},
		"open":               {nil, []string{"PLATFORM_SECURITY__MODE=open", "PLATFORM_BIND_IP=::"}, "::", "0.0.0.0:1", false},
		"all addresses":      {[]string{"--bind-ip=::"}, nil, "::", "0.0.0.0:1", true},
		"strict":             {nil, []string{"PLATFORM_SECURITY__MODE=strict"}, "127.0.0.1", "127.0.0.1:1", true},
		"cluster":            {[]string{"--bootstrap-expect=3"}, nil, "::", "0.0.0.0:1", true},
		"joining":            {nil, []string{`PLATFORM_METADATA_CLIENT__ADDRESSES=["n1:5122"]`}, "::", "0.0.0.0:1", true},
		"advertised":         {[]string{"--advertised-host=n1"}, nil, "::", "0.0.0.0:1", true},
		"cluster, loopback":  {[]string{"--bootstrap-expect=3", "--bind-ip=127.0.0.1"}, nil, "127.0.0.1", "127.0.0.1:1", false},
		"another loopback":   {[]string{"--bind-ip=127.0.0.2"}, nil, "127.0.0.2", "127.0.0.2:1", false},
		"an address":         {[]string{"--bind-ip=10.0.0.1"}, nil, "10.0.0.1", "10.0.0.1:1", true},
		"IPv6 loopback":      {[]string{"--bind-ip=::1"}, nil, "::1", "[::1]:1", false},
		"ingress advertised": {nil, []string{"PLATFORM_INGRESS__ADVERTISED_ADDRESS=http://a.example/"}, "127.0.0.1", "127.0.0.1:1", false},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := config.Load(tc.args, tc.env)
			require.NoError(t, err)
			require.Equal(t, tc.bindIP, loaded.Config.BindIP)
			require.Equal(t, tc.bindIP, loaded.Config.Admin.BindIP)
			address, err := net.ResolveTCPAddr("tcp", tc.admin)
			require.NoError(t, err)
			loaded.Config.Security.AdminTokenFile = tokenFile(t, 0o600)
			access, err := openAt(address, loaded.Config)
			require.NoError(t, err)
			require.Equal(t, tc.required, access.required)
			require.Equal(t, strings.HasPrefix(name, "strict"), access.ingressRequiresToken())
		})
	}
}

// openAt opens the access control of a node whose ports are at an address.
func openAt(address net.Addr, cfg *config.Config) (*accessControl, error) {
	port := fakeListener{address}
	return openAccess(cfg, listeners{node: port, ingress: &ingressPort{port: port}, admin: port}, nil, slog.New(slog.DiscardHandler))
}

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

func tokenFile(t *testing.T, mode os.FileMode) string {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 32)+"\n"), mode))
	return path
}

// fakeListener has an address only.
type fakeListener struct{ addr net.Addr }

func (l fakeListener) Addr() net.Addr            { return l.addr }
func (l fakeListener) Close() error              { return nil }
func (l fakeListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }

func TestIdentityProvidersNeedAMapping(t *testing.T) {
	cfg := config.Default()
	c := &cfg.Security.JWT
	c.Issuer = "https://idp.example"
	_, err := openAt(loopback, cfg)
	require.ErrorContains(t, err, "security.jwt: audience, roles-claim and roles are required")
	c.Audience, c.RolesClaim, c.Roles = "platform", "groups", map[string]string{"ops": "operator"}
	access, err := openAt(loopback, cfg)
	require.NoError(t, err)
	require.NotNil(t, access.authenticator(portAdmin, true, nil).Verify)
}

func TestUsersLogInOnlyWithAValidConfiguration(t *testing.T) {
	require.Nil(t, new(accessControl).sessions(), "cookies do not count")
	cfg := config.Default()
	c := &cfg.Security.OIDC
	c.Issuer, c.ClientID, c.ExternalURL, c.RolesClaim, c.Roles = "https://idp.example", "ui", "http://platform.example", "groups", map[string]string{"ops": "operator"}
	_, err := openAt(loopback, cfg)
	require.ErrorContains(t, err, "security.oidc: external-url")
	c.ExternalURL = "https://platform.example"
	control, err := openAt(loopback, cfg)
	require.NoError(t, err)
	require.Equal(t, &access.Sessions{Origin: "https://platform.example", Secure: true}, control.sessions())
	require.True(t, control.accept(&metadata.Token{Session: true, CreatedBy: "https://idp.example"}))
	require.False(t, control.accept(&metadata.Token{Session: true, CreatedBy: "https://old.example"}), "it may have meant another user")
	require.True(t, control.accept(&metadata.Token{CreatedBy: "ada"}))
	require.False(t, new(accessControl).accept(&metadata.Token{Session: true}))
}

// Certificates of clients have roles only where a listener verifies them.
func TestRolesOfCertificatesNeedAnAuthority(t *testing.T) {
	open := func(rules map[string]string, ca string) (*accessControl, error) {
		cfg := config.Default()
		cfg.Security.Certificates, cfg.Ingress.TLS.ClientCAFile = rules, ca
		return openAt(loopback, cfg)
	}
	_, err := open(map[string]string{"client": "invoker"}, "")
	require.ErrorContains(t, err, "client-ca-file")
	_, err = open(map[string]string{"client": "root"}, "ca.crt")
	require.ErrorContains(t, err, "there is no role")
	control, err := open(map[string]string{"client": "invoker"}, "ca.crt")
	require.NoError(t, err)
	require.NotNil(t, control.authenticator(portIngress, false, nil).Certificate)
	control, err = open(nil, "")
	require.NoError(t, err)
	require.Nil(t, control.authenticator(portIngress, false, nil).Certificate)
}
