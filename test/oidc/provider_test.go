package oidc

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
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

const waitLimit = 60 * time.Second

func TestMain(m *testing.M) {
	status := m.Run()
	harness.Cleanup()
	os.Exit(status)
}

// provider is a running identity provider.
type provider struct {
	issuer string
	port   int
	stop   func()
}

// startProvider starts a provider at a port that sends browsers back to addresses.
func startProvider(t *testing.T, port int, redirects ...string) *provider {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: the identity provider of the test needs Node.js")
	}
	if _, err := os.Stat(filepath.Join("node_modules", "oidc-provider")); err != nil {
		t.Skip("SKIPPED: the identity provider of the test is not installed; run `make oidc-deps`, which downloads it from the npm registry")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, node, append([]string{"provider.mjs", fmt.Sprint(port)}, redirects...)...)
	log, err := os.Create(filepath.Join(t.TempDir(), "provider.log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	p := &provider{issuer: fmt.Sprintf("http://127.0.0.1:%d", port), port: port}
	stopped := false
	p.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			_ = cmd.Wait() // it was killed
		}
	}
	t.Cleanup(func() {
		p.stop()
		_ = log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("provider: %s", text)
		}
	})
	require.Eventually(t, func() bool {
		response, err := http.Get(p.issuer + "/.well-known/openid-configuration")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, waitLimit, 50*time.Millisecond, "the identity provider does not start")
	return p
}

// browser follows redirects and submits forms, and keeps cookies as a browser does.
type browser struct {
	*http.Client
	t *testing.T
	// stopAt is a prefix of addresses that are not followed.
	stopAt string
}

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &browser{t: t}
	b.Client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if b.stopAt != "" && strings.HasPrefix(r.URL.String(), b.stopAt) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// page is a response that was read.
type page struct {
	*http.Response
	text string
}

func (b *browser) read(response *http.Response, err error) page {
	b.t.Helper()
	require.NoError(b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return page{response, string(text)}
}

func (b *browser) open(address string) page {
	b.t.Helper()
	return b.read(b.Get(address))
}

// fetch sends a request of a page of the server.
func (b *browser) fetch(method, address string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, nil)
	require.NoError(b.t, err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.read(b.Do(r))
}

var (
	formTag  = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	inputTag = regexp.MustCompile(`(?s)<(?:input|button)[^>]*>`)
)

func attribute(tag, name string) string {
	m := regexp.MustCompile(`\s` + name + `="([^"]*)"`).FindStringSubmatch(tag)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// submit submits the form of a page with values of a user.
func (b *browser) submit(p page, values map[string]string) page {
	b.t.Helper()
	form := formTag.FindString(p.text)
	require.NotEmpty(b.t, form, "%s has no form: %s", p.Request.URL, p.text)
	filled := url.Values{}
	for _, input := range inputTag.FindAllString(form, -1) {
		name := attribute(input, "name")
		if name == "" || name == "abort" || name == "remember" {
			continue
		}
		filled.Set(name, attribute(input, "value"))
		if value, ok := values[name]; ok {
			filled.Set(name, value)
		}
	}
	action, err := p.Request.URL.Parse(attribute(form, "action"))
	require.NoError(b.t, err)
	return b.read(b.PostForm(action.String(), filled))
}

// logIn fills the forms of the provider until done reports that the login is complete.
func (b *browser) logIn(p page, account string, done func(page) bool) page {
	b.t.Helper()
	for range 10 {
		if done(p) {
			return p
		}
		p = b.submit(p, map[string]string{"login": account, "password": "any", "confirm": "yes"})
	}
	b.t.Fatalf("the login does not end: %s %s", p.Request.URL, p.text)
	return p
}
