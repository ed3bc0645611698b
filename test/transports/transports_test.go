package transports

import (
	"context"
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
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/invoker/endpoint/lambda/lambdatest"
	"platform/invoker/identity"
	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

type greeter struct{}

func (greeter) ServiceName() string { return "Greeter" }

// Greet has a step and a sleep, so that the journal is replayed.
func (greeter) Greet(ctx restate.Context, name string) (string, error) {
	greeting, err := restate.Run(ctx, func(restate.RunContext) (string, error) { return "Hello ", nil })
	if err != nil {
		return "", err
	}
	return greeting + name, restate.Sleep(ctx, time.Millisecond)
}

func services() *server.Restate {
	return server.NewRestate().WithLogger(slog.DiscardHandler, true).Bind(restate.Reflect(greeter{}))
}

// admin makes a request to the admin API and returns the fields of the response.
func admin(t *testing.T, s *harness.Server, method, path, body string, status int) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.Admin()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, status, resp.StatusCode, string(raw))
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &fields), string(raw))
	return fields
}

func greet(t *testing.T, s *harness.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	resp, err := s.Client.Call(ctx, "Greeter/Greet", []byte(`"you"`))
	require.NoError(t, err)
	require.Equal(t, `"Hello you"`, string(resp.Body))
}

// The key of RFC 8410, section 10.3.
const key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"

func TestSignedRequestsToAFunction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(file, []byte(key), 0o600))
	signer, err := identity.Load(file, time.Minute)
	require.NoError(t, err)
	handle, err := services().WithIdentityV1(signer.KeyID()).LambdaHandler()
	require.NoError(t, err)
	function := lambdatest.Adapt(func(r server.LambdaRequest) (server.LambdaResponse, error) {
		return handle(context.Background(), r)
	})
	const arn, role = "arn:aws:lambda:eu-central-1:123456789012:function:greeter:1", "arn:aws:iam::123456789012:role/r"
	cloud := lambdatest.Start(t)
	var calls atomic.Int32
	cloud.Handle(arn, func(c lambdatest.Call) lambdatest.Response {
		calls.Add(1)
		return function(c)
	})
	t.Setenv("AWS_EXTERNAL_ID", "their-id")
	s := harness.ServerFor(t, map[string]string{"WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE": file})

	body := fmt.Sprintf(`{"arn":%q,"assume_role_arn":%q}`, arn, role)
	made := admin(t, s, http.MethodPost, "/deployments", body, http.StatusCreated)
	got := admin(t, s, http.MethodGet, "/deployments/"+made["id"].(string), "", http.StatusOK)
	require.Equal(t, arn, got["arn"])
	require.Equal(t, role, got["assume_role_arn"])
	require.NotContains(t, got, "uri")
	greet(t, s)
	require.GreaterOrEqual(t, calls.Load(), int32(3), "discovery and at least two attempts: functions suspend to sleep")
	require.Equal(t, []string{role + " their-id"}, cloud.Roles())

	cloud.Handle(arn, func(lambdatest.Call) lambdatest.Response {
		manifest := `{"protocolMode":"BIDI_STREAM","minProtocolVersion":5,"maxProtocolVersion":7,"services":[]}`
		payload, _ := json.Marshal(map[string]any{"statusCode": 200, "body": manifest,
			"headers": map[string]string{"content-type": "application/vnd.restate.endpointmanifest.v4+json"}})
		return lambdatest.Response{Payload: payload}
	})
	refused := admin(t, s, http.MethodPost, "/deployments", `{"force":true,`+body[1:], http.StatusBadGateway)
	require.Equal(t, "META0015", refused["platform_code"], refused)
	admin(t, s, http.MethodPost, "/deployments", `{"arn":"arn:aws:lambda:evil.example/#:123456789012:function:f:1"}`, http.StatusBadRequest)
}

func TestServicesBehindAProxy(t *testing.T) {
	handler, err := services().Handler()
	require.NoError(t, err)
	service := httptest.NewUnstartedServer(handler)
	service.Config.Protocols = new(http.Protocols)
	service.Config.Protocols.SetUnencryptedHTTP2(true)
	service.Start()
	defer service.Close()
	var request atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request.Store(r.Method + " " + r.RequestURI)
		tunnel(w, service.Listener.Addr().String())
	}))
	defer proxy.CloseClientConnections()
	s := harness.ServerFor(t, map[string]string{"WORKER__INVOKER__HTTP_PROXY": proxy.URL})
	admin(t, s, http.MethodPost, "/deployments", `{"uri":"http://greeter.test:9080"}`, http.StatusCreated)
	greet(t, s)
	require.Equal(t, "CONNECT greeter.test:9080", request.Load())
}

// tunnel connects the client of a CONNECT request to a target.
func tunnel(w http.ResponseWriter, target string) {
	upstream, err := net.Dial("tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer upstream.Close()
	client, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(upstream, in)
		upstream.Close()
	}()
	_, _ = io.Copy(client, upstream)
}

func TestUnreadableIdentityKeyFailsStart(t *testing.T) {
	target, err := harness.TargetUnderTest()
	require.NoError(t, err)
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.pem")
	_, err = harness.StartServer(t.Context(), target, harness.ServerOptions{Dir: dir, Env: map[string]string{
		"WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE": missing,
	}})
	require.ErrorContains(t, err, "[RT0002]")
	require.ErrorContains(t, err, "worker.invoker.request-identity-private-key-pem-file: open "+missing)
}
