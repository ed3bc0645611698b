package secrets

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

type greeter struct{}

func (greeter) ServiceName() string { return "Greeter" }

func (greeter) Greet(ctx restate.Context, name string) (string, error) {
	return restate.Run(ctx, func(restate.RunContext) (string, error) { return "Hello " + name, nil })
}

func (greeter) Wait(ctx restate.Context, _ string) (string, error) {
	return restate.Awakeable[string](ctx).Result()
}

// serveGreeter serves the service and returns its address.
func serveGreeter(t *testing.T) string {
	return harness.EndpointFor(t, restate.Reflect(greeter{}))
}

// canaries are the planted secrets by where they were planted.
type canaries map[string]string

func (c canaries) plant(where string) string {
	c[where] = "canary" + strings.Repeat("7", 26) + strings.ReplaceAll(where, " ", "")
	return c[where]
}

// plantKey plants a key of 32 bytes and returns it in base64.
func (c canaries) plantKey(where string) string {
	c[where] = (strings.ReplaceAll(where, " ", "") + c.plant(where))[:32]
	return base64.StdEncoding.EncodeToString([]byte(c[where]))
}

// found returns where a text contains which secret, also encoded.
func (c canaries) found(text []byte) (found []string) {
	for where, secret := range c {
		for form, encoded := range map[string]string{
			"plain": secret, "base64": base64.RawStdEncoding.EncodeToString([]byte(secret)), "hex": hex.EncodeToString([]byte(secret)),
		} {
			if bytes.Contains(text, []byte(encoded)) {
				found = append(found, where+" ("+form+")")
			}
		}
	}
	return found
}

// collector keeps the spans that it gets.
func collector(t *testing.T) (url string, spans func() []byte) {
	var mu sync.Mutex
	var all []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			if plain, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, _ = io.ReadAll(plain)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, body...)
	}))
	t.Cleanup(s.Close)
	return "otlp+" + s.URL, func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(all)
	}
}

type world struct {
	*testing.T
	server *harness.Server
	token  string // of the administrator
}

func (w *world) ask(method, url, body string, headers ...string) (int, []byte) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, url, strings.NewReader(body))
	require.NoError(w, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(w, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w, err)
	return resp.StatusCode, text
}

func (w *world) admin(method, path, body string) (int, []byte) {
	return w.ask(method, w.server.Client.Admin()+path, body, "Authorization", "Bearer "+w.token)
}

func TestSecretsAreNeitherShownNorStored(t *testing.T) {
	planted := canaries{}
	endpoint := serveGreeter(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(file, []byte(planted.plant("file of a reference")), 0o600))
	collectorURL, spans := collector(t)
	w := &world{T: t, token: planted.plant("token of the administrator")}
	env := map[string]string{
		"ADMIN_TOKEN": w.token, "SECURITY__MODE": "strict", "LOG_FILTER": "debug", "TRACING_ENDPOINT": collectorURL,
		"TRACING_HEADERS": `{"authorization":"` + planted.plant("header of the collector") + `","x-file":"file:` + file + `"}`,
		"WORKER__INVOKER__ADDITIONAL_REQUEST_HEADERS": `{"x-key":"` + planted.plant("header of attempts") + `"}`,
		"WORKER__INVOKER__HTTP_PROXY":                 "http://proxy:" + planted.plant("password of the proxy") + "@127.0.0.1:1",
		"WORKER__INVOKER__NO_PROXY":                   `["127.0.0.1"]`,
		"SECURITY__OIDC__ISSUER":                      "https://127.0.0.1:1", "SECURITY__OIDC__EXTERNAL_URL": "http://localhost:9070", "SECURITY__OIDC__CLIENT_ID": "c",
		"SECURITY__OIDC__ROLES_CLAIM": "groups", "SECURITY__OIDC__ROLES": `{"a":"viewer"}`, "SECURITY__OIDC__CLIENT_SECRET": planted.plant("secret of the client at the identity provider"),
		"SECURITY__SECRETS__KEYS": planted.plantKey("key of secrets"),
		"INGRESS__KAFKA_CLUSTERS": `[{"name":"static","brokers":["127.0.0.1:1"],"properties":{"security.protocol":"sasl_plaintext","sasl.mechanism":"PLAIN","sasl.username":"u","sasl.password":"` + planted.plant("Kafka cluster of the configuration") + `"}}]`,
	}
	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	w.server, err = harness.NewServer(target, harness.ServerOptions{Dir: dir, Env: env})
	require.NoError(t, err)
	require.NoError(t, w.server.Restart(t.Context()))
	t.Cleanup(w.server.Process.Kill)
	stored := canaries{} // what is in the files by design, which proves that the search would find the secrets
	w.use(planted, stored, endpoint)

	// What it shows.
	shown := map[string][]byte{"configuration": dumpedConfiguration(t, env)}
	for _, path := range []string{
		"/deployments", "/services", "/invocations", "/failures", "/kafka-clusters", "/kafka-clusters/added", "/kafka-clusters/static", "/subscriptions", "/tokens",
		"/audit", "/cluster/secrets", "/cluster/events", "/cluster/log-levels", "/cluster/nodes", "/cluster-health", "/cluster/config", "/metrics", "/stats", "/whoami", "/version", "/health", "/openapi",
	} {
		var code int
		code, shown[path] = w.admin("GET", path, "")
		require.Less(t, code, 500, path)
	}
	_, shown["login"] = w.admin("GET", "/login/start", "") // the provider does not respond
	_, tables := w.admin("GET", "/query/tables", "")
	var list struct{ Tables []struct{ Name string } }
	require.NoError(t, json.Unmarshal(tables, &list))
	require.Greater(t, len(list.Tables), 10)
	for _, table := range list.Tables {
		code, rows := w.admin("POST", "/query", `{"query":"SELECT * FROM `+table.Name+`"}`)
		require.Equal(t, 200, code, table.Name)
		shown["table "+table.Name] = rows
	}
	var invocations struct{ Invocations []struct{ ID string } }
	require.NoError(t, json.Unmarshal(shown["/invocations"], &invocations))
	require.NotEmpty(t, invocations.Invocations)
	for _, inv := range invocations.Invocations {
		_, shown["invocation "+inv.ID] = w.admin("GET", "/invocations/"+inv.ID+"?journal=true", "")
		_, shown["explanation of "+inv.ID] = w.admin("GET", "/invocations/"+inv.ID+"/explain", "")
	}
	require.Eventually(t, func() bool { return bytes.Contains(spans(), []byte("Greeter")) }, time.Minute, 50*time.Millisecond)
	require.NoError(t, w.server.Process.Terminate(time.Minute))
	shown["spans"] = spans()
	for port, failures := range map[string]int{"admin": 1, "ingress": 1} {
		require.Regexp(t, fmt.Sprintf(`platform_access_failures_total\{[^}]*port="%s",reason="invalid"\} %d\n`, port, failures), string(shown["/metrics"]))
	}
	log, err := os.ReadFile(filepath.Join(dir, "server.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "authentication failed")
	w.checkShown(planted, shown)
	w.checkFiles(planted, stored, dir, file)
}

// use plants secrets in requests.
func (w *world) use(planted, stored canaries, endpoint string) {
	code, text := w.admin("POST", "/deployments", `{"uri":"`+endpoint+`","additional_headers":{"authorization":"`+planted.plant("header of a deployment")+`"}}`)
	require.Equal(w, 201, code, string(text))
	code, text = w.admin("POST", "/deployments", `{"uri":"http://127.0.0.1:1","additional_headers":{"x-api-key":"`+planted.plant("header of a deployment that cannot be reached")+`"}}`)
	require.Equal(w, 502, code, string(text))
	code, text = w.admin("POST", "/kafka-clusters", `{"name":"added","properties":{"bootstrap.servers":"127.0.0.1:1","security.protocol":"sasl_plaintext","sasl.mechanism":"PLAIN","sasl.username":"u","sasl.password":"`+planted.plant("Kafka cluster")+`"}}`)
	require.Equal(w, 201, code, string(text))
	code, text = w.admin("POST", "/subscriptions", `{"source":"kafka://added/topic","sink":"service://Greeter/Greet"}`)
	require.Less(w, code, 500, string(text))

	code, text = w.admin("POST", "/tokens", `{"name":"shop","roles":["invoker"]}`)
	require.Equal(w, 201, code, string(text))
	var created struct{ Token string }
	require.NoError(w, json.Unmarshal(text, &created))
	planted["token"] = created.Token[21:]
	ingress := w.server.Client.Base()
	bearer := []string{"Authorization", "Bearer " + created.Token}
	for i := range 3 {
		code, text = w.ask("POST", ingress+"/Greeter/Greet", fmt.Sprint(i), append(bearer,
			"Cookie", "session="+planted.plant("cookie"), "X-Api-Key", planted.plant("key of a caller"), "Proxy-Authorization", "Basic "+planted.plant("proxy"))...)
		require.Contains(w, []int{400, 500}, code, string(text)) // the input is no text
	}
	code, text = w.ask("POST", ingress+"/Greeter/Greet", `"Ada"`, bearer...)
	require.Equal(w, 200, code, string(text))
	code, _ = w.ask("POST", ingress+"/Greeter/Greet", `"Ada"`, "Authorization", "Bearer "+planted.plant("token that is not valid"))
	require.Equal(w, 401, code)
	code, text = w.ask("POST", ingress+"/Greeter/Wait/send", `"`+stored.plant("input")+`"`, bearer...)
	require.Equal(w, 202, code, string(text))
	const awakeable = "sign_1AAAAAAAAAAEBAAAAAAAAAAAAAAAAAAAAAAAAEQ"
	callback, err := access.NewCallback(created.Token, awakeable, time.Now().Add(time.Hour))
	require.NoError(w, err)
	planted["callback token"] = callback[len(callback)-32:]
	code, text = w.ask("POST", ingress+"/platform/awakeables/"+awakeable+"/resolve?callback_token="+callback, "1")
	require.Equal(w, 202, code, string(text))
	code, _ = w.ask("POST", ingress+"/platform/awakeables/"+awakeable+"x/resolve?callback_token="+callback, "1")
	require.Equal(w, 400, code)
	code, _ = w.ask("GET", w.server.Client.Admin()+"/services", "", "Authorization", "Bearer "+planted.plant("unknown token of the admin API"))
	require.Equal(w, 401, code)
}

func (w *world) checkShown(planted canaries, shown map[string][]byte) {
	for name, text := range shown {
		require.Empty(w, planted.found(text), name)
	}
	w.Logf("%d secrets, %d responses", len(planted), len(shown))
}

// checkFiles searches the log and the data directory. Headers of deployments and properties of
// Kafka clusters that were added are in it encrypted.
func (w *world) checkFiles(planted, stored canaries, dir, except string) {
	files, known := 0, 0
	require.NoError(w, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == except {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		known += len(stored.found(text))
		require.Empty(w, planted.found(text), path)
		return nil
	}))
	require.Greater(w, files, 5)
	require.NotZero(w, known, "the search finds what is stored")
	w.Logf("%d files", files)
}

// dumpedConfiguration returns what --dump-config prints.
func dumpedConfiguration(t *testing.T, env map[string]string) []byte {
	t.Helper()
	bin, err := harness.Build("platform/cmd/platform-server")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), bin, "--dump-config")
	for name, value := range env {
		cmd.Env = append(cmd.Env, "PLATFORM_"+name+"="+value)
	}
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	require.Contains(t, string(text), "***")
	return text
}
