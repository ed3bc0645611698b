package cluster

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// TestBlockedServiceDoesNotStarveItsNeighbor fills the attempt slots of all nodes with
// handlers that block until the test ends. Calls of another service of the same deployment
// complete on each node, although the endpoint accepts only 100 streams per connection.
// CLUSTER_SLOTS is the number of slots per node (64; the default of a server is 1,000).
func TestBlockedServiceDoesNotStarveItsNeighbor(t *testing.T) {
	slots := intSetting(t, "CLUSTER_SLOTS", 64)
	const nodes, calls = 3, 100
	c := harness.ClusterFor(t, harness.ClusterOptions{Nodes: nodes, Env: map[string]string{
		"WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT": strconv.Itoa(slots),
		"WORKER__INVOKER__INACTIVITY_TIMEOUT":           "1h",
		"WORKER__INVOKER__ABORT_TIMEOUT":                "1h",
	}})
	s := newBlockingService(t)
	require.NoError(t, c.Nodes[0].Register(t.Context(), s.address, false))
	before := s.measure(t, c, calls)
	for i := range nodes*slots + 5 {
		resp, err := c.Nodes[i%nodes].Client.Send(t.Context(), "Blocking/block", nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, resp.Status, "%s", resp.Body)
	}
	// A service may have all slots but one of 17.
	require.Eventually(t, func() bool { return s.blocked.Load() >= int64(nodes*slots*8/10) }, recoveryTimeout, 20*time.Millisecond,
		"the handlers must start")
	during := s.measure(t, c, calls)
	for i := range c.Nodes {
		t.Logf("node %d: p50 %v, p99 %v; with %d blocked handlers p50 %v, p99 %v", i+1,
			quantile(before[i], 0.5), quantile(before[i], 0.99), s.blocked.Load(), quantile(during[i], 0.5), quantile(during[i], 0.99))
	}
}

// blockingService is an endpoint with one service whose handler blocks and one that
// responds immediately.
type blockingService struct {
	address string
	blocked atomic.Int64
}

func newBlockingService(t *testing.T) *blockingService {
	s, release := new(blockingService), make(chan struct{})
	endpoint := server.NewRestate().WithLogger(slog.DiscardHandler, false).
		Bind(restate.NewService("Blocking").Handler("block", restate.NewServiceHandler(
			func(ctx restate.Context, _ restate.Void) (restate.Void, error) {
				s.blocked.Add(1)
				defer s.blocked.Add(-1)
				select {
				case <-release:
				case <-ctx.Done():
				}
				return restate.Void{}, nil
			}))).
		Bind(restate.NewService("Neighbor").Handler("echo", restate.NewServiceHandler(
			func(_ restate.Context, in int) (int, error) { return in, nil })))
	handler, err := endpoint.Handler()
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: handler, Protocols: protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100}}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = "http://" + lis.Addr().String()
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(func() {
		close(release)
		_ = srv.Close()
	})
	return s
}

// measure calls the neighbor on all nodes, count times each, one call after the other per
// node, and returns the sorted durations by node.
func (s *blockingService) measure(t *testing.T, c *harness.Cluster, count int) [][]time.Duration {
	took := make([][]time.Duration, len(c.Nodes))
	ctx, cancel := context.WithTimeout(t.Context(), recoveryTimeout)
	defer cancel()
	var g sync.WaitGroup
	for i, n := range c.Nodes {
		g.Go(func() {
			for len(took[i]) < count {
				begin := time.Now()
				resp, err := n.Client.Call(ctx, "Neighbor/echo", []byte("1"))
				if ctx.Err() != nil {
					t.Errorf("node %d: call %d has no result", i+1, len(took[i]))
					return
				}
				if err != nil || resp.Status != http.StatusOK { // a leader may change on a slow machine
					harness.Sleep(ctx, 50*time.Millisecond)
					continue
				}
				took[i] = append(took[i], time.Since(begin))
			}
			slices.Sort(took[i])
		})
	}
	g.Wait()
	require.False(t, t.Failed())
	return took
}
