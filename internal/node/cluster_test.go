package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/internal/config"
	"platform/internal/telemetry"
	"platform/test/harness/ports"
)

// waitTimeout limits each wait, on a machine that is busy with other tests as well.
const waitTimeout = 2 * time.Minute

// testCluster is a cluster of nodes in this process, on ports of the loopback interface.
type testCluster struct {
	t     testing.TB
	nodes []*member
}

// member is one node, which can be stopped and started again.
type member struct {
	cfg    *config.Config
	cancel context.CancelFunc
	done   chan error
}

// newTestCluster starts fresh nodes that expect each other.
func newTestCluster(t *testing.T, count int, flags ...string) *testCluster {
	t.Helper()
	return newTestClusterWith(t, count, func(*config.Config) {}, flags...)
}

// newTestClusterWith is newTestCluster with another configuration.
func newTestClusterWith(t testing.TB, count int, change func(*config.Config), flags ...string) *testCluster {
	t.Helper()
	c := &testCluster{t: t}
	free := ports.Free(t, 3*count)
	var seeds []string
	for i := range count {
		seeds = append(seeds, fmt.Sprintf("127.0.0.1:%d", free[3*i]))
	}
	dir := t.TempDir()
	for i := range count {
		args := append([]string{
			fmt.Sprintf("--node-name=n%d", i+1), "--bind-ip=127.0.0.1", fmt.Sprintf("--bind-port=%d", free[3*i]),
			"--base-dir=" + dir, "--default-num-partitions=4", fmt.Sprintf("--bootstrap-expect=%d", count), "--shutdown-timeout=20s", "--disk-timeout=1m",
		}, flags...)
		loaded, err := config.Load(args, []string{
			fmt.Sprintf("PLATFORM_INGRESS__BIND_PORT=%d", free[3*i+1]), fmt.Sprintf("PLATFORM_ADMIN__BIND_PORT=%d", free[3*i+2]),
			`PLATFORM_METADATA_CLIENT__ADDRESSES=["` + strings.Join(seeds, `","`) + `"]`,
		})
		require.NoError(t, err)
		change(loaded.Config)
		c.nodes = append(c.nodes, &member{cfg: loaded.Config})
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.stop(i)
		}
	})
	for i := range count {
		c.start(i)
	}
	return c
}

func (c *testCluster) start(i int) {
	m := c.nodes[i]
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.done = cancel, make(chan error, 1)
	// Errors also go to stderr: a node that cannot continue ends the test process, and with it the output of the test.
	log := slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}),
		slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}),
	)).With("node", m.cfg.NodeName)
	go func() { m.done <- Run(ctx, &config.Loaded{Config: m.cfg}, log, new(telemetry.Levels)) }()
}

// stop takes a node down in order.
func (c *testCluster) stop(i int) {
	m := c.nodes[i]
	if m.cancel == nil {
		return
	}
	m.cancel()
	m.cancel = nil
	select {
	case err := <-m.done:
		require.NoError(c.t, err)
	case <-time.After(waitTimeout):
		require.FailNow(c.t, "node does not stop", "n%d", i+1)
	}
}

func (c *testCluster) do(i int, admin bool, method, path, body string) (int, string) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	return c.doWithin(ctx, i, admin, method, path, body)
}

func (c *testCluster) doWithin(ctx context.Context, i int, admin bool, method, path, body string) (int, string) {
	port := c.nodes[i].cfg.Ingress.BindPort
	if admin {
		port = c.nodes[i].cfg.Admin.BindPort
	}
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), strings.NewReader(body))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(answer)
}

// healthy waits until each of the given nodes says that it is part of a cluster of
// that many.
func (c *testCluster) healthy(members int, nodes ...int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for _, i := range nodes {
			var health struct {
				Metadata struct{ Members []int } `json:"metadata_cluster_health"`
			}
			code, body := c.do(i, true, "GET", "/cluster-health", "")
			if code != http.StatusOK || json.Unmarshal([]byte(body), &health) != nil || len(health.Metadata.Members) != members {
				return false
			}
		}
		return true
	}, waitTimeout, 20*time.Millisecond, "the nodes are no cluster")
}

// counter serves an object, registered through node i.
func (c *testCluster) counter(i int) {
	c.guardedCounter(i, func(h http.Handler) http.Handler { return h }, "")
}

// guardedCounter is counter with a middleware and more fields of the registration.
func (c *testCluster) guardedCounter(i int, guard func(http.Handler) http.Handler, fields string) {
	c.objects(i, guard, fields, "Counter")
}

// objects serves and registers objects like Counter.
func (c *testCluster) objects(i int, guard func(http.Handler) http.Handler, fields string, names ...string) {
	services := server.NewRestate().WithLogger(slog.DiscardHandler, false)
	for _, name := range names {
		services.Bind(restate.NewObject(name).Handler("add", restate.NewObjectHandler(
			func(ctx restate.ObjectContext, n int) (int, error) {
				sum, err := restate.Get[int](ctx, "sum")
				if err != nil {
					return 0, err
				}
				restate.Set(ctx, "sum", sum+n)
				return sum + n, nil
			})))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	handler, err := services.Handler()
	require.NoError(c.t, err)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: guard(handler), Protocols: &protocols}
	go func() { _ = srv.Serve(l) }()
	c.t.Cleanup(func() { _ = srv.Close() })
	code, body := c.do(i, true, "POST", "/deployments", fmt.Sprintf(`{"uri":"http://%s"%s}`, l.Addr(), fields))
	require.Equal(c.t, http.StatusCreated, code, body)
}

func TestThreeNodesMakeOneCluster(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	for round := range 3 {
		for key := range 8 {
			for i := range c.nodes {
				code, body := c.do(i, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
				require.Equal(t, http.StatusOK, code, body)
				require.Equal(t, fmt.Sprint(3*round+i+1), body)
			}
		}
	}
	c.logLevels()
}

// logLevels changes the levels of nodes by way of others.
func (c *testCluster) logLevels() {
	code, body := c.do(0, true, "PUT", "/cluster/log-levels", `{"log_filter":"debug","nodes":["n2","n3"]}`)
	require.Equal(c.t, http.StatusOK, code, body)
	code, body = c.do(1, true, "DELETE", "/cluster/log-levels?node=n3", "")
	require.Equal(c.t, http.StatusOK, code, body)
	var levels struct {
		Nodes []struct {
			Name   string
			Filter string `json:"log_filter"`
			Reason string
		}
	}
	c.get(2, "/cluster/log-levels", &levels)
	set := map[string]string{}
	for _, n := range levels.Nodes {
		require.Empty(c.t, n.Reason)
		set[n.Name] = n.Filter
	}
	require.Equal(c.t, map[string]string{"n1": "", "n2": "debug", "n3": ""}, set)
}

func TestCallsContinueWhileNodesRestart(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	sum := 0
	for down := range c.nodes {
		c.stop(down)
		for i := range c.nodes {
			if i == down {
				continue
			}
			for key := range 4 {
				code, body := c.do(i, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "1")
				require.Equal(t, http.StatusOK, code, body)
			}
			sum++
		}
		c.start(down)
		c.replicated(down)
	}
	for key := range 4 {
		code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "0")
		require.Equal(t, http.StatusOK, code, body)
		require.Equal(t, fmt.Sprint(sum), body)
	}
}

// replicated waits until the given nodes report no problem with the cluster, so that any single
// node may fail. A lack of space on the disk of the machine is none.
func (c *testCluster) replicated(nodes ...int) {
	c.t.Helper()
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		for _, i := range nodes {
			ctx, cancel := context.WithTimeout(c.t.Context(), waitTimeout/2)
			code, body := c.doWithin(ctx, i, true, "GET", "/cluster-health", "")
			assert.NotErrorIs(c.t, ctx.Err(), context.DeadlineExceeded, "n%d does not respond: %s", i+1, body)
			cancel()
			require.Equal(t, http.StatusOK, code, "n%d: %s", i+1, body)
			var health struct{ Problems []string }
			require.NoError(t, json.Unmarshal([]byte(body), &health))
			problems := slices.DeleteFunc(health.Problems, func(p string) bool { return strings.HasPrefix(p, "the disk of node") })
			require.Empty(t, problems, "n%d", i+1)
		}
	}, waitTimeout, 50*time.Millisecond)
}
