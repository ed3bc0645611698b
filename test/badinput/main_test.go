package badinput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// testTimeout limits each wait in a test.
const testTimeout = 90 * time.Second

// fixture is a server under test with helpers.
type fixture struct {
	*testing.T
	server *harness.Server
	ctx    context.Context
}

// newFixture starts a server for a parallel test.
func newFixture(t *testing.T, env map[string]string) *fixture {
	t.Parallel()
	server := harness.ServerFor(t, env) // before the timeout starts, since it may build the server
	ctx, cancel := context.WithTimeout(t.Context(), 2*testTimeout)
	t.Cleanup(cancel)
	return &fixture{T: t, server: server, ctx: ctx}
}

// withT returns the fixture for a subtest.
func (w *fixture) withT(t *testing.T) *fixture { return &fixture{T: t, server: w.server, ctx: w.ctx} }

// adminResponse is a response of the admin API.
type adminResponse struct {
	status int
	header http.Header
	raw    []byte

	Message string  `json:"message"`
	Code    *string `json:"platform_code"`
}

// code returns the error code, "" if there is none.
func (r *adminResponse) code() string {
	if r.Code == nil {
		return ""
	}
	return *r.Code
}

// admin makes a request to the admin API; a body other than a string is sent as JSON.
func (w *fixture) admin(method, path string, body any, header ...string) *adminResponse {
	w.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		require.NoError(w, err)
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(w.ctx, method, w.server.Admin()+path, reader)
	require.NoError(w, err)
	if reader != nil {
		req.Header.Set("content-type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w, err)
	defer resp.Body.Close()
	r := &adminResponse{status: resp.StatusCode, header: resp.Header}
	r.raw, err = io.ReadAll(resp.Body)
	require.NoError(w, err)
	if r.status >= 400 && method != http.MethodHead {
		require.Equal(w, "application/json", resp.Header.Get("content-type"), "%s %s", method, path)
		require.NoError(w, json.Unmarshal(r.raw, r), "%s", r.raw)
		require.NotEmpty(w, r.Message)
		if r.Code != nil {
			require.True(w, strings.HasPrefix(r.Message, "["+*r.Code+"] "), r.Message)
		}
	}
	return r
}

// register registers an endpoint and returns the deployment's id.
func (w *fixture) register(uri string, options object) string {
	w.Helper()
	body := object{"uri": uri}
	for k, v := range options {
		body[k] = v
	}
	r := w.admin("POST", "/deployments", body)
	require.Contains(w, []int{200, 201}, r.status, "%s", r.raw)
	var registered struct {
		ID string `json:"id"`
	}
	require.NoError(w, json.Unmarshal(r.raw, &registered))
	return registered.ID
}

// send invokes a handler one-way and returns the invocation's id.
func (w *fixture) send(path string) string {
	w.Helper()
	a, err := w.server.Client.Send(w.ctx, path, []byte(`"hi"`))
	require.NoError(w, err)
	require.Equal(w, 202, a.Status, "%s", a.Body)
	return a.ID()
}

// call calls a handler and waits for the result.
func (w *fixture) call(path string) harness.Response {
	w.Helper()
	a, err := w.server.Client.Call(w.ctx, path, []byte(`"hi"`))
	require.NoError(w, err)
	return a
}

// attach waits for the result of an invocation.
func (w *fixture) attach(id string) harness.Response {
	w.Helper()
	a, err := w.server.Client.Attach(w.ctx, id)
	require.NoError(w, err)
	return a
}

// invocation is an invocation in the admin API.
type invocation struct {
	Status            string `json:"status"`
	RetryCount        int    `json:"retry_count"`
	NextRetryAt       string `json:"next_retry_at"`
	LastFailure       string `json:"last_failure"`
	LastErrorCode     string `json:"last_failure_error_code"`
	CompletionFailure string `json:"completion_failure"`
	Journal           []struct {
		Type string `json:"entry_type"`
	} `json:"journal"`
}

func (w *fixture) describe(id string) (i invocation) {
	w.Helper()
	r := w.admin("GET", "/invocations/"+id+"?journal=true", nil)
	require.Equal(w, 200, r.status, "%s", r.raw)
	require.NoError(w, json.Unmarshal(r.raw, &i))
	return i
}

// awaitInvocation polls an invocation until it satisfies condition.
func (w *fixture) awaitInvocation(id string, condition func(invocation) bool) (i invocation) {
	w.Helper()
	require.Eventually(w, func() bool {
		i = w.describe(id)
		return condition(i)
	}, testTimeout, 20*time.Millisecond, "%+v", &i)
	return i
}

// cli runs the command-line client against the server.
func (w *fixture) cli(args ...string) (stdout, stderr string, exit int) {
	w.Helper()
	bin, err := harness.Build("platform/cmd/platform")
	require.NoError(w, err)
	cmd := exec.CommandContext(w.ctx, bin, args...)
	cmd.Env = []string{"HOME=" + w.TempDir(), "PLATFORM_ADMIN_URL=" + w.server.Admin(), "PLATFORM_INGRESS_URL=" + w.server.Client.Base()}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		_, failed := errors.AsType[*exec.ExitError](err)
		require.True(w, failed, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// requireHealthy checks that a well-behaved service still works.
func (w *fixture) requireHealthy(path string) {
	w.Helper()
	begin := time.Now()
	a := w.call(path)
	require.Equal(w, 200, a.Status, "%s", a.Body)
	require.Less(w, time.Since(begin), testTimeout, path+" is slow")
}
