package harness

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"
)

// ServerFor starts the server under test for the duration of t. If t fails, it logs the
// end of the server's log.
func ServerFor(t testing.TB, env map[string]string) *Server {
	t.Helper()
	target, err := TargetUnderTest()
	require.NoError(t, err)
	s, err := StartServer(t.Context(), target, ServerOptions{Env: env, Dir: t.TempDir()})
	if s != nil && s.Process != nil {
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			showLog(t, s.Process)
		})
	}
	require.NoError(t, err)
	return s
}

// ClusterFor starts a cluster of the server under test for the duration of t. If t
// fails, it logs the end of each node's log.
func ClusterFor(t testing.TB, opts ClusterOptions) *Cluster {
	t.Helper()
	target, err := TargetUnderTest()
	require.NoError(t, err)
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	c, err := NewCluster(target, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		for _, n := range c.Nodes {
			if n.Process != nil {
				showLog(t, n.Process)
			}
		}
	})
	require.NoError(t, c.Start(t.Context()))
	return c
}

// EndpointFor serves Go services in this process for the duration of t, over HTTP/1 and HTTP/2
// without TLS, and returns the address of the endpoint.
func EndpointFor(t testing.TB, services ...restate.ServiceDefinition) string {
	t.Helper()
	all := server.NewRestate().WithLogger(slog.DiscardHandler, true)
	for _, service := range services {
		all.Bind(service)
	}
	handler, err := all.Handler()
	require.NoError(t, err)
	endpoint := httptest.NewUnstartedServer(handler)
	endpoint.Config.Protocols = new(http.Protocols)
	endpoint.Config.Protocols.SetUnencryptedHTTP2(true)
	endpoint.Config.Protocols.SetHTTP1(true)
	endpoint.Start()
	t.Cleanup(endpoint.Close)
	return endpoint.URL
}

// ServiceFor starts a service endpoint for the duration of t.
func ServiceFor(t testing.TB, opts ServiceOptions) *Service {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := StartService(t.Context(), opts)
	if s != nil && s.Process != nil {
		t.Cleanup(func() {
			s.Kill()
			showLog(t, s.Process)
		})
	}
	require.NoError(t, err)
	return s
}

// RecorderFor starts a recorder for the duration of t.
func RecorderFor(t testing.TB) *Recorder {
	r := newRecorder()
	t.Cleanup(r.Close)
	return r
}

// showLog logs the end of a process' log if t failed. If TEST_LOGS is set, it copies the
// whole log to that directory.
func showLog(t testing.TB, p *Process) {
	if dir := os.Getenv("TEST_LOGS"); dir != "" {
		if raw, err := os.ReadFile(p.logPath); err == nil {
			name := strings.ReplaceAll(p.name, " ", "-") + "-" + filepath.Base(p.logPath)
			_ = os.WriteFile(filepath.Join(dir, name), raw, 0o644)
		}
	}
	if t.Failed() {
		t.Logf("log of %s:\n%s", p.name, p.LogTail(60))
	}
}
