package sizes

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
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

// serveBig is the environment variable that makes the program serve large results instead of running
// tests: in the process of the other handlers and of the callers, these would wait for it.
const serveBig = "SIZES_SERVE_BIG"

// bigFor starts the process and registers its service Big.
func (b *testbed) bigFor() {
	big := harness.ServiceFor(b.t, harness.ServiceOptions{Name: "big", Command: []string{os.Args[0]}, Env: map[string]string{serveBig: "true"}})
	require.NoError(b.t, b.Nodes[0].Register(b.t.Context(), big.URI(), false))
}

// runBig serves handlers with large inputs and results.
func runBig() error {
	big := restate.NewService("Big").Handler("make", restate.NewServiceHandler(
		func(_ restate.Context, in []byte) ([]byte, error) {
			size, err := strconv.Atoi(string(in))
			return make([]byte, size), err
		}, restate.WithBinary)).Handler("echo", restate.NewServiceHandler(echo, restate.WithBinary)).
		Handler("size", restate.NewServiceHandler(size, restate.WithBinary))
	return server.NewRestate().WithLogger(slog.DiscardHandler, false).Bind(big).
		Start(context.Background(), net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
}

// Clients that read their results slowly use up the memory for bodies, and others only keep connections
// open. The calls of others with small bodies succeed meanwhile, and wait for none of that.
func TestSlowReadersDoNotDelayOthers(t *testing.T) {
	const (
		limit    = 64 * mebi
		readers  = 60 // of results of each size: together more than the memory, and nothing of it remains
		idle     = 500
		callers  = 4
		during   = 5 * time.Second
		slowest  = 5 * time.Second
		bodySize = 60 * kibi
	)
	b := &testbed{t: t, Cluster: harness.ClusterFor(t, harness.ClusterOptions{Nodes: 1, Env: map[string]string{
		"NETWORKING__BODY_MEMORY_LIMIT": strconv.Itoa(limit), "NETWORKING__CONNECTION_BODY_MEMORY_LIMIT": strconv.Itoa(limit),
	}})}
	node := b.Nodes[0]
	require.NoError(t, node.Register(t.Context(), services(t), false))
	b.bigFor()

	before, meanwhile := new(neighbors), new(neighbors)
	before.sized(t, node, callers, during, bodySize)
	for range idle {
		conn, err := net.Dial("tcp", strings.TrimPrefix(node.Client.Base(), "http://"))
		require.NoError(t, err)
		defer conn.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	defer g.Wait()
	defer cancel()
	for range readers {
		g.Go(func() { b.readSlowly(ctx, 2*mebi) })
		g.Go(func() { b.readSlowly(ctx, 128*kibi) })
	}
	require.Eventually(t, func() bool { return b.bodyMemory() >= limit }, time.Minute, 10*time.Millisecond)
	t.Logf("before: %v", before)
	for range 3 { // a machine that stalls delays a call once
		meanwhile = new(neighbors)
		meanwhile.sized(t, node, callers, during, bodySize)
		require.GreaterOrEqual(t, b.bodyMemory(), limit/2)
		t.Logf("during: %v", meanwhile)
		if meanwhile.quantile(1) < slowest {
			break
		}
	}
	require.Less(t, meanwhile.quantile(1), slowest)
}

// sized makes calls with bodies and results of the given size for some time, all of which must succeed.
func (c *neighbors) sized(t *testing.T, node *harness.Server, callers int, during time.Duration, size int) {
	end := time.Now().Add(during)
	b := &testbed{t: t}
	b.concurrently(callers, func(int) error {
		for {
			begin := time.Now()
			if begin.After(end) {
				return nil
			}
			resp, err := node.Client.Call(t.Context(), "Echo/echo", make([]byte, size), "content-type", "application/octet-stream")
			took := time.Since(begin)
			if err != nil {
				return fmt.Errorf("after %v: %w", took, err)
			}
			if resp.Status != http.StatusOK || len(resp.Body) != size {
				return fmt.Errorf("after %v: status %d, %d bytes: %.200s", took, resp.Status, len(resp.Body), resp.Body)
			}
			c.mu.Lock()
			c.took = append(c.took, took)
			c.mu.Unlock()
		}
	})
}

// readSlowly repeatedly calls a handler with a result of the given size, and reads 64 KiB of it per second.
func (b *testbed) readSlowly(ctx context.Context, size int) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4 * kibi)
		}
		return conn, err
	}}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.Nodes[0].Client.Base()+"/platform/call/Big/make", strings.NewReader(strconv.Itoa(size)))
		if err != nil {
			b.t.Error(err)
			return
		}
		req.Header.Set("content-type", "application/octet-stream")
		resp, err := client.Do(req)
		if err != nil {
			continue // the test ends, or the server has given up
		}
		for err == nil && harness.Sleep(ctx, time.Second) {
			_, err = io.CopyN(io.Discard, resp.Body, 64*kibi)
		}
		_ = resp.Body.Close()
	}
}

var bodyMemory = regexp.MustCompile(`(?m)^platform_body_memory_bytes\S* (\S+)$`)

// bodyMemory returns the memory for bodies that is in use.
func (b *testbed) bodyMemory() int {
	resp, err := http.Get(b.Nodes[0].Admin() + "/metrics")
	require.NoError(b.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	found := bodyMemory.FindSubmatch(body)
	require.NotNil(b.t, found)
	n, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(b.t, err)
	return int(n)
}
