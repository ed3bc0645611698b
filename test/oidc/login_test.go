package oidc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// world is a cluster of two nodes behind one host name, and its identity provider.
type world struct {
	*provider
	*harness.Cluster
	t *testing.T
}

// origin is the external URL, which is that of the first node.
func (w *world) origin() string { return w.Nodes[0].Admin() }

// start starts two nodes that use the provider. Cookies do not depend on the port, so both nodes have
// those of a browser.
func start(t *testing.T, env map[string]string) *world {
	t.Helper()
	ports, err := harness.FreePorts(7)
	require.NoError(t, err)
	origin := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	w := &world{t: t, provider: startProvider(t, ports[6], origin+"/login/callback")}
	settings := map[string]string{
		"SECURITY__MODE": "strict", "SECURITY__NODE_TLS__MODE": "off",
		"SECURITY__OIDC__ISSUER": w.issuer, "SECURITY__OIDC__CLIENT_ID": "ui", "SECURITY__OIDC__CLI_CLIENT_ID": "cli", "SECURITY__OIDC__EXTERNAL_URL": origin,
		"SECURITY__OIDC__SCOPES": `["groups"]`, "SECURITY__OIDC__ROLES_CLAIM": "groups", "SECURITY__OIDC__ROLES": `{ ops = "operator", root = "admin" }`,
	}
	for key, value := range env {
		settings[key] = value
	}
	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	w.Cluster, err = harness.NewCluster(target, harness.ClusterOptions{
		Nodes: 2, Env: settings, Dir: t.TempDir(),
		Placement: func(i int) harness.Placement { return harness.Placement{Ports: ports[3*i : 3*i+3]} },
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Kill)
	return w
}

// logIn logs an account in to the web UI.
func (w *world) logIn(b *browser, account string) page {
	w.t.Helper()
	return b.logIn(b.open(w.origin()+"/login/start?return=/ui/jobs"), account, func(p page) bool { return strings.HasPrefix(p.Request.URL.String(), w.origin()) })
}

func (w *world) status(b *browser, node int) int {
	w.t.Helper()
	return b.fetch(http.MethodGet, w.Nodes[node].Admin()+"/deployments").StatusCode
}

func TestAUserLogsInWithARealProvider(t *testing.T) {
	w := start(t, nil)
	b := newBrowser(t)
	arrived := w.logIn(b, "ada+ops")
	require.Equal(t, "/ui/jobs", arrived.Request.URL.Path, arrived.text)
	who := b.fetch(http.MethodGet, w.origin()+"/whoami")
	require.Contains(t, who.text, `"name":"oidc:ada+ops"`)
	require.Contains(t, who.text, `"operator"`)
	require.Equal(t, http.StatusOK, w.status(b, 0))
	require.Equal(t, http.StatusUnauthorized, w.status(newBrowser(t), 0))

	t.Run("an account without a role gets a page", func(t *testing.T) {
		refused := w.logIn(newBrowser(t), "eve")
		require.Equal(t, http.StatusForbidden, refused.StatusCode)
		require.Contains(t, refused.text, "oidc:eve")
		require.Contains(t, refused.text, "no role")
	})
	t.Run("a response counts once", func(t *testing.T) {
		b := newBrowser(t)
		b.stopAt = w.origin() + "/login/callback"
		back := b.logIn(b.open(w.origin()+"/login/start"), "ada+ops", func(p page) bool { return strings.HasPrefix(p.Header.Get("Location"), b.stopAt) })
		target := back.Header.Get("Location")
		b.stopAt = ""
		require.Equal(t, http.StatusBadRequest, newBrowser(t).open(target).StatusCode, "in another browser")
		changed := strings.Replace(target, "state=", "state=x", 1)
		other := newBrowser(t)
		other.Jar.SetCookies(must(url.Parse(w.origin())), b.Jar.Cookies(must(url.Parse(w.origin()))))
		require.Equal(t, http.StatusBadRequest, other.open(changed).StatusCode, "with another state")
		mixed := regexp.MustCompile(`iss=[^&]*`).ReplaceAllString(target, "iss=https%3A%2F%2Fevil.example")
		require.NotEqual(t, target, mixed)
		other.Jar.SetCookies(must(url.Parse(w.origin())), b.Jar.Cookies(must(url.Parse(w.origin()))))
		require.Equal(t, http.StatusBadRequest, other.open(mixed).StatusCode, "of another issuer")
		cookies := b.Jar.Cookies(must(url.Parse(w.origin())))
		require.Equal(t, http.StatusOK, b.open(target).StatusCode)
		b.Jar.SetCookies(must(url.Parse(w.origin())), cookies) // an attacker has the attempt as well
		require.Equal(t, http.StatusBadRequest, b.open(target).StatusCode, "the provider refuses the code")
	})
	t.Run("another node answers", func(t *testing.T) {
		require.Equal(t, http.StatusOK, w.status(b, 1))
		w.Nodes[0].Process.Kill()
		require.NoError(t, w.Nodes[0].Restart(t.Context()))
		require.Eventually(t, func() bool { return w.status(b, 0) == http.StatusOK }, waitLimit, 50*time.Millisecond)
	})
	t.Run("the provider is down", func(t *testing.T) {
		w.stop()
		require.Equal(t, http.StatusOK, w.status(b, 0))
		failed := newBrowser(t).open(w.origin() + "/login/start") // the node has not read the discovery document since its restart
		require.Equal(t, http.StatusServiceUnavailable, failed.StatusCode)
		require.Contains(t, failed.text, "identity provider is not available")
	})
	t.Run("a session ends on all nodes", func(t *testing.T) {
		cookies := b.Jar.Cookies(must(url.Parse(w.origin())))
		require.JSONEq(t, `{"revoked":true}`, b.fetch(http.MethodPost, w.Nodes[1].Admin()+"/logout").text, "a provider that is down")
		b.Jar.SetCookies(must(url.Parse(w.origin())), cookies)
		for node := range w.Nodes {
			require.Equal(t, http.StatusUnauthorized, w.status(b, node))
		}
	})
}

// After a logout here, the page that the response names ends the session at the provider.
func TestAUserLogsOutAtTheProvider(t *testing.T) {
	w := start(t, nil)
	b := newBrowser(t)
	w.logIn(b, "ada+ops")
	var out struct {
		LogoutURL string `json:"logout_url"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.fetch(http.MethodPost, w.origin()+"/logout").text), &out))
	require.True(t, strings.HasPrefix(out.LogoutURL, w.issuer+"/session/end?"), out.LogoutURL)
	confirm := b.open(out.LogoutURL)
	require.Contains(t, confirm.text, "Do you want to sign-out")
	form := formTag.FindString(confirm.text)
	done := b.read(b.PostForm(attribute(form, "action"), url.Values{"logout": {"yes"}, "xsrf": {attribute(inputTag.FindString(form), "value")}}))
	require.Contains(t, done.text, "Sign-out Success")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestAClientWithASecret(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret-of-the-test-0123456789abcdef\n"), 0o600))
	w := start(t, map[string]string{"SECURITY__OIDC__CLIENT_ID": "confidential", "SECURITY__OIDC__CLIENT_SECRET": "file:" + secret})
	b := newBrowser(t)
	w.logIn(b, "ada+root")
	require.Contains(t, b.fetch(http.MethodGet, w.origin()+"/whoami").text, `"admin"`)
	audit := b.fetch(http.MethodGet, w.origin()+"/audit").text
	require.Contains(t, audit, `"GET /login/callback"`)
	require.NotContains(t, audit, "code=")
}

// platform runs the command line.
func (w *world) platform(home string, args ...string) *exec.Cmd {
	w.t.Helper()
	binary, err := harness.Build("platform/cmd/platform")
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "PLATFORM_CLI_CONFIG_HOME="+home, "PLATFORM_ADMIN_URL="+w.origin(), "PLATFORM_TOKEN=")
	return cmd
}

// approve opens the address that platform login prints, and logs an account in.
func (w *world) approve(b *browser, output, account string) {
	w.t.Helper()
	address := regexp.MustCompile(`or open (\S+)`).FindStringSubmatch(output)
	require.NotNil(w.t, address, output)
	b.logIn(b.open(address[1]), account, func(p page) bool { return !strings.Contains(p.text, "<form") })
}

func TestTheCommandLineLogsInWithTheDeviceFlow(t *testing.T) {
	w := start(t, map[string]string{"SECURITY__OIDC__SESSION_LIFETIME": "70s"})
	home := t.TempDir()
	login := w.platform(home, "login", "--device")
	stderr, err := login.StderrPipe()
	require.NoError(t, err)
	var stdout strings.Builder
	login.Stdout = &stdout
	require.NoError(t, login.Start())
	read, buffer := "", make([]byte, 4096)
	for !strings.Contains(read, "or open ") || !strings.HasSuffix(read, "\n") {
		n, err := stderr.Read(buffer)
		require.NoError(t, err, read)
		read += string(buffer[:n])
	}
	w.approve(newBrowser(t), read, "ada+ops")
	require.NoError(t, login.Wait())
	require.Contains(t, stdout.String(), "Logged in to")
	file := filepath.Join(home, "credentials.toml")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	whoami := func() map[string]any {
		out, err := w.platform(home, "whoami", "--json").Output()
		require.NoError(t, err, string(out))
		var who map[string]any
		require.NoError(t, json.Unmarshal(out, &who))
		return who
	}
	require.Equal(t, "oidc:ada+ops", whoami()["name"])

	t.Run("a session is renewed before it ends", func(t *testing.T) {
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			require.Equal(t, "oidc:ada+ops", whoami()["name"])
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			return string(after) != string(before)
		}, waitLimit, time.Second)
	})
	t.Run("logout revokes the session", func(t *testing.T) {
		credentials, err := os.ReadFile(file)
		require.NoError(t, err)
		token := regexp.MustCompile(`plt_[a-z0-9_]+`).FindString(string(credentials))
		out, err := w.platform(home, "logout").CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "could not be revoked")
		require.NoFileExists(t, file)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.origin()+"/deployments", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	})
}
