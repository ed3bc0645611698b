package sizes

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

// memoryLimit is the memory limit of each server.
const memoryLimit = 1 << 30

// scale determines the amount of work.
type scale struct {
	nodes   int
	waiters int // of one result of 1 MiB
	sends   int // of 3 MiB each, to other objects
	echoes  []int
	kill    bool
}

func testScale() scale {
	if os.Getenv("SIZES_LONG") == "" {
		return scale{nodes: 1, waiters: 60, sends: 40, echoes: []int{mebi / 2, 8 * mebi, 30 * mebi}}
	}
	return scale{nodes: 3, waiters: 300, sends: 80, echoes: []int{mebi / 2, 2 * mebi, 8 * mebi, 16 * mebi, 31 * mebi}, kill: true}
}

func TestMain(m *testing.M) {
	if os.Getenv(serveBig) != "" {
		fmt.Fprintln(os.Stderr, runBig())
		os.Exit(1)
	}
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// testbed is a cluster with the services below.
type testbed struct {
	*harness.Cluster
	t *testing.T
}

func newTestbed(t *testing.T, nodes int, more ...restate.ServiceDefinition) *testbed {
	b := &testbed{t: t, Cluster: harness.ClusterFor(t, harness.ClusterOptions{
		Nodes: nodes,
		Env: map[string]string{
			"DEFAULT_NUM_PARTITIONS":              "4",
			"WORKER__INVOKER__MEMORY_LIMIT":       "128MiB",
			"WORKER__INVOKER__ABORT_TIMEOUT":      "5m",
			"DEFAULT_JOURNAL_RETENTION":           "0s",
			"WORKER__INVOKER__INACTIVITY_TIMEOUT": "5m",
		},
		Placement: limitMemory,
	})}
	require.NoError(t, b.Nodes[0].Register(t.Context(), services(t, more...), false))
	return b
}

// limitMemory starts nodes with the memory limit.
func limitMemory(int) harness.Placement {
	return harness.Placement{Start: func(cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", memoryLimit*9/10))
		return cmd.Start()
	}}
}

// echo returns its input.
func echo(_ restate.Context, in []byte) ([]byte, error) { return in, nil }

// size returns the size of its input.
func size(_ restate.Context, in []byte) ([]byte, error) {
	return strconv.AppendInt(nil, int64(len(in)), 10), nil
}

// services serves an endpoint in this process and returns its address.
func services(t *testing.T, more ...restate.ServiceDefinition) string {
	endpoint := server.NewRestate().WithLogger(slog.DiscardHandler, false).
		Bind(restate.NewService("Echo").Handler("echo", restate.NewServiceHandler(echo, restate.WithBinary))).
		Bind(restate.NewWorkflow("Slow").Handler("run", restate.NewWorkflowHandler(
			func(ctx restate.WorkflowContext, size int) ([]byte, error) {
				if _, err := restate.Promise[bool](ctx, "go").Result(); err != nil {
					return nil, err
				}
				return make([]byte, size), nil
			})).Handler("release", restate.NewWorkflowSharedHandler(
			func(ctx restate.WorkflowSharedContext, _ restate.Void) (restate.Void, error) {
				return restate.Void{}, restate.Promise[bool](ctx, "go").Resolve(true)
			}))).
		Bind(restate.NewService("Wait").Handler("wait", restate.NewServiceHandler(
			func(ctx restate.Context, id string) (int, error) {
				result, err := restate.AttachInvocation[[]byte](ctx, id).Response()
				return len(result), err
			}))).
		Bind(restate.NewService("Fan").Handler("out", restate.NewServiceHandler(
			func(ctx restate.Context, in [2]int) (restate.Void, error) {
				for i := range in[0] {
					restate.ObjectSend(ctx, "Sink", strconv.Itoa(i%8), "add").Send(make([]byte, in[1]))
				}
				return restate.Void{}, nil
			}))).
		Bind(restate.NewObject("Sink").Handler("add", restate.NewObjectHandler(
			func(ctx restate.ObjectContext, in []byte) (restate.Void, error) {
				n, err := restate.Get[int](ctx, "bytes")
				restate.Set(ctx, "bytes", n+len(in))
				return restate.Void{}, err
			})).Handler("total", restate.NewObjectHandler(
			func(ctx restate.ObjectContext, _ restate.Void) (int, error) { return restate.Get[int](ctx, "bytes") })))
	for _, s := range more {
		endpoint.Bind(s)
	}
	handler, err := endpoint.Handler()
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: handler, Protocols: protocols}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = s.Serve(lis) }()
	t.Cleanup(func() { _ = s.Close() })
	return "http://" + lis.Addr().String()
}

// call retries a call at one node after another until the response is final.
func (b *testbed) call(ctx context.Context, path string, body []byte, idempotencyKey string) harness.Response {
	for attempt := 0; ; attempt++ {
		var header []string
		switch {
		case strings.HasPrefix(path, "Echo/"):
			header = []string{"content-type", "application/octet-stream"}
		case body != nil:
			header = []string{"content-type", "application/json"}
		}
		if idempotencyKey != "" {
			header = append(header, "idempotency-key", idempotencyKey)
		}
		resp, err := b.Nodes[attempt%len(b.Nodes)].Client.Call(ctx, path, body, header...)
		if err == nil && resp.Status < http.StatusInternalServerError {
			return resp
		}
		if ctx.Err() != nil {
			b.t.Errorf("%s: %v, %d %.200s", path, err, resp.Status, resp.Body)
			return resp
		}
		harness.Sleep(ctx, 50*time.Millisecond)
	}
}

// requireMemory checks the peak memory of each server.
func (b *testbed) requireMemory() {
	b.t.Helper()
	for i, n := range b.Nodes {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Process.PID()))
		if err != nil {
			b.t.Skipf("cannot read memory usage: %v", err)
		}
		found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
		require.NotNil(b.t, found)
		kib, _ := strconv.Atoi(string(found[1]))
		b.t.Logf("node %d: peak %d MiB resident", i+1, kib>>10)
		require.Less(b.t, kib<<10, memoryLimit, "node %d", i+1)
	}
}

func TestLargeMessagesWithLittleMemory(t *testing.T) {
	size := testScale()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	b := newTestbed(t, size.nodes)
	b.echo(ctx, size)
	b.fanOut(ctx, size)
	b.fanIn(ctx, size)
	b.requireMemory()
}

// echo sends bodies of every size, two concurrently, and one that is too large.
func (b *testbed) echo(ctx context.Context, size scale) {
	for _, n := range size.echoes {
		body := bytes.Repeat([]byte{'x'}, n)
		var g sync.WaitGroup
		for i := range 2 {
			g.Go(func() {
				resp := b.call(ctx, "Echo/echo", body, fmt.Sprintf("%d-%d", n, i))
				if resp.Status != http.StatusOK || !bytes.Equal(body, resp.Body) {
					b.t.Errorf("echo of %d bytes: %d, %d bytes", n, resp.Status, len(resp.Body))
				}
			})
		}
		g.Wait()
	}
	resp := b.call(ctx, "Echo/echo", make([]byte, 33*mebi), "")
	require.Equal(b.t, http.StatusRequestEntityTooLarge, resp.Status)
}

// fanOut sends more to other partitions in one step than fits into a log entry; in the
// long form their leader is killed.
func (b *testbed) fanOut(ctx context.Context, size scale) {
	const messageSize = 3 * mebi
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range size.sends / 40 {
			resp := b.call(ctx, "Fan/out", fmt.Appendf(nil, "[40,%d]", messageSize), fmt.Sprintf("fan-%d", i))
			if resp.Status != http.StatusOK {
				b.t.Errorf("fan out: %d %.200s", resp.Status, resp.Body)
			}
		}
	}()
	if size.kill {
		last := b.Nodes[len(b.Nodes)-1]
		last.Kill()
		require.NoError(b.t, last.Restart(ctx))
	}
	<-sent
	require.Eventually(b.t, func() bool {
		total := 0
		for i := range 8 {
			resp := b.call(ctx, fmt.Sprintf("Sink/%d/total", i), nil, "")
			n, err := strconv.Atoi(strings.TrimSpace(string(resp.Body)))
			if err != nil {
				b.t.Errorf("sink %d: %d %s", i, resp.Status, resp.Body)
				return true
			}
			total += n
		}
		return total == size.sends*messageSize
	}, 4*time.Minute, 100*time.Millisecond, "every message must arrive once")
}

// fanIn has many invocations wait for one result.
func (b *testbed) fanIn(ctx context.Context, size scale) {
	resp, err := b.Nodes[0].Client.Send(ctx, "Slow/s/run", strconv.AppendInt(nil, mebi*3/4, 10), "content-type", "application/json")
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusAccepted, resp.Status, "%s", resp.Body)
	id := strconv.Quote(resp.ID())
	var g sync.WaitGroup
	for i := range size.waiters {
		g.Go(func() {
			resp := b.call(ctx, "Wait/wait", []byte(id), fmt.Sprintf("wait-%d", i))
			if resp.Status != http.StatusOK || strings.TrimSpace(string(resp.Body)) != strconv.Itoa(mebi*3/4) {
				b.t.Errorf("waiter %d: %d %.200s", i, resp.Status, resp.Body)
			}
		})
	}
	b.awaitWaiters(ctx, size.waiters)
	require.Equal(b.t, http.StatusOK, b.call(ctx, "Slow/s/release", nil, "").Status)
	g.Wait()
}

// awaitWaiters waits until count invocations are waiting.
func (b *testbed) awaitWaiters(ctx context.Context, count int) {
	require.Eventually(b.t, func() bool {
		n, ok := b.count(ctx, "SELECT COUNT(*) AS n FROM sys_invocation WHERE target_service_name = 'Wait'")
		return ok && n >= count
	}, 2*time.Minute, 200*time.Millisecond)
}

// count returns the column n of a query; false if the query failed.
func (b *testbed) count(ctx context.Context, sql string) (int, bool) {
	resp, err := b.Nodes[0].Client.Query(ctx, sql)
	if err != nil || resp.Status != http.StatusOK {
		return 0, false
	}
	found := regexp.MustCompile(`"n":\s*"?(\d+)`).FindSubmatch(resp.Body)
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(found[1]))
	return n, err == nil
}
