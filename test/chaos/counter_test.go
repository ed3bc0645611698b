package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/history"
)

const (
	callKeys = 16 // counters used by calls
	sendKeys = 16 // counters used by sends
)

// client is the only client of one counter.
type client struct {
	path  string
	send  bool
	http  *harness.Client
	model history.CounterModel

	adds, unexpected int
	lastUnexpected   string
}

// TestKillRounds kills the server at random points under load. After each restart the
// value of every counter must be the sum of the acknowledged amounts and a subset of
// the amounts without a response, and every counter must respond soon.
func TestKillRounds(t *testing.T) {
	env := newEnvironment(t)
	var clients []*client
	for i := range callKeys + sendKeys {
		clients = append(clients, &client{
			path: harness.Path("Counter", fmt.Sprintf("key-%d", i), "add"),
			send: i >= callKeys,
			http: harness.NewClient(env.server.Client.Base(), env.server.Target.Prefix),
		})
	}

	var responses, slowest, starts []time.Duration
	reconcile := func(round int) {
		took, err := reconcileAll(t.Context(), clients)
		require.NoError(t, err, "round %d", round)
		responses = append(responses, took...)
		slowest = append(slowest, quantile(took, 1))
	}
	for round := range rounds(t) {
		reconcile(round)
		load(t.Context(), clients, func() {
			randomPause(t.Context(), 300*time.Millisecond)
		}, env.server.Kill)

		for rand.IntN(4) == 0 { // sometimes kill it during recovery
			require.NoError(t, env.server.Launch())
			randomPause(t.Context(), 150*time.Millisecond)
			env.server.Kill()
		}
		begin := time.Now()
		require.NoError(t, env.server.Restart(t.Context()))
		starts = append(starts, time.Since(begin))
	}
	reconcile(-1)

	total := 0
	for _, c := range clients {
		total += c.adds
		require.Zero(t, c.unexpected, "%s: requests failed while the server was running, e.g. %s", c.path, c.lastUnexpected)
	}
	t.Logf("%d rounds, %d acknowledged adds on %d counters verified; restart until healthy p50 %s max %s; then until the response of a key p50 %s p99 %s, of all keys p99 %s max %s",
		rounds(t), total, len(clients), quantile(starts, 0.5), quantile(starts, 1),
		quantile(responses, 0.5), quantile(responses, 0.99), quantile(slowest, 0.99), quantile(slowest, 1))
	require.LessOrEqual(t, quantile(slowest, 1), responseTimeout(t), "a key responded too late after a restart")
}

// load runs all clients during wait, then kills the server and waits for the clients.
func load(ctx context.Context, clients []*client, wait, kill func()) {
	var down atomic.Bool // set before the kill; later failures are expected
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.addUntil(ctx, &down) })
	}
	wait()
	down.Store(true)
	kill()
	wg.Wait()
}

// addUntil adds random amounts until down is set.
func (c *client) addUntil(ctx context.Context, down *atomic.Bool) {
	request, want := c.http.Call, http.StatusOK
	if c.send {
		request, want = c.http.Send, http.StatusAccepted
	}
	for !down.Load() {
		amount := 1 + rand.Int64N(1<<40)
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		resp, err := request(ctx, c.path, strconv.AppendInt(nil, amount, 10))
		cancel()
		switch {
		case err == nil && resp.Status == want:
			c.model.Acked += amount
			c.adds++
		case errors.Is(err, syscall.ECONNREFUSED): // never sent
		default:
			c.model.Unknown = append(c.model.Unknown, amount)
			if !down.Load() {
				c.unexpected++
				c.lastUnexpected = fmt.Sprintf("%v %d %s", err, resp.Status, resp.Body)
			}
		}
	}
}

// reconcileAll compares every counter with its model and returns the response times.
func reconcileAll(ctx context.Context, clients []*client) ([]time.Duration, error) {
	took := make([]time.Duration, len(clients))
	errs := make([]error, len(clients))
	begin := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			errs[i] = c.reconcile(ctx)
			took[i] = time.Since(begin)
		})
	}
	wg.Wait()
	return took, errors.Join(errs...)
}

// reconcile reads the counter by adding 0, which is queued behind all earlier sends,
// and compares the value with the model.
func (c *client) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.http.Call(ctx, c.path, []byte("0"))
	if err != nil {
		return err
	}
	var value int64
	if err := resp.Decode(&value); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if err := c.model.Reconcile(value); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return nil
}
