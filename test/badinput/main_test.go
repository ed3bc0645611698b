package badinput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// patience is how long anything may take before a test gives up on it.
const patience = 30 * time.Second

// world is a server and ways to ask it.
type world struct {
	*testing.T
	server *harness.Server
	ctx    context.Context
}

// newWorld starts a server of its own for a test, which runs beside others.
func newWorld(t *testing.T, env map[string]string) *world {
	t.Parallel()
	server := harness.ServerFor(t, env) // first: it may have to be built
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &world{T: t, server: server, ctx: ctx}
}

// with is the world as a subtest sees it.
func (w *world) with(t *testing.T) *world { return &world{T: t, server: w.server, ctx: w.ctx} }

// reply is an answer of the admin API.
type reply struct {
	status int
	header http.Header
	raw    []byte

	Message string  `json:"message"`
	Code    *string `json:"platform_code"`
}

// code is the error code, "" if there is none.
func (r *reply) code() string {
	if r.Code == nil {
		return ""
	}
	return *r.Code
}

// admin asks the admin API; a body that is not a string is sent as JSON.
func (w *world) admin(method, path string, body any, header ...string) *reply {
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
	r := &reply{status: resp.StatusCode, header: resp.Header}
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

// register registers an endpoint, which must succeed, and returns its id.
func (w *world) register(uri string, options object) string {
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
func (w *world) send(path string) string {
	w.Helper()
	a, err := w.server.Client.Send(w.ctx, path, []byte(`"hi"`))
	require.NoError(w, err)
	require.Equal(w, 202, a.Status, "%s", a.Body)
	return a.ID()
}

// call calls a handler and waits for the result.
func (w *world) call(path string) harness.Response {
	w.Helper()
	a, err := w.server.Client.Call(w.ctx, path, []byte(`"hi"`))
	require.NoError(w, err)
	return a
}

// attach waits for the result of an invocation.
func (w *world) attach(id string) harness.Response {
	w.Helper()
	a, err := w.server.Client.Attach(w.ctx, id)
	require.NoError(w, err)
	return a
}

// invocation is what the admin API says of one.
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

func (w *world) look(id string) (i invocation) {
	w.Helper()
	r := w.admin("GET", "/invocations/"+id+"?journal=true", nil)
	require.Equal(w, 200, r.status, "%s", r.raw)
	require.NoError(w, json.Unmarshal(r.raw, &i))
	return i
}

// await asks for an invocation until it is as wanted.
func (w *world) await(id string, wanted func(invocation) bool) (i invocation) {
	w.Helper()
	require.Eventually(w, func() bool {
		i = w.look(id)
		return wanted(i)
	}, patience, 20*time.Millisecond, "%+v", &i)
	return i
}

// cli runs the command line client against the server.
func (w *world) cli(args ...string) (stdout, stderr string, exit int) {
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

// healthy checks that a well-behaved service is served as if nothing had happened.
func (w *world) healthy(path string) {
	w.Helper()
	begin := time.Now()
	a := w.call(path)
	require.Equal(w, 200, a.Status, "%s", a.Body)
	require.Less(w, time.Since(begin), 20*time.Second, fmt.Sprint("after all that, ", path, " is slow"))
}
