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
	callKeys = 16 // counters that are called
	sendKeys = 16 // counters that are sent to
)

// client adds to one counter, which nobody else adds to.
type client struct {
	path  string
	send  bool
	http  *harness.Client
	tally history.Tally

	acked, unexpected int
	lastUnexpected    string
}

// TestKillRounds kills the server at random points under load. After each restart
// every counter must hold what was acknowledged, plus a choice of the amounts
// whose requests got no answer, and must do so soon.
func TestKillRounds(t *testing.T) {
	sys := startSystem(t)
	var clients []*client
	for i := range callKeys + sendKeys {
		clients = append(clients, &client{
			path: harness.Path("Counter", fmt.Sprintf("key-%d", i), "add"),
			send: i >= callKeys,
			http: harness.NewClient(sys.server.Client.Base(), sys.server.Target.Prefix),
		})
	}

	var answers, slowest, starts []time.Duration
	settle := func(round int) {
		took, err := settleAll(t.Context(), clients)
		require.NoError(t, err, "round %d", round)
		answers = append(answers, took...)
		slowest = append(slowest, quantile(took, 1))
	}
	for round := range rounds(t) {
		settle(round)
		load(t.Context(), clients, func() {
			pause(t.Context(), 300*time.Millisecond)
		}, sys.server.Kill)

		for rand.IntN(4) == 0 { // now and then it does not get far
			require.NoError(t, sys.server.Launch())
			pause(t.Context(), 150*time.Millisecond)
			sys.server.Kill()
		}
		begin := time.Now()
		require.NoError(t, sys.server.Restart(t.Context()))
		starts = append(starts, time.Since(begin))
	}
	settle(-1)

	total := 0
	for _, c := range clients {
		total += c.acked
		require.Zero(t, c.unexpected, "%s: requests failed while the server was up, e.g. %s", c.path, c.lastUnexpected)
	}
	t.Logf("%d rounds, %d acknowledged adds on %d counters exact; restart to healthy p50 %s max %s; then to an answer of a key p50 %s p99 %s, of all keys p99 %s max %s",
		rounds(t), total, len(clients), quantile(starts, 0.5), quantile(starts, 1),
		quantile(answers, 0.5), quantile(answers, 0.99), quantile(slowest, 0.99), quantile(slowest, 1))
	require.LessOrEqual(t, quantile(slowest, 1), answerLimit(t), "a key answered too late after a restart")
}

// load makes all clients add while during runs, then kills and waits for them.
func load(ctx context.Context, clients []*client, during, kill func()) {
	var down atomic.Bool // set before the kill, so that what fails from then on is expected
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.addUntil(ctx, &down) })
	}
	during()
	down.Store(true)
	kill()
	wg.Wait()
}

// addUntil adds random amounts until the server is down.
func (c *client) addUntil(ctx context.Context, down *atomic.Bool) {
	request, want := c.http.Call, http.StatusOK
	if c.send {
		request, want = c.http.Send, http.StatusAccepted
	}
	for !down.Load() {
		amount := 1 + rand.Int64N(1<<40)
		ctx, cancel := context.WithTimeout(ctx, patience)
		answer, err := request(ctx, c.path, strconv.AppendInt(nil, amount, 10))
		cancel()
		switch {
		case err == nil && answer.Status == want:
			c.tally.Acked += amount
			c.acked++
		case errors.Is(err, syscall.ECONNREFUSED): // never sent
		default:
			c.tally.Unknown = append(c.tally.Unknown, amount)
			if !down.Load() {
				c.unexpected++
				c.lastUnexpected = fmt.Sprintf("%v %d %s", err, answer.Status, answer.Body)
			}
		}
	}
}

// settleAll reads every counter and compares it with its tally. It returns how
// long each took to answer.
func settleAll(ctx context.Context, clients []*client) ([]time.Duration, error) {
	took := make([]time.Duration, len(clients))
	errs := make([]error, len(clients))
	begin := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			errs[i] = c.settle(ctx)
			took[i] = time.Since(begin)
		})
	}
	wg.Wait()
	return took, errors.Join(errs...)
}

// settle adds nothing to the counter, which is queued behind all that was sent
// before, and checks the value that comes back.
func (c *client) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := c.http.Call(ctx, c.path, []byte("0"))
	if err != nil {
		return err
	}
	var value int64
	if err := answer.Decode(&value); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if err := c.tally.Settle(value); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return nil
}
