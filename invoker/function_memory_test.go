package invoker

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/invoker/endpoint"
	"platform/invoker/endpoint/lambda"
	"platform/invoker/endpoint/lambda/lambdatest"
	"platform/partition/journal"
)

func TestResponsesOfFunctionsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, count = 4000, 6
		release := make(chan struct{})
		var mu sync.Mutex
		holding := 0
		o := newOffline(t, memories(10_000, 8_000), func(w *wire) {
			a := w.recv.(*attempt)
			a.Sent(w.length())
			require.NoError(t, a.Hold(size))
			mu.Lock()
			holding++
			mu.Unlock()
			<-release
			w.ok()
			a.Release(size)
			w.send(t, outputHi+end)
		})
		o.iv.memory.limit = 2*size + 100 // without a reserve for small attempts
		defer o.close()
		var ended []chan journal.Result
		for n := range byte(count) {
			_, done := o.shard.call(greeter, n+1, "")
			ended = append(ended, done)
		}
		synctest.Wait()
		mu.Lock()
		require.Equal(t, 3, holding, "two that fit, and one that overdraws the budget")
		mu.Unlock()
		require.Equal(t, 3*size, o.memoryUsed())
		for range ended {
			release <- struct{}{}
			synctest.Wait()
			require.LessOrEqual(t, o.memoryUsed(), 3*size+100)
		}
		for _, done := range ended {
			require.Nil(t, receive(t, done).Failure)
		}
		require.Zero(t, o.memoryUsed())
	})
}

func TestAnAttemptThatEndsDoesNotWaitToHold(t *testing.T) {
	b := &budget{limit: 100}
	holder, overdrawn, cut, next := account{b: b}, account{b: b}, account{b: b}, account{b: b}
	hold := func(c *account) <-chan struct{} {
		turn, ok := c.hold(60)
		require.True(t, ok)
		return turn
	}
	require.Nil(t, hold(&holder))
	require.True(t, isOver(hold(&overdrawn)))
	first, second := hold(&cut), hold(&next)
	starting := account{b: b}
	start := starting.begin(10)
	require.False(t, isOver(first) || isOver(second) || isOver(start))
	cut.close()
	require.True(t, isOver(first))
	require.False(t, isOver(second))
	overdrawn.close()
	require.True(t, isOver(second), "those whose function has ended come before those that start")
	require.False(t, isOver(start))
	for _, c := range []*account{&holder, &next, &starting} {
		c.close()
	}
	require.True(t, isOver(start))
	require.Zero(t, b.used)
}

// watchedFunctions records the memory of the node when a response has been received.
type watchedFunctions struct {
	endpoint.Functions
	used func() int

	mu    sync.Mutex // covers least
	least int        // of the memory that was used then
}

func (w *watchedFunctions) Invoke(ctx context.Context, f *endpoint.Function, r *http.Request, m endpoint.Memory) (*http.Response, error) {
	resp, err := w.Functions.Invoke(ctx, f, r, m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used != nil {
		w.least = min(w.least, w.used())
	}
	return resp, err
}

// TestMemoryOfFunctions invokes functions that return large values concurrently.
func TestMemoryOfFunctions(t *testing.T) {
	cloud := lambdatest.Start(t)
	services := serveFunction(t)
	cloud.Handle(testARN, services)
	cfg := withFunctions()
	functions := &watchedFunctions{Functions: lambda.New(lambda.DefaultConfig()), least: 1 << 30}
	cfg.Endpoint.Functions = functions
	cfg.MemoryLimit, cfg.InvocationMemoryLimit = 3<<20, 3<<20
	b := withDeployment(t, cfg, discovery.Request{ARN: testARN}, nil)
	functions.mu.Lock()
	functions.used = func() int {
		used, _ := b.iv.Memory()
		return used
	}
	functions.mu.Unlock()
	const size = 1 << 20
	name := `"` + strings.Repeat("x", size) + `"`
	var ended []chan journal.Result
	for n := range byte(8) {
		_, done := b.shard.call(greet("Greet"), n+1, name)
		ended = append(ended, done)
	}
	for _, done := range ended {
		require.Len(t, receive(t, done).Value, size+len(`"Hello "`))
	}
	require.GreaterOrEqual(t, functions.least, 2*size, "the request and the response")
	require.Eventually(t, func() bool {
		used, _ := b.iv.Memory()
		return used == 0
	}, time.Minute, time.Millisecond)
}

func TestAResponseOfAFunctionThatNeedsTooMuchFails(t *testing.T) {
	cloud := lambdatest.Start(t)
	services := serveFunction(t)
	cloud.Handle(testARN, services)
	cfg := withFunctions()
	cfg.Defaults.Retry = onceConfig().Defaults.Retry
	cfg.InvocationMemoryLimit = 1 << 20
	b := withDeployment(t, cfg, discovery.Request{ARN: testARN}, nil)
	cloud.Handle(testARN, lambdatest.Adapt(func(server.LambdaRequest) (server.LambdaResponse, error) {
		return server.LambdaResponse{StatusCode: http.StatusOK, Body: strings.Repeat("x", 2<<20)}, nil
	}))
	id, _ := b.shard.call(greet("Greet"), 1, `"you"`)
	f := lastFailure(t, b, id)
	require.Equal(t, string(errcode.RT0001), f.ErrorCode)
	require.Contains(t, f.Message, "worker.invoker.per-invocation-memory-limit")
}
